"""Operations on attribution: change what is stored, sum costs by value, and delete a value."""

from datetime import UTC, datetime, timedelta
from typing import Final

from tollhouse.attribution import store
from tollhouse.attribution.errors import AttributionDetailGone, AttributionRangeInvalid
from tollhouse.attribution.types import AttributedCost, AttributionSetting, ErasedValue
from tollhouse.base.ids import OrganizationId
from tollhouse.storage import audit
from tollhouse.storage.batches import in_batches
from tollhouse.storage.database import Database, Mutation, Transaction
from tollhouse.storage.leases import LeasedJob

REVISION: Final = "0026"
DAYS_MAX: Final = 31
VALUES_MAX: Final = 1_000
RETAIN_EVERY: Final = timedelta(hours=1)


async def retrieve(tx: Transaction, organization_id: OrganizationId) -> AttributionSetting:
    """Return what an organization stores."""
    return await store.setting(tx, organization_id)


async def change(tx: Mutation, changed: AttributionSetting) -> AttributionSetting:
    """Store from now on what the setting names; workers apply it within a second."""
    known = await store.setting_for_update(tx, tx.organization_id)
    if known == changed:
        tx.unchanged()
        return known
    await store.save(tx, tx.organization_id, changed)
    await audit.record(
        tx,
        action="attribution.change",
        resource=("organization", tx.organization_id),
        before=known,
        after=changed,
    )
    return changed


async def erase(tx: Mutation, *, dimension: str, value: str) -> ErasedValue:
    """Delete one value on all days. Costs stay, and count as deleted."""
    days = await store.erase(tx, tx.organization_id, dimension, value)
    erased = ErasedValue(dimension=dimension, days=days)
    if not days:
        tx.unchanged()
        return erased
    await audit.record(
        tx,
        action="attribution.delete_value",
        resource=("organization", tx.organization_id),
        before=erased,
        after=ErasedValue(dimension=dimension, days=0),
    )
    return erased


async def costs(
    tx: Transaction, organization_id: OrganizationId, dimension: str, *, start: int, end: int
) -> list[AttributedCost]:
    """Return settled costs of a range by value. Their sum is that of the cost report.

    Raises `AttributionRangeInvalid`, and `AttributionDetailGone` for days that are closed.
    """
    if not start < end <= start + DAYS_MAX * 86_400:
        raise AttributionRangeInvalid(days_max=DAYS_MAX)
    first, last = datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC)
    if await store.is_closed(tx, first.date(), (last - timedelta(seconds=1)).date()):
        raise AttributionDetailGone
    return await store.costs(
        tx, organization_id, dimension, start=first, end=last, values_max=VALUES_MAX
    )


def retention_job(database: Database) -> LeasedJob:
    """Return the job that deletes values after the retention of their organizations."""

    async def remove_old() -> None:
        await in_batches(database, store.remove_old)

    return LeasedJob(
        name="attribution-retention",
        every_seconds=RETAIN_EVERY.total_seconds(),
        run=remove_old,
        needs_revision=REVISION,
    )
