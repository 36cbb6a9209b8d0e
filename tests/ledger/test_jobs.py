"""A worker that starts keeps the ledger, without anybody telling it to."""

from datetime import timedelta

from tests.identity.waiting import until
from tests.ledger.invariants import assert_conserved
from tests.ledger.past import days_ago
from tests.ledger.till import open_till
from tests.support.gateway import running_gateway
from tests.support.world import World
from tollhouse.settings import Settings


async def test_a_worker_makes_its_days_before_it_serves_and_decides_what_is_overdue(
    world: World, database_url: str, settings: Settings
) -> None:
    till = await open_till(world, database_url)
    hold = await till.hold(100, bills_without_answer=False)
    await till.let_pass(hold, timedelta(seconds=70))
    ahead = f"ledger_entries_{days_ago(-5):%Y%m%d}"
    await till.tamper(f"DROP TABLE {ahead}")

    async def is_decided() -> bool:
        return await till.value("SELECT count(*) FROM ledger_entries WHERE kind = 'absorb'") == 1

    async with running_gateway(settings):
        assert await till.value("SELECT to_regclass($1)::text", ahead) == ahead
        await until(is_decided)

    await assert_conserved(world.database)
