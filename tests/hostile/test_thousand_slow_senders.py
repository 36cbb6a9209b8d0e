"""A thousand callers who never finish their requests, with the bounds that a deployment has."""

from collections.abc import AsyncIterator, Callable
from statistics import median, quantiles

import msgspec
import pytest
import pytest_asyncio

from tests.hostile.deployment import SLACK_SECONDS, Deployment, running_deployment
from tests.hostile.slow_peers import Cut, slow_peers
from tests.identity.measures import processor_seconds
from tests.storage.processes import next_word
from tollhouse.settings import ServerSettings, Settings

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.clock, pytest.mark.nightly]

PEERS = 1_000
ROUNDS = 5
REQUESTS = 300
PAUSE_SECONDS = 0.003
FACTOR_MAX = 2.0
HEAD_SECONDS_MAX = 15.0


def with_usual_bounds(settings: Settings) -> Settings:
    """The bounds in time of a deployment that sets none."""
    usual = ServerSettings()
    server = msgspec.structs.replace(
        settings.server, header_seconds=usual.header_seconds, body_seconds=usual.body_seconds
    )
    return msgspec.structs.replace(settings, server=server)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def usual(
    migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    folder = tmp_path_factory.mktemp("slow")
    async with running_deployment(migrated_template, folder, with_usual_bounds) as running:
        yield running


class Measured:
    """The p99 of a neighbour's requests, and what each cost the worker, one of every round."""

    def __init__(self) -> None:
        self.p99_ms: list[float] = []
        self.worker_ms: list[float] = []

    async def measure(self, deployment: Deployment) -> None:
        before = processor_seconds(deployment.worker)
        taken = await deployment.neighbour.ask(REQUESTS, PAUSE_SECONDS)
        used = processor_seconds(deployment.worker) - before
        self.p99_ms.append(quantiles(taken, n=100)[-1])
        self.worker_ms.append(used * 1000 / REQUESTS)


@pytest.mark.guarantee("T24")
async def test_a_thousand_slow_senders_are_cut_and_do_not_double_the_p99_of_others(
    usual: Deployment, record_property: Callable[[str, object], None]
) -> None:
    """Quiet and attacked rounds take turns, so that both see the same machine."""
    attacker = await usual.customer()
    quiet, attacked = Measured(), Measured()
    cuts: list[Cut] = []
    for number in range(ROUNDS):
        await quiet.measure(usual)
        async with slow_peers(usual.address, attacker.key, PEERS) as line:
            await attacked.measure(usual)
            if number == ROUNDS - 1:
                cuts = msgspec.convert(await next_word(line), list[Cut])

    figures = {
        "quiet_p99_ms": median(quiet.p99_ms),
        "attacked_p99_ms": median(attacked.p99_ms),
        "quiet_worker_ms": median(quiet.worker_ms),
        "attacked_worker_ms": median(attacked.worker_ms),
        "slowest_head_seconds": max(cut.seconds for cut in cuts if cut.is_head),
        "slowest_body_seconds": max(cut.seconds for cut in cuts if not cut.is_head),
    }
    for name, value in figures.items():
        record_property(name, round(value, 3))
    assert {cut.status for cut in cuts} == {408}
    assert figures["slowest_head_seconds"] <= HEAD_SECONDS_MAX
    assert figures["slowest_body_seconds"] <= ServerSettings().body_seconds + SLACK_SECONDS
    assert figures["attacked_p99_ms"] < FACTOR_MAX * figures["quiet_p99_ms"], figures
    assert await attacker.admitted() == 0
