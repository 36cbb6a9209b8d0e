"""A checked request: the models that may answer it, and the most that it can use and cost."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import ParamSpec, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tollhouse.backends.errors import PromptTooLong
from tollhouse.backends.types import MessageHints, UpstreamRequest
from tollhouse.base.errors import GatewayError, InvalidRequest, without_frames
from tollhouse.base.ids import RequestId
from tollhouse.base.money import PicoUsd
from tollhouse.catalog.errors import ModelNotReady
from tollhouse.catalog.types import CONTINUOUS_USAGE
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.errors import ErrorBody, ErrorShape, InputNotCut, UnsupportedOption
from tollhouse.evaluation import RequestEvaluation
from tollhouse.inference.calls import InferenceCall, WholeAnswer
from tollhouse.inference.dropped_tools import without_unsupported_tools
from tollhouse.inference.endpoint import AnswerEncoder, TranslatedRequest
from tollhouse.inference.messages_options import check_messages_options
from tollhouse.inference.meter import Meter, tokens_of
from tollhouse.inference.model_resolver import ResolvedModel
from tollhouse.inference.options import (
    asks_for_reasoning,
    check_options,
    check_output_bound,
    without_optional,
)
from tollhouse.keys.types import Customer
from tollhouse.ledger import bounds, pricing
from tollhouse.ledger.pricing import TokenBound

P = ParamSpec("P")
T = TypeVar("T")


class Candidate(Struct, frozen=True, kw_only=True):
    """A model that may answer, the request in the form that it accepts, and the most it can use."""

    resolved: ResolvedModel
    request: ChatRequest
    bound: TokenBound
    dropped_tools: tuple[str, ...]
    hints: MessageHints | None = None

    @property
    def amount_pico_usd(self) -> PicoUsd:
        """The most that an answer of this model can cost."""
        return pricing.reserve(self.resolved.prices, self.bound)


class PreparedRequest(Struct, frozen=True, kw_only=True):
    """A request that is ready to be reserved and sent. `fallbacks` are tried after `candidate`."""

    call: InferenceCall
    customer: Customer
    candidate: Candidate
    fallbacks: tuple[Candidate, ...]
    encoder: AnswerEncoder
    evaluation: RequestEvaluation | None
    prompt_characters: int
    upstream_request: UpstreamRequest

    @property
    def buffers_answer(self) -> bool:
        """Whether the answer waits for the verdict of a policy."""
        return self.evaluation is not None and self.evaluation.buffers_answer

    @property
    def estimated_tokens(self) -> int:
        """The tokens that rate limits count until the usage is known."""
        bound = self.candidate.bound
        prompt = min(tokens_of(self.prompt_characters), bound.prompt_tokens)
        return prompt + bound.output_tokens * bound.completions

    @property
    def amount_pico_usd(self) -> PicoUsd:
        """The most that the request can cost, whichever candidate answers."""
        if not self.fallbacks:
            return self.candidate.amount_pico_usd
        return max(each.amount_pico_usd for each in (self.candidate, *self.fallbacks))

    @property
    def longest(self) -> timedelta:
        """The longest time that evaluation and the calls to all candidates can take together."""
        longest = self.candidate.resolved.longest_call
        for fallback in self.fallbacks:
            longest += fallback.resolved.longest_call
        if self.evaluation is not None:
            longest += timedelta(seconds=self.evaluation.longest_seconds)
        return longest

    @property
    def bills_without_answer(self) -> bool:
        """Whether a candidate's backend may charge for a call that got no answer."""
        bills = self.candidate.resolved.backend.bills_without_answer
        for fallback in self.fallbacks:
            bills = bills or fallback.resolved.backend.bills_without_answer
        return bills

    def within(self, available: PicoUsd) -> "PreparedRequest | None":
        """Return the request without the fallbacks that are too dear, or None if none is."""
        if not self.fallbacks or self.candidate.amount_pico_usd > available:
            return None
        kept = tuple(each for each in self.fallbacks if each.amount_pico_usd <= available)
        return None if len(kept) == len(self.fallbacks) else replace(self, fallbacks=kept)

    def with_exact_bound(self, bound: TokenBound) -> "PreparedRequest":
        """Return the request with an exact bound, which holds for the first candidate alone."""
        return replace(self, candidate=replace(self.candidate, bound=bound), fallbacks=())

    def new_meter(self) -> Meter:
        """Return a meter for an answer of the present candidate."""
        return Meter(
            prompt_characters=self.prompt_characters,
            bound=self.candidate.bound,
            has_continuous_usage=not CONTINUOUS_USAGE.isdisjoint(
                self.candidate.resolved.backend.takes
            ),
        )

    def upstream(self, may_move: Callable[[], bool]) -> UpstreamRequest:
        """Return the request for the present candidate, with what bounds further attempts."""
        return replace(
            self.upstream_request,
            is_last_candidate=not self.fallbacks,
            may_move=may_move,
            candidate=self.candidate.resolved.id,
            attempts=self.call.trace.attempts,
        )

    def streamed_refusal(
        self,
        failure: PromptTooLong,
        render_error: Callable[[GatewayError, RequestId, ErrorShape], ErrorBody],
    ) -> WholeAnswer:
        """Return `failure` as a whole stream, or raise it if its clients look at the status."""
        encoder, call = self.encoder, self.call
        if not (self.candidate.request.stream and encoder.streams_long_prompts):
            raise failure
        call.trace.failure = without_frames(failure)
        error = render_error(failure, call.request_id, encoder.error_shape)
        return WholeAnswer(body=encoder.opening(()) + encoder.failure(error), is_events=True)

    def name_model(self) -> None:
        """Tell the encoder and the record of the request which model answers."""
        resolved, trace = self.candidate.resolved, self.call.trace
        name = self.candidate.request.model
        trace.model, trace.backend = resolved.id, resolved.model.backend
        trace.requested_model = None if name == resolved.id else name
        trace.dropped_tools = self.candidate.dropped_tools
        self.encoder.answered_by(
            resolved.id, default_output_tokens=resolved.bounds.default_output_tokens
        )


def translated_request(call: InferenceCall) -> TranslatedRequest:
    """Return the call's request in the form of a chat. Raises for what no model supports."""
    try:
        return call.endpoint.translate(call.body, request_id=call.request_id, now=call.now)
    except UnsupportedOption as refusal:
        raise refusal.with_model(call.body.model) from None


def checked(translated: TranslatedRequest, resolved: ResolvedModel) -> Candidate:
    """Return a candidate. Raises for what its model does not have, or what exceeds its bounds."""
    request, dropped_tools = translated.request, ()
    if translated.refused_tools or resolved.model.drops_unsupported_tools:
        request, dropped_tools = without_unsupported_tools(translated, resolved.model)
    if translated.optional:
        request = without_optional(request, resolved.model, translated.optional)
    request = check_options(request, resolved.model, resolved.backend, translated.name_of)
    check_output_bound(request, resolved.model, translated.name_of)
    bound = bounds.of_chat_request(request, resolved.bounds)
    hints = None
    if resolved.backend.dialect == "anthropic":
        hints = translated.hints
        thinks = asks_for_reasoning(request) or (hints is not None and hints.thinks_adaptively)
        can_think = "reasoning" in resolved.model.features
        check_messages_options(request, translated.name_of, thinks=thinks and can_think)
    if hints is not None and hints.thoughts:
        tokens = bound.prompt_tokens + hints.signature_bytes
        bound = replace(bound, prompt_tokens=min(tokens, resolved.bounds.context_length))
    if translated.may_be_cut and not bounds.fits_context(bound, resolved.bounds):
        raise InputNotCut(model=request.model, context_length=resolved.model.context_length)
    return Candidate(
        resolved=resolved,
        request=request,
        bound=bound,
        dropped_tools=dropped_tools,
        hints=hints,
    )


def candidates_of(
    translated: TranslatedRequest, models: Sequence[ResolvedModel], *, is_named: bool
) -> list[Candidate]:
    """Return the candidates among ready models; `is_named` says that the first is the named one.

    Raises what the named model refuses. If it is not ready, a fallback that lacks what the request
    needs is left out, and `ModelNotReady` is raised if none is left.
    """
    if len(models) == 1 and is_named:
        return [checked(translated, models[0])]
    named = [checked(translated, models[0])] if is_named else []
    found = [*named, *_checked_fallbacks(translated, models[len(named) :])]
    if not found:
        raise ModelNotReady
    return found


def _checked_fallbacks(
    translated: TranslatedRequest, models: Sequence[ResolvedModel]
) -> Iterator[Candidate]:
    """Yield the fallbacks that have everything that the request needs."""
    for resolved in models:
        try:
            yield checked(translated, resolved)
        except (InvalidRequest, UnsupportedOption):
            continue


def charge_cpu_time(
    charge: Callable[[float], None] | None,
    work: Callable[P, T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Run `work`, and pass the CPU seconds that it took to `charge`, also if it raises."""
    if charge is None:
        return work(*args, **kwargs)
    began_seconds = time.thread_time()
    try:
        return work(*args, **kwargs)
    finally:
        charge(time.thread_time() - began_seconds)
