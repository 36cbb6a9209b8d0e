"""Of several changes of one revision, from four processes at two workers, exactly one holds.

`TOLLHOUSE_ROUNDS` says how often each race is run.
"""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.policies.client import GIVEN, MANAGE, Json, Policies, body_of, given_part
from tests.policies.racer import Answer, Request, race
from tests.storage.processes import next_word, running
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tests.support.processes import running_service
from tollhouse.settings import ServerSettings, Settings
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROUNDS = int(os.environ.get("TOLLHOUSE_ROUNDS", "10"))
PROCESSES = 4
RACES = {
    "two edits": ("edit", "edit", "edit", "edit"),
    "edit and publish": ("edit", "publish", "edit", "publish"),
    "publish and pause": ("publish", "pause", "publish", "pause"),
    "rollback and edit": ("rollback", "edit", "rollback", "edit"),
}
REVISION = 3
"""After two publications, so that every verb of the races is possible."""


@dataclass(frozen=True)
class Track:
    org: OrganizationFixture
    policies: Policies
    lines: list[Connection]

    async def run(self, requests: list[Request]) -> list[Answer]:
        for line, request in zip(self.lines, requests, strict=True):
            line.send(request)
        return [msgspec.convert(await next_word(line), Answer) for line in self.lines]

    async def audit_rows(self) -> int:
        async with self.org.database.transaction() as tx:
            return await tx.fetch_value(
                "SELECT count(*) FROM audit_log WHERE organization_id = $1",
                self.org.organization_id,
            )


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def track(
    settings: Settings,
    database: Database,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Track]:
    org = await new_organization_fixture(database)
    folder: Path = tmp_path_factory.mktemp("races")
    two_workers = Settings(
        database=settings.database,
        secrets=settings.secrets,
        server=ServerSettings(port=0, probe_port=0, workers=2),
    )
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(running_service(two_workers, folder))
        key = (await org.admin_key()).value
        client = await stack.enter_async_context(service.client(key))
        lines: list[Connection] = []
        for _ in range(PROCESSES):
            started = running(race, *service.address, key)
            _, line = await stack.enter_async_context(started)
            lines.append(line)
        for line in lines:
            assert await next_word(line) == "ready"
        yield Track(org, Policies(client), lines)


def _request(policy_id: str, verb: str, number: int) -> Request:
    match verb:
        case "edit":
            body = {"revision": REVISION, "rule": f"Did process {number} win?"}
            return "PATCH", f"{GIVEN}/policies/{policy_id}", body
        case "pause":
            return "POST", f"{GIVEN}/policies/{policy_id}/pause", {"revision": REVISION}
        case "publish":
            return "POST", f"{MANAGE}/policies/{policy_id}/publish", {"revision": REVISION}
        case _:
            body = {"revision": REVISION, "version": 1}
            return "POST", f"{MANAGE}/policies/{policy_id}/rollback", body


@pytest.mark.parametrize("name", RACES)
async def test_a_race_has_one_winner_and_loses_no_change(track: Track, name: str) -> None:
    for _ in range(ROUNDS):
        policy = await track.policies.published(scope="organization")
        body_of(await track.policies.publish(policy["id"], 2))
        rows_before = await track.audit_rows()
        verbs = list(enumerate(RACES[name]))

        answers = await track.run([_request(policy["id"], verb, number) for number, verb in verbs])

        won = [answer for answer in answers if answer[0] == 200]
        lost = [answer for answer in answers if answer[0] != 200]
        assert len(won) == 1, answers
        for status, should_retry, body in lost:
            error = msgspec.convert(body["error"], Json)
            assert (status, should_retry, error["code"]) == (409, "false", "revision_conflict")
        shown = body_of(await track.policies.retrieve(policy["id"]))
        assert shown == given_part(won[0][2])
        assert shown["revision"] == REVISION + 1
        assert await track.audit_rows() == rows_before + 1
