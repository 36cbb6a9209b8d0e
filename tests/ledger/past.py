"""Usage of days long ago."""

from datetime import UTC, date, datetime, timedelta

from tests.ledger.till import MODEL, Till
from tollhouse.base.money import PicoUsd
from tollhouse.ledger import backfill
from tollhouse.ledger.types import Charge, PastUsage, Resolution

KEPT_DAYS = 2_000


def days_ago(days: int) -> date:
    return (datetime.now(UTC) - timedelta(days=days)).date()


async def enter_past(till: Till, day: date, amount: int, *, model: str = MODEL) -> Resolution:
    """One past request, entered as the operator does."""
    usage = PastUsage(
        project_id=till.project_id,
        api_key_id=till.key_id,
        model=model,
        day=day,
        charge=Charge(input_tokens=7, request_pico_usd=PicoUsd(amount)),
    )
    database = till.world.database
    await backfill.prepare(database, usage, now=datetime.now(UTC), entry_days=KEPT_DAYS)
    async with database.mutation(till.world.authority()) as tx:
        return await backfill.enter(tx, usage, reason="a test")
