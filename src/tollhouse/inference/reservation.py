"""The money of one admitted request: ended exactly once, by whoever comes first."""

import logging
from dataclasses import dataclass, field

from tollhouse.backends.errors import BackendError
from tollhouse.base.errors import GatewayError
from tollhouse.base.money import PicoUsd
from tollhouse.inference.errors import ShuttingDown
from tollhouse.inference.meter import Meter
from tollhouse.inference.offers import Offer
from tollhouse.inference.trace import Trace
from tollhouse.judging.errors import PolicyEvaluatorUnavailable
from tollhouse.ledger import pricing, rules
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.rules import Ending
from tollhouse.ledger.types import NOTHING, ZERO, Charge, Hold, Resolution, ResolutionKind
from tollhouse.limits.limiter import Pass
from tollhouse.observability import metrics

logger = logging.getLogger("tollhouse.inference")


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
    is_withheld: bool = field(default=False)
    """Nothing of the answer has left, because nobody has judged it yet."""
    has_no_reader: bool = field(default=False)
    """The caller has left: the answer may end as soon as it is known what was used."""

    @property
    def may_be_cut_short(self) -> bool:
        """Whether to hang up ends what the backend bills, at what is known to have been used."""
        backend = self.offer.backend
        is_known = self.meter.has_usage or not backend.bills_without_answer
        return backend.stops_when_cancelled and is_known

    def answer_ended(self) -> None:
        """The backend has said all that is asked of it, whether or not the caller gets it."""
        self._has_whole_answer = True

    def complete(self) -> None:
        """The backend's answer came to its end."""
        self._end(is_complete=True, may_have_been_billed=True)

    def break_off(self, *, may_have_been_billed: bool = True) -> None:
        """The call ended before its answer did."""
        self._end(is_complete=False, may_have_been_billed=may_have_been_billed)

    def absorb(self) -> None:
        """Nobody got anything, and it was not the caller's doing: whatever it cost is ours."""
        resolution = self._decide(may_have_been_billed=True, is_charged=False)
        if resolution is not None:
            self.batcher.resolve(resolution)

    async def fail(self, failure: GatewayError, *, may_have_been_billed: bool) -> None:
        """As `break_off`, and wait a moment for the commit: SDKs retry an error at once."""
        self.trace.failure = failure
        resolution = self._decide(
            may_have_been_billed=may_have_been_billed,
            # Nobody could judge it: the house pays the backend, and the caller nobody.
            is_charged=not isinstance(failure, PolicyEvaluatorUnavailable)
            and not (self.is_withheld and self._is_not_the_callers(failure)),
        )
        if resolution is not None:
            await self.batcher.resolve_before_answer(resolution)

    def _is_not_the_callers(self, failure: GatewayError) -> bool:
        """Whether an answer of which nothing has left was lost by the gateway or the backend.

        What a backend bills all the same is looked into.
        """
        is_lost = isinstance(failure, BackendError) and not self.offer.backend.bills_without_answer
        return is_lost or isinstance(failure, ShuttingDown)

    def _end(self, *, is_complete: bool, may_have_been_billed: bool) -> None:
        resolution = self._decide(
            is_complete=is_complete, may_have_been_billed=may_have_been_billed
        )
        if resolution is not None:
            self.batcher.resolve(resolution)

    def _decide(
        self, *, is_complete: bool = False, may_have_been_billed: bool, is_charged: bool = True
    ) -> Resolution | None:
        """Nothing when it was decided before, or nobody can know yet."""
        if self._is_ended:
            return None
        self._is_ended = True
        try:
            if not is_charged:
                return self._given_back()
            return self._decided(is_complete=is_complete, may_have_been_billed=may_have_been_billed)
        finally:
            # Where it is not known what was used, what was taken for it stays taken.
            self.traffic.leave()

    def _decided(self, *, is_complete: bool, may_have_been_billed: bool) -> Resolution | None:
        ending = rules.ending(
            bills_without_answer=self.offer.backend.bills_without_answer and may_have_been_billed,
            is_complete=is_complete or self._has_whole_answer,
            has_output=self.meter.has_output,
            has_usage=self.meter.has_usage,
        )
        if ending is Ending.KEEP_UNSETTLED:
            self._leave_unsettled()
            return None
        if ending is Ending.VOID:
            return self._resolution(ResolutionKind.VOID, NOTHING)
        return self._post()

    def _post(self) -> Resolution:
        charge, excess = pricing.charge(
            self.offer.prices, self.meter.usage(), self.hold.amount_pico_usd
        )
        return self._resolution(ResolutionKind.POST, charge, excess)

    def _given_back(self) -> Resolution:
        """The hold is given back whole, whatever the backend bills."""
        if self.meter.has_output or self.meter.has_usage:
            charge, excess = pricing.charge(
                self.offer.prices, self.meter.usage(), self.hold.amount_pico_usd
            )
            metrics.unjudged_absorbed(charge.total_pico_usd + excess)
            # Traffic it was, whoever pays for it.
            self.traffic.leave(used_tokens=_tokens(charge))
        return self._resolution(ResolutionKind.VOID, NOTHING)

    def _resolution(
        self, kind: ResolutionKind, charge: Charge, excess: PicoUsd = ZERO
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
        )

    def _leave_unsettled(self) -> None:
        """The reaper will mark it; until there is evidence, what it cost is not known."""
        logger.warning(
            "call_left_unsettled", extra={"reservation_id": str(self.hold.reservation_id)}
        )
        self.trace.cost_pico_usd = None
        self.trace.money_decided()


def _tokens(charge: Charge) -> int:
    return charge.input_tokens + charge.cached_input_tokens + charge.output_tokens
