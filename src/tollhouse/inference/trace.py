"""What is noted of one request on its way, and written down once when it is over.

A request is over when its answer has ended and its money is decided, in whichever order: a
caller who leaves early is answered long before the backend says what was used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from tollhouse.activity.types import Culprit, RequestRecord
from tollhouse.backends.errors import BackendError, BackendRejected
from tollhouse.base.errors import GatewayError, Kind
from tollhouse.base.ids import RequestId
from tollhouse.base.money import PicoUsd
from tollhouse.keys.types import Customer
from tollhouse.observability.context import RequestContext

_OUR_OWN = {Kind.UNEXPECTED, Kind.UNAVAILABLE, Kind.DEADLINE}
_MS = 1000.0
ZERO = PicoUsd(0)


@dataclass(kw_only=True, slots=True)
class Trace:
    """One per request of a customer. Marks are instants of the monotonic clock, in seconds."""

    request_id: RequestId
    customer: Customer
    operation: str
    started_at: datetime
    started_seconds: float
    note: Callable[[RequestRecord], None]
    model: str | None = None
    backend: str | None = None
    replica: str | None = None
    is_stream: bool = False
    failure: GatewayError | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    is_estimated: bool = False
    cost_pico_usd: PicoUsd | None = ZERO
    queued_seconds: float | None = None
    admitted_seconds: float | None = None
    judged_seconds: float | None = None
    first_byte_seconds: float | None = None
    _is_money_open: bool = False
    _ended: tuple[int, float] | None = None

    def money_held(self) -> None:
        """From now on the record waits until it is known what the request cost."""
        self._is_money_open = True

    def money_decided(self) -> None:
        """What it cost is in the trace, or will not be known for long."""
        self._is_money_open = False
        self._note_if_over()

    def answered(self, *, status: int, now_seconds: float) -> None:
        """The last byte was sent, or the caller has left."""
        self._ended = status, now_seconds
        self._note_if_over()

    def tell(self, context: RequestContext) -> None:
        """Give the log line what is known when the answer has ended."""
        context.model, context.backend, context.replica = self.model, self.backend, self.replica
        context.input_tokens = self.input_tokens
        context.cached_input_tokens = self.cached_input_tokens
        context.output_tokens = self.output_tokens
        context.cost_pico_usd = None if self._is_money_open else self.cost_pico_usd
        context.queue_ms = self._queue_ms
        context.admission_ms = self._admission_ms
        context.judging_ms = self._judging_ms
        context.first_byte_ms = self._first_byte_ms

    @property
    def _queue_ms(self) -> float | None:
        return _ms_between(self.started_seconds, self.queued_seconds)

    @property
    def _admission_ms(self) -> float | None:
        return _ms_between(self.queued_seconds, self.admitted_seconds)

    @property
    def _judging_ms(self) -> float | None:
        return _ms_between(self.admitted_seconds, self.judged_seconds)

    @property
    def _first_byte_ms(self) -> float | None:
        return _ms_between(self.started_seconds, self.first_byte_seconds)

    def _note_if_over(self) -> None:
        if self._ended is not None and not self._is_money_open:
            status, ended_seconds = self._ended
            self.note(self._record(status=status, ended_seconds=ended_seconds))

    def _record(self, *, status: int, ended_seconds: float) -> RequestRecord:
        return RequestRecord(
            organization_id=self.customer.organization_id,
            request_id=self.request_id,
            project_id=self.customer.project_id,
            api_key_id=self.customer.key_id,
            operation=self.operation,
            started_at=self.started_at,
            status=status,
            error_code=None if self.failure is None else self.failure.code,
            culprit=None if self.failure is None else culprit_of(self.failure),
            model=self.model,
            backend=self.backend,
            replica=self.replica,
            is_stream=self.is_stream,
            input_tokens=self.input_tokens,
            cached_input_tokens=self.cached_input_tokens,
            output_tokens=self.output_tokens,
            is_estimated=self.is_estimated,
            cost_pico_usd=self.cost_pico_usd,
            queue_ms=self._queue_ms,
            admission_ms=self._admission_ms,
            judging_ms=self._judging_ms,
            first_byte_ms=self._first_byte_ms,
            total_ms=(ended_seconds - self.started_seconds) * _MS,
        )


def _ms_between(start_seconds: float | None, end_seconds: float | None) -> float | None:
    if start_seconds is None or end_seconds is None:
        return None
    return (end_seconds - start_seconds) * _MS


def culprit_of(failure: GatewayError) -> Culprit:
    """Whose failure it was. A request that a backend finds fault with is the caller's."""
    if isinstance(failure, BackendError) and not isinstance(failure, BackendRejected):
        return Culprit.BACKEND
    return Culprit.GATEWAY if failure.kind in _OUR_OWN else Culprit.CALLER
