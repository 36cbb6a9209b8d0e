"""A judge that cannot be made ready is tried once for all who wait, and again for the next."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from tests.support.deployment import offering, open_deployment
from tests.support.judge import ScriptedJudge, running_judge
from tests.support.judged_deployment import BODIES, CHAT, JudgedDeployment, judged_by
from tests.support.organization_fixture import OrganizationFixture
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.policies import Direction
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Silence:
    """It takes connections and says nothing."""

    port: int = 0
    connections: int = 0
    _open: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])

    async def accept(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.append(writer)

    def hang_up(self) -> None:
        for writer in self._open:
            writer.close()


@pytest_asyncio.fixture(loop_scope="module")
async def silence() -> AsyncIterator[Silence]:
    silent = Silence()
    server = await asyncio.start_server(silent.accept, "127.0.0.1", 0)
    silent.port = server.sockets[0].getsockname()[1]
    yield silent
    silent.hang_up()
    server.close()


async def test_all_who_wait_for_a_silent_judge_fail_together(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture, silence: Silence
) -> None:
    url = f"http://127.0.0.1:{silence.port}/v1"
    judged = judged_by(offering(settings, upstream.base_url), url, deadline_seconds=0.5)
    async with open_deployment(judged, upstream, org) as deployment:
        judged = JudgedDeployment(deployment=deployment, judge=ScriptedJudge())
        await judged.forbid("bread", direction=Direction.REQUEST)
        answers = await asyncio.gather(
            *(judged.send(CHAT, BODIES[CHAT](f"Hi {number}")) for number in range(20))
        )
        tries = silence.connections

    assert {answer.status_code for answer in answers} == {503}
    # The worker's own, that of the requests, health probes; not one for each request.
    assert tries < 10


async def test_a_judge_that_comes_late_is_found(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> None:
    judge = ScriptedJudge()
    async with running_judge(judge):
        judge.tokenizer_fails = True
        judged = judged_by(offering(settings, upstream.base_url), judge.base_url)
        async with open_deployment(judged, upstream, org) as deployment:
            judged = JudgedDeployment(deployment=deployment, judge=judge)
            await judged.forbid("bread", direction=Direction.REQUEST)
            early = await judged.send(CHAT, BODIES[CHAT]("Hi"))
            judge.tokenizer_fails = False
            late = await judged.send(CHAT, BODIES[CHAT]("Hi"))

    assert (early.status_code, late.status_code) == (503, 200)
