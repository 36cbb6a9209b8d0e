"""What is known of one request. Its log line and its stored record are made from it.

The log line is written when the answer has ended. The record is written once, when the request is
over: when its answer has ended and its cost is decided, in either order. The answer of a caller
that disconnects early ends long before the backend reports the usage.
"""

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct, field

from tollhouse.activity.types import FailureSource, RequestRecord
from tollhouse.backends.errors import BackendError, BackendRejected
from tollhouse.base.attempts import Attempt
from tollhouse.base.errors import GatewayError, Kind
from tollhouse.base.ids import RequestId
from tollhouse.base.money import PicoUsd
from tollhouse.base.trace_context import TraceContext
from tollhouse.keys.types import Caller, Customer
from tollhouse.ledger.types import Charge
from tollhouse.observability import log
from tollhouse.observability.log import RequestLine

_OUR_OWN = {Kind.UNEXPECTED, Kind.UNAVAILABLE, Kind.DEADLINE}
_MS = 1000.0
ZERO = PicoUsd(0)


class _Phases(Struct, frozen=True):
    queue_ms: float | None
    admission_ms: float | None
    judging_ms: float | None
    first_byte_ms: float | None


class RequestTrace(Struct, kw_only=True):
    """What is known of one request, set step by step. Only customers' requests are recorded.

    Times are seconds of the monotonic clock. It is passed as an argument, because a context
    variable could outlive its request. `context` is set if spans are exported.
    """

    request_id: RequestId
    method: str
    started_at: datetime
    started_seconds: float
    record: Callable[[RequestRecord], None]
    client_request_id: str | None = None
    retry_count: int | None = None
    context: TraceContext | None = None
    operation: str | None = None
    caller: Caller | None = None
    model: str | None = None
    requested_model: str | None = None
    backend: str | None = None
    replica: str | None = None
    is_stream: bool = False
    dropped_tools: tuple[str, ...] = ()
    label: str | None = None
    failure: GatewayError | None = None
    attempts: list[Attempt] = field(default_factory=list[Attempt])
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

    @property
    def error_code(self) -> str | None:
        """The code of the failure, or None if there was none."""
        return None if self.failure is None else self.failure.code

    def identified(self, customer: Customer) -> None:
        """Write the record of a request whose key was looked up after its answer."""
        self.caller = customer
        self._record_if_over()

    def log_line(self, *, status: int, duration_ms: float) -> RequestLine:
        """Return the log line, which has a cost if that was decided before the answer ended."""
        caller, phases = self.caller, self._phases()
        is_cost_known = isinstance(caller, Customer) and not self._is_money_open
        return RequestLine(
            timestamp=self.started_at,
            request_id=self.request_id,
            method=self.method,
            status=status,
            duration_ms=round(duration_ms, log.MILLISECOND_DECIMALS),
            operation=self.operation,
            code=self.error_code,
            organization_id=None if caller is None else caller.organization_id,
            key_id=None if caller is None else caller.key_id,
            client_request_id=log.bounded_text(self.client_request_id),
            retry_count=self.retry_count,
            model=log.bounded_text(self.model),
            backend=self.backend,
            replica=self.replica,
            input_tokens=self.input_tokens,
            cached_input_tokens=self.cached_input_tokens,
            output_tokens=self.output_tokens,
            cost_pico_usd=self.cost_pico_usd if is_cost_known else None,
            queue_ms=log.rounded_ms(phases.queue_ms),
            admission_ms=log.rounded_ms(phases.admission_ms),
            judging_ms=log.rounded_ms(phases.judging_ms),
            first_byte_ms=log.rounded_ms(phases.first_byte_ms),
            trace_id=None if self.context is None else f"{self.context.trace_id:032x}",
            span_id=None if self.context is None else f"{self.context.span_id:016x}",
        )

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
        if self._ended is None or self._is_money_open or not isinstance(self.caller, Customer):
            return
        status, ended_seconds = self._ended
        self.record(self._finished_record(self.caller, status, ended_seconds))

    def _finished_record(
        self, customer: Customer, status: int, ended_seconds: float
    ) -> RequestRecord:
        assert self.operation is not None, "an authenticated request has a route"
        phases = self._phases()
        return RequestRecord(
            organization_id=customer.organization_id,
            request_id=self.request_id,
            project_id=customer.project_id,
            api_key_id=customer.key_id,
            operation=self.operation,
            started_at=self.started_at,
            status=status,
            error_code=self.error_code,
            error_param=None if self.failure is None else self.failure.param,
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
            requested_model=self.requested_model,
            dropped_tools=self.dropped_tools,
            # Of a single one the record itself tells.
            attempts=tuple(self.attempts) if len(self.attempts) > 1 else (),
            label=self.label,
            trace_context=self.context,
        )


def failure_source(failure: GatewayError) -> FailureSource:
    """Return who caused a failure. A request that the backend rejects is the caller's."""
    if isinstance(failure, BackendError) and not isinstance(failure, BackendRejected):
        return FailureSource.BACKEND
    return FailureSource.GATEWAY if failure.kind in _OUR_OWN else FailureSource.CALLER
