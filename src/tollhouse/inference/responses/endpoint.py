"""The Responses endpoint: translate requests to chat, encode OpenAI's object and events (OQ-59)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct

from tollhouse.backends.errors import PromptTooLong
from tollhouse.backends.types import (
    UpstreamChunk,
    UpstreamChunkChoice,
    UpstreamCompletion,
)
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import RequestId
from tollhouse.contract import response_events as events
from tollhouse.contract import response_result as wire
from tollhouse.contract.errors import POLICY_ERROR, ErrorBody, ErrorShape
from tollhouse.contract.response_tools import FREE_CHOICES, ToolIdentity
from tollhouse.contract.responses import ResponseRequest, check, output_bounds
from tollhouse.inference.endpoint import Finish, TranslatedRequest
from tollhouse.inference.engine_fields import TIERS, finish_reason
from tollhouse.inference.errors import AnswerTooLong
from tollhouse.inference.responses.client_tools import NO_ORIGINS
from tollhouse.inference.responses.echo import begun
from tollhouse.inference.responses.output import ResponseOutput
from tollhouse.inference.responses.parts import NO_LOGPROBS
from tollhouse.inference.responses.translation import translate, wants_logprobs
from tollhouse.inference.whole_messages import as_one_piece
from tollhouse.ledger.pricing import Usage

_HEADS: Final[dict[type[events.ResponseEvent], bytes]] = {
    kind: f"event: {kind.__struct_config__.tag}\ndata: ".encode() for kind in events.EVENTS
}
_CUTS: Final[dict[str, Literal["max_output_tokens", "content_filter"]]] = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
}
_CODES: Final = {
    POLICY_ERROR: "misalignment_policy_violation",
    "invalid_request_error": "invalid_prompt",
    "rate_limit_error": "rate_limit_exceeded",
}
"""The error codes that clients know; every other error becomes `server_error`.

Of the codes for policies, this one is of the answer. Codex repeats a request for unknown codes.
"""
KEPT_BYTES_MAX = 64 * 1024 * 1024
"""The bound of the answer, which is kept because the last event repeats it."""


class ResponsesEndpoint:
    """Translates requests of `POST /v1/responses`."""

    def translate(
        self, body: ResponseRequest, *, request_id: RequestId, now: datetime
    ) -> TranslatedRequest:
        """Return the request as chat. It is stateless: the body has the whole conversation."""
        refused = check(body)
        request, name_of, tools = translate(body, refused)
        return TranslatedRequest(
            request=request,
            encoder=ResponsesEncoder(body, request_id, now, tools),
            name_of=name_of,
            may_be_cut=body.truncation == "auto",
            refused_tools=tuple(refused.values()),
            demands_tool=body.tool_choice not in FREE_CHOICES,
        )


class ResponsesEncoder:
    """Encodes one answer. Its IDs derive from the request's, the same in every event (OQ-60)."""

    error_shape = ErrorShape.OPENAI
    streams_long_prompts = True

    def __init__(
        self,
        request: ResponseRequest,
        request_id: RequestId,
        now: datetime,
        tools: Mapping[str, ToolIdentity] = NO_ORIGINS,
    ) -> None:
        self._begun = begun(
            request, response_id=f"resp_{request_id.hex}", created_at=unix_seconds(now)
        )
        self._has_output_bound = bool(output_bounds(request))
        self._output = ResponseOutput(request_id, tools)
        self._shows_logprobs = wants_logprobs(request)
        self._finish_reason: str | None = None
        self._tier: str | None = None
        self._encoder = msgspec.json.Encoder()

    def answered_by(self, model: str, *, default_output_tokens: int) -> None:
        """Name the model that answers, and its output bound if the caller sent none."""
        bound = self._begun.max_output_tokens if self._has_output_bound else default_output_tokens
        self._begun = msgspec.structs.replace(self._begun, model=model, max_output_tokens=bound)

    # Whole

    def complete(self, completion: UpstreamCompletion, finish: Finish) -> bytes:
        """Encode the object with which a stream of the same answer would end."""
        self._tier = completion.service_tier
        for choice in completion.choices:
            _run(
                self._of_choice(
                    UpstreamChunkChoice(
                        index=choice.index,
                        delta=as_one_piece(choice.message),
                        logprobs=choice.logprobs,
                        finish_reason=choice.finish_reason,
                    )
                )
            )
        _run(self._output.end(is_cut=self._finish_reason in _CUTS))
        return self._encoder.encode(self._ended(finish))

    # Streamed

    def opening(self, first: Sequence[UpstreamChunk]) -> bytes:  # noqa: ARG002 - chat looks at it
        """Encode the two events with which a response begins."""
        numbers = self._output.numbers
        created = events.ResponseCreated(sequence_number=next(numbers), response=self._begun)
        going_on = events.ResponseInProgress(sequence_number=next(numbers), response=self._begun)
        return self._framed((created, going_on))

    def records(self, chunks: Sequence[UpstreamChunk]) -> bytes:
        """Encode new output. Usage is sent at the end."""
        told = self._framed(self._of_chunks(chunks))
        if self._output.kept_bytes > KEPT_BYTES_MAX:
            raise AnswerTooLong
        return told

    @property
    def retained_bytes(self) -> int:
        """The bytes that are kept for the last event, which repeats the whole answer."""
        return self._output.kept_bytes

    def closing(self, finish: Finish) -> Iterator[bytes]:
        """Encode the ends of all items, then the whole response, without an end marker (OQ-62).

        Several of these events repeat the answer: only one at a time is in memory.
        """
        is_cut = self._finish_reason in _CUTS
        for event in self._output.end(is_cut=is_cut):
            yield self._framed((event,))
        kind = events.ResponseIncomplete if is_cut else events.ResponseCompleted
        number = next(self._output.numbers)
        yield self._framed((kind(sequence_number=number, response=self._ended(finish)),))

    def failure(self, error: ErrorBody) -> bytes:
        """Encode the error as one event without output: visible output was already sent (OQ-63).

        The event `error` is sent before it for a prompt that is too long, as OpenAI does: SDKs
        raise what it says.
        """
        told: list[events.ResponseEvent] = []
        numbers = self._output.numbers
        if error.code == PromptTooLong.code:
            told.append(
                events.ResponseErrorEvent(
                    sequence_number=next(numbers),
                    code=error.code,
                    message=error.message,
                    param=error.param,
                    error=error,
                )
            )
        failed = msgspec.structs.replace(self._begun, status="failed", error=_error(error))
        told.append(events.ResponseFailed(sequence_number=next(numbers), response=failed))
        return self._framed(told)

    def _of_chunks(self, chunks: Sequence[UpstreamChunk]) -> Iterator[events.ResponseEvent]:
        for chunk in chunks:
            self._tier = chunk.service_tier or self._tier
            for choice in chunk.choices:
                yield from self._of_choice(choice)

    def _of_choice(self, choice: UpstreamChunkChoice) -> Iterable[events.ResponseEvent]:
        """Add the deltas of the only choice."""
        if choice.index != 0:
            return ()
        self._finish_reason = finish_reason(choice.finish_reason) or self._finish_reason
        logprobs = written(choice.logprobs) if self._shows_logprobs else NO_LOGPROBS
        return self._output.add(choice.delta, logprobs)

    def _ended(self, finish: Finish) -> wire.ResponseResult:
        cut = _CUTS.get(self._finish_reason or "")
        return msgspec.structs.replace(
            self._begun,
            status="completed" if cut is None else "incomplete",
            completed_at=unix_seconds(finish.at) if cut is None else None,
            incomplete_details=None if cut is None else wire.IncompleteDetails(reason=cut),
            output=self._output.shown(),
            service_tier=self._tier if self._tier in TIERS else self._begun.service_tier,
            usage=usage_of(finish.usage),
        )

    def _framed(self, told: Iterable[events.ResponseEvent]) -> bytes:
        """Encode a server-sent event with its type."""
        encode = self._encoder.encode
        return b"".join([b"%b%b\n\n" % (_HEADS[type(event)], encode(event)) for event in told])


def usage_of(usage: Usage) -> wire.ResponseUsage:
    """Return the charged usage in the form of the API."""
    return wire.ResponseUsage(
        input_tokens=usage.prompt_tokens,
        input_tokens_details={
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        output_tokens=usage.completion_tokens,
        output_tokens_details={"reasoning_tokens": usage.reasoning_tokens},
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
    )


def _error(error: ErrorBody) -> wire.ResponseError:
    """Return the error in the form of the API, whose codes clients know from OpenAI."""
    is_too_long = error.code == PromptTooLong.code
    return wire.ResponseError(
        code=error.code if is_too_long else _CODES.get(error.type, "server_error"),
        message=error.message,
        request_id=error.request_id,
        type=POLICY_ERROR if error.type == POLICY_ERROR else UNSET,
    )


def _run(told: Iterable[object]) -> None:
    """Run an iterator of events for its effects alone."""
    for _ in told:
        pass


Byte = Annotated[int, Meta(ge=0, le=255)]


class _Likely(Struct):
    """Add the bytes of tokens, which strict SDKs need and some engines omit."""

    token: str
    logprob: float
    bytes: list[Byte] | None = None

    def __post_init__(self) -> None:
        if self.bytes is None:
            self.bytes = list(self.token.encode())


class _ResponseToken(_Likely):
    top_logprobs: list[_Likely] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.top_logprobs is None:
            self.top_logprobs = []


class _ResponseLogprobs(Struct):
    content: list[_ResponseToken] | None = None


_encode = msgspec.json.Encoder().encode


def written(found: Any) -> Raw:  # noqa: ANN401 - as the backend has them
    """Return log probabilities as encoded JSON; an unknown form becomes an empty list."""
    if found is None:
        return NO_LOGPROBS
    try:
        tokens = msgspec.convert(found, _ResponseLogprobs).content
    except msgspec.ValidationError:
        return NO_LOGPROBS
    return Raw(_encode(tokens)) if tokens else NO_LOGPROBS
