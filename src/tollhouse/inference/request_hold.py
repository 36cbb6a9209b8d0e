"""The credit that is held for one admitted request, and the rules by which the hold ends.

`ending_for` is a pure function that decides how a hold ends in each state. `RequestHold` owns the
state and the permit: it resolves exactly once, and releases the permit in the same step.
"""

import logging
from enum import Enum
from typing import Final

from msgspec import Struct

from tollhouse.backends.errors import BackendError
from tollhouse.base.errors import GatewayError, without_frames
from tollhouse.evaluation import PolicyEvaluatorUnavailable
from tollhouse.inference.errors import ShuttingDown
from tollhouse.inference.meter import Meter, MeteredUsage
from tollhouse.inference.model_resolver import ResolvedModel
from tollhouse.inference.trace import RequestTrace
from tollhouse.ledger import pricing, rules
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.rules import Ending
from tollhouse.ledger.types import (
    NOTHING,
    ZERO,
    Charge,
    Hold,
    OperatorPays,
    Resolution,
    ResolutionKind,
)
from tollhouse.limits.limiter import Permit
from tollhouse.observability import ledger_metrics, metrics
from tollhouse.observability.ledger_metrics import OperatorAccount

logger = logging.getLogger("tollhouse.inference")


class HoldState(Enum):
    """What the caller has received while the hold is open, or that it is resolved."""

    OPEN = "open"
    """Committed; the caller has received nothing."""
    BUFFERED = "buffered"
    """The answer waits for the verdict of a policy; the caller has received nothing."""
    STREAMING = "streaming"
    """The caller is sent all output that the meter counts."""
    RESOLVED = "resolved"


class HoldEvent(Enum):
    """Why a hold ends."""

    COMPLETED = "completed"
    """The backend's answer came to its end."""
    CANCELLED = "cancelled"
    """The gateway closed the call, which ends what the backend bills."""
    BROKEN_OFF = "broken_off"
    """The call ended before its answer did, or was never made."""
    BACKEND_FAILED = "backend_failed"
    EVALUATOR_FAILED = "evaluator_failed"
    """A policy that must be evaluated could not be."""
    GATEWAY_STOPPING = "gateway_stopping"
    """The gateway stops and tells the caller so."""
    ANSWER_DISCARDED = "answer_discarded"
    """The gateway stopped or stood still, and the complete answer was never sent."""


class HoldEnding(Enum):
    """What happens to the held credit."""

    NONE = "none"
    """The hold was resolved before."""
    VOID = "void"
    CHARGE = "charge"
    OPERATOR_PAYS = "operator_pays"
    """The hold is released whole, and the usage is recorded as paid by the operator."""
    KEEP_UNSETTLED = "keep_unsettled"
    """The hold stays until there is evidence of what the backend bills."""


class CallFacts(Struct, frozen=True, kw_only=True):
    """What is known of the backend call when its hold ends."""

    bills_without_answer: bool
    may_have_been_billed: bool
    has_output: bool
    has_usage: bool
    has_whole_answer: bool


_OPERATOR_PAYS: Final = {
    (HoldState.BUFFERED, HoldEvent.BACKEND_FAILED): OperatorPays.BACKEND_FAILED,
    (HoldState.BUFFERED, HoldEvent.GATEWAY_STOPPING): OperatorPays.GATEWAY_STOPPED,
    **{
        (state, HoldEvent.EVALUATOR_FAILED): OperatorPays.POLICY_EVALUATOR_FAILED
        for state in HoldState
    },
    **{(state, HoldEvent.ANSWER_DISCARDED): OperatorPays.GATEWAY_STOPPED for state in HoldState},
}
# Tuples, because a member of an enum is found faster by identity than by its hash.
_ENDS_BILLING: Final = (HoldEvent.COMPLETED, HoldEvent.CANCELLED)
_CALLER_PAYS: Final = (*_ENDS_BILLING, HoldEvent.BROKEN_OFF)


def operator_rule(
    state: HoldState, event: HoldEvent, *, bills_without_answer: bool
) -> OperatorPays | None:
    """Return the rule by which the operator pays for the answer, or None if the caller does.

    The hold of a failed backend that bills without an answer stays unsettled instead.
    """
    if event in _CALLER_PAYS or (event is HoldEvent.BACKEND_FAILED and bills_without_answer):
        return None
    return _OPERATOR_PAYS.get((state, event))


def ending_for(state: HoldState, event: HoldEvent, facts: CallFacts) -> HoldEnding:
    """Decide how a hold in this state ends by this event."""
    if state is HoldState.RESOLVED:
        return HoldEnding.NONE
    if operator_rule(state, event, bills_without_answer=facts.bills_without_answer) is not None:
        is_used = facts.has_output or facts.has_usage
        return HoldEnding.OPERATOR_PAYS if is_used else HoldEnding.VOID
    ending = rules.ending(
        bills_without_answer=facts.bills_without_answer and facts.may_have_been_billed,
        is_complete=event in _ENDS_BILLING or facts.has_whole_answer,
        has_output=facts.has_output,
        has_usage=facts.has_usage,
    )
    if ending is Ending.VOID:
        return HoldEnding.VOID
    return HoldEnding.KEEP_UNSETTLED if ending is Ending.KEEP_UNSETTLED else HoldEnding.CHARGE


def event_of(failure: GatewayError) -> HoldEvent:
    """Return the event by which a failure of the request ends its hold."""
    if isinstance(failure, PolicyEvaluatorUnavailable):
        return HoldEvent.EVALUATOR_FAILED
    if isinstance(failure, ShuttingDown):
        return HoldEvent.GATEWAY_STOPPING
    return HoldEvent.BACKEND_FAILED if isinstance(failure, BackendError) else HoldEvent.BROKEN_OFF


class RequestHold(Struct, kw_only=True):
    """The credit held for one request. Resolves exactly once, also if the caller disconnects.

    Only `fail` waits, for the commit. The batcher commits all other resolutions by itself.
    """

    hold: Hold
    resolved: ResolvedModel
    meter: Meter
    batcher: Batcher
    permit: Permit
    trace: RequestTrace
    _state: HoldState = HoldState.OPEN
    _delivered_when_left: int | None = None
    """The output tokens that the caller had when it disconnected; None while it is connected."""
    _answering_model: str | None = None
    """The fallback that answers instead of the hold's model."""

    @property
    def has_reader(self) -> bool:
        """Whether the caller is connected. Without it, the answer may end once usage is known."""
        return self._delivered_when_left is None

    @property
    def may_be_cut_short(self) -> bool:
        """Whether closing the call ends what the backend bills, at a usage that is known."""
        backend = self.resolved.backend
        is_known = self.meter.has_usage or not backend.bills_without_answer
        return backend.stops_when_cancelled and is_known

    def switch(self, resolved: ResolvedModel, meter: Meter) -> None:
        """Let a fallback answer instead of a model whose backend has sent nothing."""
        self.resolved, self.meter = resolved, meter
        self._answering_model = None if resolved.id == self.hold.model else resolved.id

    def start_buffering(self) -> None:
        """Send nothing until a policy has its verdict."""
        self._enter(HoldState.BUFFERED)

    def end_buffering(self) -> None:
        """The verdict is known, and the buffered answer may be sent."""
        self._enter(HoldState.OPEN)

    def start_sending(self) -> None:
        """The caller is sent all output that the meter has counted and will count."""
        self._enter(HoldState.STREAMING)

    def reader_left(self) -> None:
        """The caller disconnected: no later output is delivered."""
        self._delivered_when_left = self._delivered_tokens()

    def complete(self) -> MeteredUsage:
        """Resolve the hold of an answer that came to its end, and return its usage."""
        metered = self.meter.usage(is_complete=True)
        self._resolve(HoldEvent.COMPLETED, metered=metered)
        return metered

    def cancel(self) -> None:
        """Resolve the hold of a call that was closed, which ended what its backend bills.

        The charge is the larger of the reported and the counted usage, because the report may be
        older than the text, unless the backend reports continuously.
        """
        self._resolve(HoldEvent.CANCELLED)

    def break_off(self, *, may_have_been_billed: bool = True) -> None:
        """Resolve the hold of a call that ended before its answer did."""
        self._resolve(HoldEvent.BROKEN_OFF, may_have_been_billed=may_have_been_billed)

    def discard_answer(self) -> None:
        """Resolve the hold of a complete answer that was never sent. The operator pays."""
        self._resolve(HoldEvent.ANSWER_DISCARDED)

    async def fail(self, failure: GatewayError, *, may_have_been_billed: bool) -> None:
        """Resolve the hold of a failed request, and wait for the commit: SDKs retry at once."""
        self.trace.failure = without_frames(failure)
        resolution = self._resolution(event_of(failure), may_have_been_billed=may_have_been_billed)
        if resolution is not None:
            await self.batcher.resolve_before_answer(resolution)

    def _enter(self, state: HoldState) -> None:
        if self._state is not HoldState.RESOLVED:
            self._state = state

    def _resolve(
        self,
        event: HoldEvent,
        *,
        may_have_been_billed: bool = True,
        metered: MeteredUsage | None = None,
    ) -> None:
        resolution = self._resolution(
            event, may_have_been_billed=may_have_been_billed, metered=metered
        )
        if resolution is not None:
            self.batcher.start_resolving(resolution)

    def _resolution(
        self, event: HoldEvent, *, may_have_been_billed: bool, metered: MeteredUsage | None = None
    ) -> Resolution | None:
        """Return the ledger's resolution for `event`, and release the permit.

        Returns None if the hold is already resolved, or if it stays unsettled because the usage is
        not known yet. The tokens of an unsettled hold stay counted against the rate limits.
        """
        meter = self.meter
        facts = CallFacts(
            bills_without_answer=self.resolved.backend.bills_without_answer,
            may_have_been_billed=may_have_been_billed,
            has_output=meter.has_output,
            has_usage=meter.has_usage,
            has_whole_answer=meter.has_whole_answer,
        )
        ending = ending_for(self._state, event, facts)
        if ending is HoldEnding.NONE:
            return None
        delivered_tokens, state = self._delivered_tokens(), self._state
        self._state = HoldState.RESOLVED
        used_tokens: int | None = None
        try:
            if ending is HoldEnding.VOID:
                used_tokens = 0
                return self._void(operator_pays=None)
            if ending is HoldEnding.CHARGE:
                resolution = self._charged(event, facts, delivered_tokens, metered)
                used_tokens = _tokens(resolution.charge)
                return resolution
            if ending is HoldEnding.OPERATOR_PAYS:
                used_tokens = self._operator_pays(facts)
                rule = operator_rule(state, event, bills_without_answer=facts.bills_without_answer)
                return self._void(delivered_tokens, operator_pays=rule)
            self._keep_unsettled(facts, delivered_tokens)
            return None
        finally:
            self.permit.leave(used_tokens=used_tokens)

    def _delivered_tokens(self) -> int:
        """Count the output tokens that the caller has received or is being sent."""
        if self._delivered_when_left is not None:
            return self._delivered_when_left
        is_sent = self._state is HoldState.STREAMING
        return self.meter.counted_output_tokens() if is_sent else 0

    def _charged(
        self,
        event: HoldEvent,
        facts: CallFacts,
        delivered_tokens: int,
        metered: MeteredUsage | None,
    ) -> Resolution:
        # The report at the end of a complete answer counts, also where it is below our own count.
        is_complete = event is HoldEvent.COMPLETED or (
            facts.has_whole_answer and event is not HoldEvent.CANCELLED
        )
        metered = metered or self.meter.usage(is_complete=is_complete)
        charge, excess = pricing.charge(
            self.resolved.prices, metered.usage, self.hold.amount_pico_usd, used=metered.used
        )
        if metered.is_estimated:
            metrics.usage_estimated(self.resolved.model.backend)
        if metered.is_output_reported:
            delivered_tokens = min(delivered_tokens, charge.output_tokens)
        self.trace.charged(charge, is_estimated=metered.is_estimated)
        return Resolution(
            organization_id=self.hold.organization_id,
            reservation_id=self.hold.reservation_id,
            admitted_day=self.hold.admitted_day,
            kind=ResolutionKind.POST,
            charge=charge,
            excess_pico_usd=excess,
            delivered_tokens=delivered_tokens,
            is_estimated=metered.is_estimated,
            operator_pays=OperatorPays.ABOVE_HOLD if excess else None,
            model=self._answering_model,
        )

    def _void(self, delivered_tokens: int = 0, *, operator_pays: OperatorPays | None) -> Resolution:
        self.trace.charged(NOTHING, is_estimated=False)
        return Resolution(
            organization_id=self.hold.organization_id,
            reservation_id=self.hold.reservation_id,
            admitted_day=self.hold.admitted_day,
            kind=ResolutionKind.VOID,
            charge=NOTHING,
            excess_pico_usd=ZERO,
            delivered_tokens=delivered_tokens,
            is_estimated=False,
            operator_pays=operator_pays,
            model=self._answering_model,
        )

    def _operator_pays(self, facts: CallFacts) -> int:
        """Count what the operator pays, and return the tokens that count against rate limits."""
        metered = self.meter.usage(is_complete=facts.has_whole_answer)
        charge, excess = pricing.charge(
            self.resolved.prices, metered.usage, self.hold.amount_pico_usd, used=metered.used
        )
        ledger_metrics.operator_pays(OperatorAccount.UNJUDGED, charge.total_pico_usd + excess)
        return _tokens(charge)

    def _keep_unsettled(self, facts: CallFacts, delivered_tokens: int) -> None:
        """Keep the hold, and store the least that is certain by now as its minimum.

        A minimum is stored also where it is nothing: a hold without one counts as the hold of a
        lost worker.
        """
        logger.warning(
            "call_left_unsettled", extra={"reservation_id": str(self.hold.reservation_id)}
        )
        metered = self.meter.usage(is_complete=facts.has_whole_answer)
        minimum: Charge = NOTHING
        if facts.has_output or self.meter.has_report:
            minimum, _ = pricing.charge(
                self.resolved.prices, metered.usage, self.hold.amount_pico_usd, used=metered.used
            )
        if metered.is_output_reported:
            delivered_tokens = min(delivered_tokens, minimum.output_tokens)
        self.trace.left_unsettled(is_estimated=metered.is_estimated)
        self.batcher.leave_unsettled(
            Resolution(
                organization_id=self.hold.organization_id,
                reservation_id=self.hold.reservation_id,
                admitted_day=self.hold.admitted_day,
                kind=ResolutionKind.WRITE_OFF,
                charge=minimum,
                delivered_tokens=delivered_tokens,
                is_estimated=metered.is_estimated,
                model=self._answering_model,
            )
        )


def _tokens(charge: Charge) -> int:
    return charge.input_tokens + charge.cached_input_tokens + charge.output_tokens
