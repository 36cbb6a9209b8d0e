"""The path of one inference request: resolve, reserve, evaluate, call the backend, settle.

Chat, responses and messages run through `Pipeline.run`, so that limits, admission, policies,
settlement and activity exist once. `docs/architecture.md` walks through it with file names.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from weakref import WeakValueDictionary

from msgspec.structs import replace

from tollhouse.backends.errors import BackendError, BackendRejected, PromptTooLong
from tollhouse.backends.replicas import may_move
from tollhouse.backends.types import UpstreamCompletion
from tollhouse.base.clock import Clock
from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import RequestId, ReservationId
from tollhouse.base.tasks import Tasks
from tollhouse.contract.errors import ErrorBody, ErrorShape
from tollhouse.evaluation import EvaluationInput, PolicyResolver, RequestEvaluation
from tollhouse.inference.calls import InferenceAnswer, InferenceCall, WholeAnswer
from tollhouse.inference.endpoint import TranslatedRequest
from tollhouse.inference.engine_fields import asked_completion, judged_completion
from tollhouse.inference.errors import ShuttingDown
from tollhouse.inference.exact_bound import with_exact_prompt
from tollhouse.inference.meter import finish_of, prompt_characters
from tollhouse.inference.model_resolver import ModelResolver, ResolvedModel
from tollhouse.inference.prepared_request import (
    PreparedRequest,
    candidates_of,
    charge_cpu_time,
    translated_request,
)
from tollhouse.inference.request_hold import RequestHold
from tollhouse.inference.stream_guard import check_answer, guarded_stream
from tollhouse.inference.streaming import StreamedAnswer, StreamParts
from tollhouse.inference.upstream_request import UpstreamRequestBuilder
from tollhouse.inference.upstream_stream import ChunkSource, FallbackStream, UpstreamStream
from tollhouse.keys.types import Customer
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.errors import DeadlinePassed, Uncovered
from tollhouse.ledger.types import Hold

SETTLING_GRACE = timedelta(seconds=30)
"""Time between the end of a call and the moment from which its hold counts as abandoned."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeouts:
    """How long a caller waits for the first byte of a stream, and for its admission."""

    head_wait_seconds: float
    admission: timedelta


class Pipeline:
    """Answers inference requests. One per worker."""

    def __init__(
        self,
        *,
        clock: Clock,
        tasks: Tasks,
        batcher: Batcher,
        policy_resolver: PolicyResolver,
        upstream_requests: UpstreamRequestBuilder,
        model_resolver: ModelResolver,
        timeouts: Timeouts,
        render_error: Callable[[GatewayError, RequestId, ErrorShape], ErrorBody],
    ) -> None:
        self._clock = clock
        self._tasks = tasks
        self._batcher = batcher
        self._policy_resolver = policy_resolver
        self._upstream_requests = upstream_requests
        self._model_resolver = model_resolver
        self._timeouts = timeouts
        self._render_error = render_error
        self._open_streams: WeakValueDictionary[RequestId, StreamedAnswer] = WeakValueDictionary()

    async def run(self, call: InferenceCall) -> InferenceAnswer:
        """Return the complete answer, or a stream that has begun.

        Raises only before the first byte of the answer is sent. The hold takes the permit over
        when it is committed; until then the permit belongs to the caller of this function.
        """
        prepared = await self._prepare(call)
        try:
            return await self._answer(prepared)
        except PromptTooLong as failure:
            return prepared.streamed_refusal(failure, self._render_error)

    async def _answer(self, prepared: PreparedRequest) -> InferenceAnswer:
        prepared, request_hold = await self._reserve(prepared)
        await self._evaluate_request(prepared, request_hold)
        if prepared.candidate.request.stream:
            return await self._stream(prepared, request_hold)
        return await self._complete(prepared, request_hold)

    # Before credit is held: a refusal needs no undoing.

    async def _prepare(self, call: InferenceCall) -> PreparedRequest:
        """Check the request, resolve its model and policies, and count it against token limits."""
        translated = charge_cpu_time(call.charge_cpu, translated_request, call)
        request = translated.request
        call.trace.model = request.model
        call.trace.is_stream = request.stream
        customer = await call.recheck()
        models = self._model_resolver.candidates(request.model, customer)
        call.trace.backend = models[0].model.backend
        applied = await self._policy_resolver.applied(
            customer.organization_id,
            customer.project_id,
            policy_version=customer.policy_version,
            selected=request.policy_ids or (),
        )
        prepared = charge_cpu_time(
            call.charge_cpu, self._check_and_encode, call, customer, models, translated
        )
        await call.permit.take_tokens(prepared.estimated_tokens)
        if applied is None:
            return prepared
        evaluation_input = EvaluationInput(
            request_id=call.request_id,
            customer=customer,
            request=request,
            name_of=translated.name_of,
            size_bytes=len(prepared.upstream_request.body),
        )
        evaluation = await self._policy_resolver.evaluation(evaluation_input, applied)
        return replace(prepared, evaluation=evaluation)

    def _check_and_encode(
        self,
        call: InferenceCall,
        customer: Customer,
        models: Sequence[ResolvedModel],
        translated: TranslatedRequest,
    ) -> PreparedRequest:
        """Check, bound and encode the request: CPU work that grows with its size."""
        name = translated.request.model
        is_named = models[0].id == name or models[0].id == self._model_resolver.id_of(name)
        candidate, *fallbacks = candidates_of(translated, models, is_named=is_named)
        prepared = PreparedRequest(
            call=call,
            customer=customer,
            candidate=candidate,
            fallbacks=tuple(fallbacks),
            encoder=translated.encoder,
            evaluation=None,
            prompt_characters=prompt_characters(candidate.request),
            upstream_request=self._upstream_requests.build(candidate, customer, call),
        )
        prepared.name_model()
        return prepared

    # Credit

    async def _reserve(self, prepared: PreparedRequest) -> tuple[PreparedRequest, RequestHold]:
        """Hold credit by bytes or else for the exact prompt, and return what the hold covers."""
        prepared.call.trace.queued_seconds = self._clock.monotonic_seconds()
        try:
            return prepared, await self._commit_hold(prepared)
        except Uncovered as refusal:
            smaller = prepared.within(refusal.available) or await with_exact_prompt(
                prepared,
                available=refusal.available,
                may_count=partial(
                    self._model_resolver.may_count, prepared.customer.organization_id
                ),
            )
            if smaller is None:
                raise
            may_be_stored = refusal.may_be_stored
        return smaller, await self._commit_hold(smaller, may_be_stored=may_be_stored)

    async def _commit_hold(
        self, prepared: PreparedRequest, *, may_be_stored: bool = False
    ) -> RequestHold:
        """Commit a hold. It takes over the permit, and releases it when it is resolved."""
        call, resolved = prepared.call, prepared.candidate.resolved
        admitted_at = self._clock.now()
        hold = Hold(
            organization_id=prepared.customer.organization_id,
            reservation_id=ReservationId(call.request_id),
            project_id=prepared.customer.project_id,
            api_key_id=prepared.customer.key_id,
            model=resolved.id,
            price_revision=resolved.price_revision,
            amount_pico_usd=prepared.amount_pico_usd,
            admitted_at=admitted_at,
            deadline_at=admitted_at + self._timeouts.admission + prepared.longest + SETTLING_GRACE,
            bills_without_answer=prepared.bills_without_answer,
        )
        await self._batcher.admit(
            hold, wait_max=self._timeouts.admission, may_be_stored=may_be_stored
        )
        call.trace.admitted_seconds = self._clock.monotonic_seconds()
        call.trace.money_held()
        call.end_pending()
        return RequestHold(
            hold=hold,
            resolved=resolved,
            meter=prepared.new_meter(),
            batcher=self._batcher,
            permit=call.permit.hand_over(),
            trace=call.trace,
        )

    async def _evaluate_request(self, prepared: PreparedRequest, request_hold: RequestHold) -> None:
        """Evaluate request policies. A refusal costs nothing: no backend was called."""
        try:
            try:
                if prepared.evaluation is not None:
                    await prepared.evaluation.check_request()
            finally:
                prepared.call.trace.judged_seconds = self._clock.monotonic_seconds()
            self._require_time(request_hold)
        except GatewayError as failure:
            await request_hold.fail(failure, may_have_been_billed=False)
            raise
        except BaseException:
            request_hold.break_off(may_have_been_billed=False)
            raise

    def _require_time(self, request_hold: RequestHold) -> datetime:
        """Raise `DeadlinePassed` after the hold's deadline, such as in a process that was paused.

        Soon after the deadline another process resolves the hold. Returns the present instant.
        """
        now = self._clock.now()
        if now >= request_hold.hold.deadline_at:
            raise DeadlinePassed
        return now

    # The backend call

    async def _complete(self, prepared: PreparedRequest, request_hold: RequestHold) -> WholeAnswer:
        """Return the complete answer.

        If the caller disconnects, the request still settles for the tokens that were generated.
        """
        trace = prepared.call.trace
        try:
            completion, trace.replica = await self._completion(prepared, request_hold)
            completion = self._requested_part(prepared, completion, request_hold)
        except BackendError as failure:
            trace.replica = failure.replica
            await request_hold.fail(failure, may_have_been_billed=failure.may_have_been_billed)
            if isinstance(failure, BackendRejected) and prepared.buffers_answer:
                raise failure.without_words() from None
            raise
        except BaseException:
            request_hold.break_off()
            raise
        if prepared.evaluation is not None:
            await self._evaluate_answer(prepared.evaluation, completion, request_hold)
        try:
            now = self._require_time(request_hold)
        except DeadlinePassed:
            request_hold.discard_answer()
            raise
        request_hold.start_sending()
        finish = finish_of(request_hold.complete(), at=now)
        return WholeAnswer(body=prepared.encoder.complete(completion, finish))

    async def _completion(
        self, prepared: PreparedRequest, request_hold: RequestHold
    ) -> tuple[UpstreamCompletion, str]:
        """Return the answer of the first candidate that gives one, and its replica."""
        while True:
            request = prepared.upstream(partial(self._may_call, prepared, request_hold))
            try:
                return await prepared.candidate.resolved.port.complete(request)
            except BackendError as failure:
                following = self._fallback(prepared, request_hold, failure)
                if following is None:
                    raise
                prepared = following

    def _fallback(
        self, prepared: PreparedRequest, request_hold: RequestHold, failure: BackendError
    ) -> PreparedRequest | None:
        """Return the request for the next candidate, or None if `failure` is the last word."""
        bills = prepared.candidate.resolved.backend.bills_without_answer
        if not prepared.fallbacks or not may_move(failure, bills_without_answer=bills):
            return None
        if not self._may_call(prepared, request_hold):
            return None
        candidate, *others = prepared.fallbacks
        following = replace(
            prepared,
            candidate=candidate,
            fallbacks=tuple(others),
            upstream_request=self._upstream_requests.build(
                candidate, prepared.customer, prepared.call
            ),
        )
        request_hold.switch(candidate.resolved, following.new_meter())
        following.name_model()
        return following

    def _may_call(self, prepared: PreparedRequest, request_hold: RequestHold) -> bool:
        """Return whether a further call may begin: its hold is open, and its caller is there."""
        is_open = self._clock.now() < request_hold.hold.deadline_at
        return is_open and not prepared.call.has_left()

    def _requested_part(
        self,
        prepared: PreparedRequest,
        completion: UpstreamCompletion,
        request_hold: RequestHold,
    ) -> UpstreamCompletion:
        """Count a complete answer, and return it without what was not requested."""
        prepared.call.trace.first_byte_seconds = self._clock.monotonic_seconds()
        request_hold.meter.see_completion(completion)
        completion = asked_completion(completion, prepared.candidate.request.n or 1)
        return judged_completion(completion) if prepared.buffers_answer else completion

    async def _evaluate_answer(
        self,
        evaluation: RequestEvaluation,
        completion: UpstreamCompletion,
        request_hold: RequestHold,
    ) -> None:
        """Evaluate response policies. A refused answer was generated and is charged."""
        request_hold.meter.answer_ended()
        try:
            await check_answer(evaluation, completion)
        except GatewayError as failure:
            await request_hold.fail(failure, may_have_been_billed=True)
            raise
        except BaseException:
            # A stopping worker does not wait for the verdict, and the answer is never sent.
            request_hold.discard_answer()
            raise

    async def _stream(self, prepared: PreparedRequest, request_hold: RequestHold) -> StreamedAnswer:
        request_id, shape = prepared.call.request_id, prepared.encoder.error_shape
        upstream: ChunkSource = self._upstream_stream(prepared, request_hold)
        if prepared.fallbacks:
            upstream = FallbackStream(
                upstream,
                self._following_streams(prepared, request_hold),
                may_switch=lambda: not answer.has_begun,
            )
        answer = StreamedAnswer(
            StreamParts(
                upstream=guarded_stream(upstream, prepared.evaluation, request_hold),
                encoder=prepared.encoder,
                request_hold=request_hold,
                output=self._policy_resolver.buffers.output_for(
                    prepared.customer.organization_id, is_withheld=prepared.buffers_answer
                ),
                keeps_request=prepared.evaluation is not None,
                render_error=lambda failure: self._render_error(failure, request_id, shape),
                tasks=self._tasks,
                clock=self._clock,
            )
        )
        self._open_streams[request_id] = answer
        await answer.prime(wait_seconds=self._timeouts.head_wait_seconds)
        return answer

    def _upstream_stream(
        self, prepared: PreparedRequest, request_hold: RequestHold
    ) -> UpstreamStream:
        return UpstreamStream(
            prepared.candidate.resolved.port,
            prepared.upstream(partial(self._may_call, prepared, request_hold)),
            request_hold.meter,
            completions=prepared.candidate.request.n or 1,
            before_call=partial(self._require_time, request_hold),
        )

    def _following_streams(
        self, prepared: PreparedRequest, request_hold: RequestHold
    ) -> Callable[[BackendError], UpstreamStream | None]:
        """Return a function that returns the next candidate's stream after a failure, or None."""

        def following(failure: BackendError) -> UpstreamStream | None:
            nonlocal prepared
            if (found := self._fallback(prepared, request_hold, failure)) is None:
                return None
            prepared = found
            return self._upstream_stream(prepared, request_hold)

        return following

    def end_streams(self) -> None:
        """End open streams because the worker stops: by an error status or an error event."""
        for answer in tuple(self._open_streams.values()):
            answer.interrupt(ShuttingDown())
