"""The money of one admitted request: ended exactly once, by whoever comes first."""

import logging
from dataclasses import dataclass, field
from enum import Enum, auto

from tollhouse.backends.errors import BackendError
from tollhouse.base.errors import GatewayError, without_frames
from tollhouse.base.money import PicoUsd
from tollhouse.inference.errors import ShuttingDown
from tollhouse.inference.meter import Meter, MeteredUsage
from tollhouse.inference.offers import Offer
from tollhouse.inference.trace import Trace
from tollhouse.judging.errors import PolicyEvaluatorUnavailable
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
from tollhouse.limits.limiter import Pass
from tollhouse.observability import metrics

logger = logging.getLogger("tollhouse.inference")


class Delivery(Enum):
    """How much of the answer its caller has."""

    NOTHING = auto()
    BUFFERED = auto()
    """Nothing: the answer waits for the verdict of a policy."""
    SENDING = auto()
    """All that the meter has counted so far."""


@dataclass(kw_only=True, slots=True)
class Reservation:
    """A committed hold and what will decide its end. Ending never waits: the process owns it."""

    hold: Hold
    offer: Offer
    meter: Meter
    batcher: Batcher
    traffic: Pass
    trace: Trace
    _is_ended: bool = field(default=False)
    _has_whole_answer: bool = field(default=False)
    _is_cancelled: bool = field(default=False)
    _delivery: Delivery = field(default=Delivery.NOTHING)
    _delivered_tokens: int | None = field(default=None)
    """What the caller had when it left."""

    @property
    def has_reader(self) -> bool:
        """False once the caller has left: the answer may end when it is known what was used."""
        return self._delivered_tokens is None

    @property
    def may_be_cut_short(self) -> bool:
        """Whether to hang up ends what the backend bills, at what is known to have been used."""
        backend = self.offer.backend
        is_known = self.meter.has_usage or not backend.bills_without_answer
        return backend.stops_when_cancelled and is_known

    def withhold(self) -> None:
        """Nothing is sent before the verdict of a policy."""
        self._delivery = Delivery.BUFFERED

    def release(self) -> None:
        """The verdict is there: what was withheld may be sent."""
        self._delivery = Delivery.NOTHING

    def sending(self) -> None:
        """All that the meter has counted is being sent to the caller."""
        self._delivery = Delivery.SENDING

    def reader_left(self) -> None:
        """Nothing more is sent, whatever else the backend generates."""
        self._delivered_tokens = self._delivered()

    def answer_ended(self) -> None:
        """The backend has said all that is asked of it, whether or not the caller gets it."""
        self._has_whole_answer = True

    def complete(self) -> None:
        """The backend's answer came to its end."""
        self._end(is_complete=True, may_have_been_billed=True)

    def cancel(self) -> None:
        """The call was cancelled, which ends what its backend bills.

        It is charged at the larger of what was reported and counted: the report is not its last.
        """
        self._is_cancelled = True
        self._end(is_complete=True, may_have_been_billed=True)

    def break_off(self, *, may_have_been_billed: bool = True) -> None:
        """The call ended before its answer did."""
        self._end(is_complete=False, may_have_been_billed=may_have_been_billed)

    def write_off(self) -> None:
        """Charge nothing: the gateway stops, and nobody got what was generated."""
        resolution = self._decide(
            may_have_been_billed=True, operator_pays=OperatorPays.GATEWAY_STOPPED
        )
        if resolution is not None:
            self.batcher.resolve(resolution)

    async def fail(self, failure: GatewayError, *, may_have_been_billed: bool) -> None:
        """As `break_off`, and wait a moment for the commit: SDKs retry an error at once."""
        self.trace.failure = without_frames(failure)
        resolution = self._decide(
            may_have_been_billed=may_have_been_billed, operator_pays=self._operator_pays(failure)
        )
        if resolution is not None:
            await self.batcher.resolve_before_answer(resolution)

    def _operator_pays(self, failure: GatewayError) -> OperatorPays | None:
        """Return the rule by which the caller is not charged for an answer that failed, if any.

        What a backend bills without an answer stays unsettled instead.
        """
        if isinstance(failure, PolicyEvaluatorUnavailable):
            return OperatorPays.POLICY_EVALUATOR_FAILED
        if self._delivery is not Delivery.BUFFERED:
            return None
        if isinstance(failure, ShuttingDown):
            return OperatorPays.GATEWAY_STOPPED
        is_lost = isinstance(failure, BackendError) and not self.offer.backend.bills_without_answer
        return OperatorPays.BACKEND_FAILED if is_lost else None

    def _end(self, *, is_complete: bool, may_have_been_billed: bool) -> None:
        resolution = self._decide(
            is_complete=is_complete, may_have_been_billed=may_have_been_billed
        )
        if resolution is not None:
            self.batcher.resolve(resolution)

    def _decide(
        self,
        *,
        is_complete: bool = False,
        may_have_been_billed: bool,
        operator_pays: OperatorPays | None = None,
    ) -> Resolution | None:
        """Return the resolution, or None if there was one before or the usage is not known yet."""
        if self._is_ended:
            return None
        self._is_ended = True
        try:
            if operator_pays is not None:
                return self._given_back(operator_pays)
            return self._decided(
                is_complete=is_complete or self._has_whole_answer,
                may_have_been_billed=may_have_been_billed,
            )
        finally:
            # Where it is not known what was used, what was taken for it stays taken.
            self.traffic.leave()

    def _decided(self, *, is_complete: bool, may_have_been_billed: bool) -> Resolution | None:
        ending = rules.ending(
            bills_without_answer=self.offer.backend.bills_without_answer and may_have_been_billed,
            is_complete=is_complete,
            has_output=self.meter.has_output,
            has_usage=self.meter.has_usage,
        )
        if ending is Ending.VOID:
            return self._resolution(ResolutionKind.VOID, NOTHING)
        is_complete = is_complete and not self._is_cancelled
        metered = self.meter.usage(is_complete=is_complete)
        charge, excess = self._charge(metered)
        self.trace.is_estimated = metered.is_estimated
        if ending is Ending.KEEP_UNSETTLED:
            self._leave_unsettled(charge)
            return None
        if metered.is_estimated:
            metrics.usage_estimated(self.offer.model.backend)
        # The report at the end of a complete answer is believed, also where it is below our count.
        delivered = self._delivered()
        return self._resolution(
            ResolutionKind.POST,
            charge,
            excess,
            delivered_tokens=min(delivered, charge.output_tokens) if is_complete else delivered,
            operator_pays=OperatorPays.ABOVE_HOLD if excess else None,
        )

    def _delivered(self) -> int:
        """Count the output tokens that the caller has or is being sent."""
        if self._delivered_tokens is not None:
            return self._delivered_tokens
        is_sent = self._delivery is Delivery.SENDING
        return self.meter.counted_output_tokens() if is_sent else 0

    def _charge(self, metered: MeteredUsage) -> tuple[Charge, PicoUsd]:
        return pricing.charge(
            self.offer.prices, metered.usage, self.hold.amount_pico_usd, used=metered.used
        )

    def _given_back(self, operator_pays: OperatorPays) -> Resolution:
        """Give the hold back whole, whatever the backend bills."""
        if not self.meter.has_output and not self.meter.has_usage:
            return self._resolution(ResolutionKind.VOID, NOTHING)
        charge, excess = self._charge(self.meter.usage(is_complete=self._has_whole_answer))
        metrics.unjudged_absorbed(charge.total_pico_usd + excess)
        # Traffic it was, whoever pays for it.
        self.traffic.leave(used_tokens=_tokens(charge))
        return self._resolution(
            ResolutionKind.VOID,
            NOTHING,
            delivered_tokens=self._delivered(),
            operator_pays=operator_pays,
        )

    def _resolution(
        self,
        kind: ResolutionKind,
        charge: Charge,
        excess: PicoUsd = ZERO,
        *,
        delivered_tokens: int = 0,
        operator_pays: OperatorPays | None = None,
    ) -> Resolution:
        trace = self.trace
        trace.input_tokens = charge.input_tokens
        trace.cached_input_tokens = charge.cached_input_tokens
        trace.output_tokens = charge.output_tokens
        trace.cost_pico_usd = charge.total_pico_usd
        self.traffic.leave(used_tokens=_tokens(charge))
        trace.money_decided()
        return Resolution(
            organization_id=self.hold.organization_id,
            reservation_id=self.hold.reservation_id,
            admitted_day=self.hold.admitted_day,
            kind=kind,
            charge=charge,
            excess_pico_usd=excess,
            delivered_tokens=delivered_tokens,
            is_estimated=trace.is_estimated,
            operator_pays=operator_pays,
        )

    def _leave_unsettled(self, minimum: Charge) -> None:
        """Keep the hold until there is evidence, and store the least that is certain by now."""
        logger.warning(
            "call_left_unsettled", extra={"reservation_id": str(self.hold.reservation_id)}
        )
        self.trace.cost_pico_usd = None
        self.trace.money_decided()
        if not self.meter.has_output and not self.meter.has_usage:
            return
        self.batcher.leave_unsettled(
            Resolution(
                organization_id=self.hold.organization_id,
                reservation_id=self.hold.reservation_id,
                admitted_day=self.hold.admitted_day,
                kind=ResolutionKind.ABSORB,
                charge=minimum,
                delivered_tokens=self._delivered(),
                is_estimated=self.trace.is_estimated,
            )
        )


def _tokens(charge: Charge) -> int:
    return charge.input_tokens + charge.cached_input_tokens + charge.output_tokens
