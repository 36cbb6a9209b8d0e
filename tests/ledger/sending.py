"""The three forms in which a worker sends items to the ledger."""

from collections.abc import Sequence
from enum import Enum, auto

from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.ledger import batches
from tollhouse.ledger.batches import BatchResult
from tollhouse.ledger.types import Hold, Resolution
from tollhouse.storage.database import Database


class Form(Enum):
    """How items are sent."""

    OWN = auto()
    """In a batch that waits for locks."""
    MIXED = auto()
    """In a batch that skips locked accounts."""
    ALONE = auto()
    """Each in a statement of its own, resolutions first."""


async def send(
    database: Database,
    ends: Sequence[Resolution],
    holds: Sequence[Hold],
    form: Form = Form.OWN,
    *,
    instance_id: InstanceId | None = None,
    is_retry: bool = False,
) -> BatchResult:
    """Resolve and admit as a worker does."""
    worker = instance_id or InstanceId(time_ordered_uuid())
    if form is Form.ALONE:
        resolved = [await batches.settle_one(database, end) for end in ends]
        decisions = [
            await batches.admit_one(database, hold, instance_id=worker, is_retry=is_retry)
            for hold in holds
        ]
        return BatchResult(resolved=resolved, decisions=decisions)
    return await batches.apply(
        database,
        ends,
        holds,
        instance_id=worker,
        is_retry=is_retry,
        skips_locked=form is Form.MIXED,
    )
