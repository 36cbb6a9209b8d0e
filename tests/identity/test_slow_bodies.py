"""A key that ends while the body is still coming opens nothing any more, on any operation."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from tests.identity import raw
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.clock import HeldClock
from tollhouse.projects.types import Project
from tollhouse.settings import ServerSettings

pytestmark = pytest.mark.asyncio(loop_scope="module")

BELIEF_IS_STALE = timedelta(seconds=1)
MESSAGES = [{"role": "user", "content": "Hi"}]
BODIES = {
    "/v1/chat/completions": {"model": "m", "messages": MESSAGES},
    "/v1/responses": {"model": "m", "input": "Hi"},
    "/v1/messages/count_tokens": {"model": "m", "messages": MESSAGES},
}


@pytest.mark.parametrize("path", BODIES)
async def test_a_key_that_is_revoked_while_the_body_comes_is_refused(
    held: Gateway, org: OrganizationFixture, project: Project, clock: HeldClock, path: str
) -> None:
    key = await org.project_key(project)
    body = msgspec.json.encode(BODIES[path])
    headers = [
        ("authorization", f"Bearer {key.value}"),
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("expect", "100-continue"),
    ]
    async with raw.connected(held.host, held.port) as connection:
        # The gateway asks for the body only when it has let the key in.
        asked = await connection.ask("POST", path, headers)
        await org.revoke_project_key(key)
        clock.advance(BELIEF_IS_STALE)
        connection.writer.write(body)
        answer = await connection.answer()

    assert (asked.status, answer.status) == (100, 401)


async def test_an_operation_without_a_body_does_not_wait_long_for_the_end_of_one(
    held: Gateway, org: OrganizationFixture, project: Project
) -> None:
    key = await org.project_key(project)
    headers = [("authorization", f"Bearer {key.value}"), ("transfer-encoding", "chunked")]
    started_seconds = asyncio.get_running_loop().time()
    async with raw.connected(held.host, held.port) as connection:
        answer = await connection.ask("GET", "/v1/models", headers)
    passed_seconds = asyncio.get_running_loop().time() - started_seconds

    assert answer.status == 408
    assert passed_seconds < ServerSettings().body_seconds / 2
