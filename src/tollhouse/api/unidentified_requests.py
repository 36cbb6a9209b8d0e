"""Requests whose key could not be looked up because the database was unavailable.

Each waits until the database answers again. It is then recorded like any other request, if its key
is one whose requests are recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tollhouse.activity.gaps import GapRecorder
from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import RequestId
from tollhouse.inference.trace import RequestTrace
from tollhouse.keys import rules
from tollhouse.keys.lookup import find_by_digests
from tollhouse.keys.types import Customer, KnownKey, RequiredPermission
from tollhouse.observability import metrics, model_metrics
from tollhouse.observability.metrics import ActivityLoss
from tollhouse.storage.buffered_writer import BufferedWriter, RecordLoss
from tollhouse.storage.database import Database

BATCH_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class UnidentifiedRequest:
    """A request, the digest of the key that it sent, and the permission that it needs."""

    trace: RequestTrace
    digest: bytes
    required: RequiredPermission

    @property
    def request_id(self) -> RequestId:
        """The request's ID, which is logged if the look-up is refused."""
        return self.trace.request_id


class UnidentifiedRequests(BufferedWriter[UnidentifiedRequest]):
    """Looks up the keys of unidentified requests in the background. One per worker."""

    def __init__(self, database: Database, gaps: GapRecorder, *, waiting_records_max: int) -> None:
        super().__init__("unidentified", buffer_size=waiting_records_max, batch_size_max=BATCH_MAX)
        self._database = database
        self._gaps = gaps
        model_metrics.read_queue_length("unidentified", lambda: self.waiting_size)

    async def insert(self, records: Sequence[UnidentifiedRequest]) -> None:
        """Look up the keys, and record the requests of those that are valid."""
        digests = {request.digest for request in records}
        found = await find_by_digests(self._database, list(digests))
        for request in records:
            customer = _customer(request, found)
            if customer is not None:
                request.trace.identified(customer)

    def dropped(self, records: Sequence[UnidentifiedRequest], loss: RecordLoss) -> None:
        """Count requests that will have no record."""
        metrics.activity_dropped(len(records), ActivityLoss(loss))
        self._gaps.add([request.trace.started_at for request in records])


def _customer(request: UnidentifiedRequest, found: dict[bytes, KnownKey]) -> Customer | None:
    """Return the caller, or None if its requests are not recorded."""
    try:
        caller = rules.authorize(
            found.get(request.digest), request.required, now=request.trace.started_at
        )
    except GatewayError:
        return None
    return caller if isinstance(caller, Customer) else None
