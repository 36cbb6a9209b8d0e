"""Every status of chat over HTTP, and which of two faults is told: the one of the earlier check."""

import asyncio
from collections.abc import AsyncIterator
from itertools import combinations
from uuid import UUID

import asyncpg
import httpx2
import pytest
import pytest_asyncio

from tests.identity.waiting import until
from tests.inference.staging import PATH, SILENT, Stage, every_way_to_fail, staged
from tests.inference.walk import EXCLUSIVE, FAULTS, UNKNOWN_POLICY, Told, spoilt
from tests.support.deployment import Deployment, chat
from tests.support.limits import set_limit
from tests.support.organization_fixture import OrganizationFixture
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.traffic import TrafficLimits
from tollhouse.contract.operation import CHAT
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

AT_ONCE = 8
SILENT_REPLICA = "http://127.0.0.1:9/v1"
"""The port for what is to be discarded, where nobody listens."""
PAIRS = [
    pair
    for pair in combinations(FAULTS, 2)
    if not any(set(pair) <= together for together in EXCLUSIVE)
]
TRIED: list[tuple[str, ...]] = [*((name,) for name in FAULTS), *PAIRS]
TRIED.sort(key=lambda names: "tokens" not in names)
"""Tokens come back after a minute, so theirs are first."""
OF_THE_BACKEND = 4


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    return every_way_to_fail(settings, upstream.base_url, silent_replica=SILENT_REPLICA)


@pytest_asyncio.fixture(loop_scope="module")
async def stage(deployment: Deployment) -> AsyncIterator[Stage]:
    await until(lambda: is_known_as_silent(deployment))
    async with staged(deployment) as set_up:
        yield set_up


async def is_known_as_silent(deployment: Deployment) -> bool:
    async with deployment.customer() as client:
        return not (await client.get(f"/v1/models/{SILENT}")).json()["is_ready"]


def told(answer: httpx2.Response) -> Told:
    error = answer.json()["error"]
    assert str(UUID(error["request_id"])) == answer.headers["x-request-id"]
    return answer.status_code, error["type"], error["code"], error["param"]


async def test_each_fault_is_told_and_of_two_the_earlier_one(stage: Stage) -> None:
    """A backend hears only of its own faults, each alone."""
    deployment, room = stage.deployment, asyncio.Semaphore(AT_ONCE)
    admitted, asked = await deployment.admitted(), len(deployment.upstream.seen)

    async def tell(names: tuple[str, ...]) -> Told:
        async with room:
            # What comes later in the order is spoilt first, so that it cannot undo the earlier.
            return told(await spoilt(stage, *reversed(names)).send(stage))

    answers = await asyncio.gather(*map(tell, TRIED))

    assert len(PAIRS) > 250
    assert dict(zip(TRIED, answers, strict=True)) == {names: FAULTS[names[0]][1] for names in TRIED}
    assert await deployment.admitted() - admitted == OF_THE_BACKEND
    assert len(deployment.upstream.seen) - asked == OF_THE_BACKEND
    assert (await spoilt(stage).send(stage)).is_success


async def test_with_the_rest_every_status_of_the_table_is_reached() -> None:
    elsewhere = {409, 500}

    assert {status for _, (status, *_) in FAULTS.values()} | elsewhere == {*CHAT, 405}


async def test_a_bug_of_ours_is_500_and_costs_nothing(
    deployment: Deployment, database_url: str
) -> None:
    async with deployment.customer() as client:
        sound = await client.post(PATH, json=chat())
        connection = await asyncpg.connect(database_url)
        await connection.execute("ALTER TABLE policies RENAME TO gone")
        answer = await client.post(PATH, json=chat(policy_ids=[UNKNOWN_POLICY]))
        await connection.execute("ALTER TABLE gone RENAME TO policies")
        await connection.close()

    assert sound.is_success
    assert told(answer) == (500, "server_error", "server_error", None)
    assert len(deployment.upstream.seen) == 1
    assert await deployment.admitted() == 1


async def test_a_key_that_is_none_is_401_and_one_of_an_administrator_403(
    deployment: Deployment,
) -> None:
    answers: list[Told] = []
    for key in ("nonsense", deployment.admin.value):
        async with deployment.gateway.client(key) as client:
            answers.append(told(await client.post(PATH, json=chat())))

    kind = "invalid_request_error"
    assert answers == [(401, kind, "invalid_api_key", None), (403, kind, "wrong_key_type", None)]


async def test_without_credit_402_says_so(
    deployment: Deployment, other_org: OrganizationFixture
) -> None:
    poor = await other_org.project_key(await other_org.project())
    async with deployment.gateway.client(poor.value) as client:
        answer = await client.post(PATH, json=chat())

    assert told(answer) == (402, "insufficient_quota", "credit_balance_exhausted", None)


async def test_a_request_too_many_in_a_minute_is_429(deployment: Deployment) -> None:
    await set_limit(deployment.org, TrafficLimits(requests_per_minute=1))
    async with deployment.customer() as client:
        answers = [await client.post(PATH, json=chat()) for _ in range(2)]

    assert answers[0].is_success
    assert told(answers[1]) == (429, "rate_limit_error", "rate_limit_exceeded", None)
    assert int(answers[1].headers["retry-after"]) > 0
