"""Collect what is known of a request, and record it once when the request is over.

A request is over when its answer has ended and its cost is decided, in either order: the answer of
a caller that disconnects early ends long before the backend reports the usage.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from tollhouse.activity.types import FailureSource, RequestRecord
from tollhouse.backends.errors import BackendError, BackendRejected
from tollhouse.base.errors import GatewayError, Kind
from tollhouse.base.ids import RequestId
from tollhouse.base.money import PicoUsd
from tollhouse.keys.types import Customer
from tollhouse.ledger.types import Charge
from tollhouse.observability.context import RequestContext

_OUR_OWN = {Kind.UNEXPECTED, Kind.UNAVAILABLE, Kind.DEADLINE}
_MS = 1000.0
ZERO = PicoUsd(0)


class _Phases(NamedTuple):
    queue_ms: float | None
    admission_ms: float | None
    judging_ms: float | None
    first_byte_ms: float | None


@dataclass(kw_only=True, slots=True)
class Trace:
    """What is known of one request of a customer. Times are seconds of the monotonic clock."""

    request_id: RequestId
    customer: Customer
    operation: str
    started_at: datetime
    started_seconds: float
    record: Callable[[RequestRecord], None]
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
        """Delay the record until the cost of the request is decided."""
        self._is_money_open = True

    def charged(self, charge: Charge, *, is_estimated: bool) -> None:
        """Keep the final usage and cost; the record is complete once the answer has ended."""
        self.input_tokens = charge.input_tokens
        self.cached_input_tokens = charge.cached_input_tokens
        self.output_tokens = charge.output_tokens
        self.cost_pico_usd = charge.total_pico_usd
        self.is_estimated = is_estimated
        self._is_money_open = False
        self._record_if_over()

    def left_unsettled(self, *, is_estimated: bool) -> None:
        """Write the record without a cost, which may stay unknown for a day."""
        self.cost_pico_usd = None
        self.is_estimated = is_estimated
        self._is_money_open = False
        self._record_if_over()

    def answered(self, *, status: int, now_seconds: float) -> None:
        """The last byte was sent, or the caller disconnected."""
        self._ended = status, now_seconds
        self._record_if_over()

    def fill(self, context: RequestContext) -> None:
        """Copy what the log line says of inference, when the answer has ended."""
        context.model, context.backend, context.replica = self.model, self.backend, self.replica
        context.input_tokens = self.input_tokens
        context.cached_input_tokens = self.cached_input_tokens
        context.output_tokens = self.output_tokens
        context.cost_pico_usd = None if self._is_money_open else self.cost_pico_usd
        if self.failure is not None:
            context.error_code = self.failure.code
        phases = self._phases()
        context.queue_ms, context.admission_ms = phases.queue_ms, phases.admission_ms
        context.judging_ms, context.first_byte_ms = phases.judging_ms, phases.first_byte_ms

    def _phases(self) -> "_Phases":
        """Return the duration of each phase that was reached."""
        started, queued, admitted = self.started_seconds, self.queued_seconds, self.admitted_seconds
        judged, first_byte = self.judged_seconds, self.first_byte_seconds
        return _Phases(
            None if queued is None else (queued - started) * _MS,
            None if queued is None or admitted is None else (admitted - queued) * _MS,
            None if admitted is None or judged is None else (judged - admitted) * _MS,
            None if first_byte is None else (first_byte - started) * _MS,
        )

    def _record_if_over(self) -> None:
        if self._ended is not None and not self._is_money_open:
            status, ended_seconds = self._ended
            self.record(self._finished_record(status=status, ended_seconds=ended_seconds))

    def _finished_record(self, *, status: int, ended_seconds: float) -> RequestRecord:
        phases = self._phases()
        return RequestRecord(
            organization_id=self.customer.organization_id,
            request_id=self.request_id,
            project_id=self.customer.project_id,
            api_key_id=self.customer.key_id,
            operation=self.operation,
            started_at=self.started_at,
            status=status,
            error_code=None if self.failure is None else self.failure.code,
            failed_by=None if self.failure is None else failure_source(self.failure),
            model=self.model,
            backend=self.backend,
            replica=self.replica,
            is_stream=self.is_stream,
            input_tokens=self.input_tokens,
            cached_input_tokens=self.cached_input_tokens,
            output_tokens=self.output_tokens,
            is_estimated=self.is_estimated,
            cost_pico_usd=self.cost_pico_usd,
            queue_ms=phases.queue_ms,
            admission_ms=phases.admission_ms,
            judging_ms=phases.judging_ms,
            first_byte_ms=phases.first_byte_ms,
            total_ms=(ended_seconds - self.started_seconds) * _MS,
        )


def failure_source(failure: GatewayError) -> FailureSource:
    """Return who caused a failure. A request that the backend rejects is the caller's."""
    if isinstance(failure, BackendError) and not isinstance(failure, BackendRejected):
        return FailureSource.BACKEND
    return FailureSource.GATEWAY if failure.kind in _OUR_OWN else FailureSource.CALLER
