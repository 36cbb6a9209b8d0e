"""Operations on attribution: change what is stored, and delete a value."""

from datetime import timedelta
from typing import Final

from tollhouse.attribution import store
from tollhouse.attribution.types import AttributionSetting, ErasedValue
from tollhouse.base.ids import OrganizationId
from tollhouse.storage import audit
from tollhouse.storage.batches import in_batches
from tollhouse.storage.database import Database, Mutation, Transaction
from tollhouse.storage.leases import LeasedJob

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


def retention_job(database: Database) -> LeasedJob:
    """Return the job that deletes values after the retention of their organizations."""

    async def remove_old() -> None:
        await in_batches(database, store.remove_old)

    return LeasedJob(
        name="attribution-retention",
        every_seconds=RETAIN_EVERY.total_seconds(),
        run=remove_old,
    )
