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
    if form is not Form.ALONE:
        return await batches.apply(
            database,
            ends,
            holds,
            instance_id=worker,
            is_retry=is_retry,
            skips_locked=form is Form.MIXED,
        )
    whole = BatchResult(resolved=[], decisions=[])
    sent: list[tuple[list[Resolution], list[Hold]]] = [([end], []) for end in ends]
    sent += [([], [hold]) for hold in holds]
    for alone in sent:
        result = await batches.apply(
            database, *alone, instance_id=worker, is_retry=is_retry, skips_locked=True
        )
        whole.resolved.extend(result.resolved)
        whole.decisions.extend(result.decisions)
    return whole
