"""A ledger with something in each of its tables."""

from datetime import timedelta

from tests.ledger.direct_ledger import DirectLedger, open_ledger
from tests.ledger.past import days_ago, enter_past
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.ledger import partitions, reaper
from tollhouse.ledger.types import Charge, ResolutionKind


async def mixed_ledger(org: OrganizationFixture, url: str) -> DirectLedger:
    """One hold of each kind of end, a cache write, an open hold, an unsettled one, a closed day."""
    ledger = await open_ledger(org, url)
    await enter_past(ledger, days_ago(40), 500)
    await enter_past(ledger, days_ago(20), 40)
    await partitions.remove_old(org.database, entry_days=30)
    await ledger.post(await ledger.hold(100), 60, written=20)
    await ledger.void(await ledger.hold(100))
    await ledger.resolve(await ledger.hold(100), ResolutionKind.WRITE_OFF, Charge())
    await ledger.hold(11)
    overdue = await ledger.hold(13)
    await ledger.let_pass(overdue, timedelta(seconds=70))
    await reaper.run(org.database)
    assert await ledger.unsettled() == {overdue.reservation_id}
    return ledger
