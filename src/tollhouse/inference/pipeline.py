"""One request on its way to a model and back: resolve, reserve, judge, call, settle.

Every operation that generates runs through here, so that limits, admission, policies, settlement
and activity exist once. The order is that of the whole gateway (docs/architecture.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from weakref import WeakSet

from tollhouse.backends.errors import BackendError, BackendRejected
from tollhouse.backends.types import Ask, UpstreamCompletion
from tollhouse.base.clock import Clock
from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import RequestId, ReservationId
from tollhouse.base.tasks import Tasks
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.errors import ErrorBody, InputNotCut, UnsupportedOption
from tollhouse.inference.asks import Asks
from tollhouse.inference.calls import InferenceAnswer, InferenceCall, WholeAnswer, busy
from tollhouse.inference.courtroom import Matter
from tollhouse.inference.engine_fields import asked_completion, judged_completion
from tollhouse.inference.errors import ShuttingDown
from tollhouse.inference.hearing import Hearing
from tollhouse.inference.holding import judge_whole, through
from tollhouse.inference.meter import Meter, finish_of
from tollhouse.inference.offers import Offer, Offers
from tollhouse.inference.options import check_options, check_output_bound
from tollhouse.inference.policing import Policing
from tollhouse.inference.reservation import Reservation
from tollhouse.inference.streaming import StreamedAnswer, StreamParts, Upstream
from tollhouse.inference.surface import Rendering, Translated
from tollhouse.inference.text_tokens import prompt_characters, tokens_of
from tollhouse.inference.tightening import tightened
from tollhouse.keys.types import Customer
from tollhouse.ledger import bounds, pricing
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.errors import Uncovered
from tollhouse.ledger.pricing import TokenBound
from tollhouse.ledger.types import Hold

SETTLING_GRACE = timedelta(seconds=30)
"""Between the end of a call and the moment from which its hold counts as forgotten."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How long a caller waits in silence, and for its admission."""

    head_wait_seconds: float
    admission: timedelta


@dataclass(frozen=True, kw_only=True, slots=True)
class _Prepared:
    """A request that may be paid for: what it asks, of whom, and what it can use at most."""

    call: InferenceCall
    customer: Customer
    request: ChatRequest
    rendering: Rendering
    offer: Offer
    hearing: Hearing | None
    bound: TokenBound
    prompt_characters: int
    ask: Ask

    @property
    def holds_answer(self) -> bool:
        return self.hearing is not None and self.hearing.holds_answer


class Pipeline:
    """One per worker."""

    def __init__(
        self,
        *,
        clock: Clock,
        tasks: Tasks,
        batcher: Batcher,
        policing: Policing,
        asks: Asks,
        offers: Offers,
        patience: Patience,
        show: Callable[[GatewayError, RequestId], ErrorBody],
    ) -> None:
        self._clock = clock
        self._tasks = tasks
        self._batcher = batcher
        self._policing = policing
        self._asks = asks
        self._offers = offers
        self._patience = patience
        self._show = show
        self._open: WeakSet[StreamedAnswer] = WeakSet()

    async def run(self, call: InferenceCall) -> InferenceAnswer:
        """The answer, or the beginning of one. What is raised was raised before any byte left."""
        try:
            prepared = await self._prepare(call)
            reservation = await self._reserve(prepared)
        except BaseException:
            call.traffic.leave(used_tokens=0)
            raise
        await self._judge(prepared, reservation)
        if prepared.request.stream:
            return await self._stream(prepared, reservation)
        return await self._whole(prepared, reservation)

    # Before money

    async def _prepare(self, call: InferenceCall) -> _Prepared:
        """Nothing is reserved yet, so whatever is refused here costs nothing to undo."""
        with busy(call.charge):
            translated = _translated(call)
        request = translated.request
        call.trace.model = request.model
        call.trace.is_stream = request.stream
        customer = await call.recheck()
        offer = self._offers.find(request.model, customer)
        call.trace.backend = offer.model.backend
        applied = await self._policing.applied(
            customer.organization_id,
            customer.project_id,
            policy_version=customer.policy_version,
            selected=request.policy_ids or (),
        )
        with busy(call.charge):
            prepared = self._prepared(call, customer, offer, translated)
        await call.traffic.take_tokens(_estimated_tokens(prepared))
        if applied is None:
            return prepared
        matter = Matter(
            request_id=call.request_id,
            customer=customer,
            request=request,
            name_of=translated.name_of,
            size_bytes=len(prepared.ask.body),
        )
        return replace(prepared, hearing=await self._policing.hearing(matter, applied))

    def _prepared(
        self, call: InferenceCall, customer: Customer, offer: Offer, translated: Translated
    ) -> _Prepared:
        """Check, encode and bound the request. This takes longer the more it contains."""
        request = check_options(translated.request, offer.model, offer.backend, translated.name_of)
        check_output_bound(request, offer.model, translated.name_of)
        bound = bounds.of_chat_request(request, offer.bounds)
        if translated.may_be_cut and not bounds.fits_context(bound, offer.bounds):
            raise InputNotCut(request.model, context_length=offer.model.context_length)
        return _Prepared(
            call=call,
            customer=customer,
            request=request,
            rendering=translated.rendering,
            offer=offer,
            hearing=None,
            bound=bound,
            prompt_characters=prompt_characters(request),
            ask=self._asks.of(request, offer, customer, session=call.session),
        )

    # Money

    async def _reserve(self, prepared: _Prepared) -> Reservation:
        """What does not fit by its bytes may fit by its tokens."""
        prepared.call.trace.queued_seconds = self._clock.monotonic_seconds()
        try:
            return await self._admit(prepared)
        except Uncovered as refusal:
            # While a policy must judge the request first, no backend sees it in any form.
            if prepared.hearing is not None and prepared.hearing.guards_request:
                raise
            bound = await tightened(
                prepared.request,
                prepared.offer,
                prepared.bound,
                available=refusal.available,
                may_count=partial(self._offers.may_count, prepared.customer.organization_id),
            )
            if bound is None:
                raise
        return await self._admit(replace(prepared, bound=bound))

    async def _admit(self, prepared: _Prepared) -> Reservation:
        call, offer = prepared.call, prepared.offer
        admitted_at = self._clock.now()
        hold = Hold(
            organization_id=prepared.customer.organization_id,
            reservation_id=ReservationId(call.request_id),
            project_id=prepared.customer.project_id,
            api_key_id=prepared.customer.key_id,
            model=offer.id,
            price_revision=offer.price_revision,
            amount_pico_usd=pricing.reserve(offer.prices, prepared.bound),
            admitted_at=admitted_at,
            deadline_at=admitted_at + self._longest(prepared),
            bills_without_answer=offer.backend.bills_without_answer,
        )
        await self._batcher.admit(hold, patience=self._patience.admission)
        call.trace.admitted_seconds = self._clock.monotonic_seconds()
        call.trace.money_held()
        return Reservation(
            hold=hold,
            offer=offer,
            meter=Meter(prompt_characters=prepared.prompt_characters, bound=prepared.bound),
            batcher=self._batcher,
            traffic=call.traffic,
            trace=call.trace,
        )

    def _longest(self, prepared: _Prepared) -> timedelta:
        calling = timedelta(seconds=prepared.offer.backend.total_seconds)
        longest = self._patience.admission + calling + SETTLING_GRACE
        if prepared.hearing is not None:
            longest += timedelta(seconds=prepared.hearing.longest_seconds)
        return longest

    async def _judge(self, prepared: _Prepared, reservation: Reservation) -> None:
        """Whatever is refused here has cost nothing: no backend has heard of it."""
        try:
            if prepared.hearing is not None:
                await prepared.hearing.judge_request()
        except GatewayError as failure:
            await reservation.fail(failure, may_have_been_billed=False)
            raise
        except BaseException:
            reservation.break_off(may_have_been_billed=False)
            raise
        prepared.call.trace.judged_seconds = self._clock.monotonic_seconds()

    # The call

    async def _whole(self, prepared: _Prepared, reservation: Reservation) -> WholeAnswer:
        """A caller who leaves meanwhile is not waited for, and pays for what was generated."""
        try:
            completion, replica = await prepared.offer.port.complete(prepared.ask)
        except BackendError as failure:
            prepared.call.trace.replica = failure.replica
            await reservation.fail(failure, may_have_been_billed=failure.may_have_been_billed)
            if isinstance(failure, BackendRejected) and prepared.holds_answer:
                raise failure.without_words() from None
            raise
        except BaseException:
            reservation.break_off()
            raise
        trace = prepared.call.trace
        trace.replica = replica
        trace.first_byte_seconds = self._clock.monotonic_seconds()
        reservation.meter.see_completion(completion)
        completion = asked_completion(completion, prepared.request.n or 1)
        if prepared.holds_answer:
            completion = judged_completion(completion)
        if prepared.hearing is not None:
            await self._judge_answer(prepared.hearing, completion, reservation)
        reservation.sending()
        reservation.complete()
        metered = reservation.meter.usage(is_complete=True)
        finish = finish_of(metered, at=self._clock.now())
        return WholeAnswer(body=prepared.rendering.complete(completion, finish))

    async def _judge_answer(
        self, hearing: Hearing, completion: UpstreamCompletion, reservation: Reservation
    ) -> None:
        """What is refused here was generated all the same."""
        reservation.answer_ended()
        try:
            await judge_whole(hearing, completion)
        except GatewayError as failure:
            await reservation.fail(failure, may_have_been_billed=True)
            raise
        except BaseException:
            # A worker that stops does not wait for the verdict, and nobody gets what was generated.
            reservation.write_off()
            raise

    async def _stream(self, prepared: _Prepared, reservation: Reservation) -> StreamedAnswer:
        request_id = prepared.call.request_id
        answer = StreamedAnswer(
            StreamParts(
                upstream=through(
                    Upstream(
                        prepared.offer.port,
                        prepared.ask,
                        reservation.meter,
                        completions=prepared.request.n or 1,
                    ),
                    prepared.hearing,
                    reservation,
                ),
                rendering=prepared.rendering,
                reservation=reservation,
                output=self._policing.buffers.output_of(
                    prepared.customer.organization_id, is_withheld=prepared.holds_answer
                ),
                keeps_request=prepared.hearing is not None,
                show=lambda failure: self._show(failure, request_id),
                tasks=self._tasks,
                clock=self._clock,
            )
        )
        self._open.add(answer)
        await answer.prime(wait_seconds=self._patience.head_wait_seconds)
        return answer

    def end_streams(self) -> None:
        """The worker stops: what is open ends by an event, or by a status if none has left."""
        for answer in tuple(self._open):
            answer.interrupt(ShuttingDown())


def _translated(call: InferenceCall) -> Translated:
    try:
        return call.surface.translate(call.body, request_id=call.request_id, now=call.now)
    except UnsupportedOption as refusal:
        raise refusal.with_model(call.body.model) from None


def _estimated_tokens(prepared: _Prepared) -> int:
    bound = prepared.bound
    prompt = tokens_of(prepared.prompt_characters)
    return min(prompt, bound.prompt_tokens) + bound.output_tokens * bound.completions
