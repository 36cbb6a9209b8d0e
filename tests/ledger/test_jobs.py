"""A worker that starts keeps the ledger, without anybody telling it to."""

from datetime import timedelta

from tests.identity.waiting import until
from tests.ledger.direct_ledger import open_ledger
from tests.ledger.invariants import assert_conserved
from tests.ledger.past import days_ago
from tests.support.gateway import running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.settings import Settings


async def test_a_worker_makes_its_days_before_it_serves_and_decides_what_is_overdue(
    org: OrganizationFixture, database_url: str, settings: Settings
) -> None:
    ledger = await open_ledger(org, database_url)
    hold = await ledger.hold(100, bills_without_answer=False)
    await ledger.let_pass(hold, timedelta(seconds=70))
    ahead = f"ledger_entries_{days_ago(-5):%Y%m%d}"
    await ledger.tamper(f"DROP TABLE {ahead}")

    async def is_decided() -> bool:
        return (
            await ledger.value("SELECT count(*) FROM ledger_entries WHERE kind = 'write_off'") == 1
        )

    async with running_gateway(settings):
        assert await ledger.value("SELECT to_regclass($1)::text", ahead) == ahead
        await until(is_decided)

    await assert_conserved(org.database)
