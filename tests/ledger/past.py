"""Usage of days long ago."""

from datetime import UTC, date, datetime, timedelta

from tests.ledger.direct_ledger import MODEL, DirectLedger
from tollhouse.base.money import PicoUsd
from tollhouse.ledger import backfill
from tollhouse.ledger.types import Charge, PastUsage, Resolution

KEPT_DAYS = 2_000


def days_ago(days: int) -> date:
    return (datetime.now(UTC) - timedelta(days=days)).date()


async def enter_past(
    ledger: DirectLedger, day: date, amount: int, *, model: str = MODEL
) -> Resolution:
    """One past request, entered as the operator does."""
    usage = PastUsage(
        project_id=ledger.project_id,
        api_key_id=ledger.key_id,
        model=model,
        day=day,
        charge=Charge(input_tokens=7, request_pico_usd=PicoUsd(amount)),
    )
    database = ledger.org.database
    await backfill.prepare(database, usage, now=datetime.now(UTC), entry_days=KEPT_DAYS)
    async with database.mutation(ledger.org.authority()) as tx:
        return await backfill.enter(tx, usage, reason="a test")
