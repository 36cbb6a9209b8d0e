"""Responses: a chat on the way in; OpenAI's object and typed events on the way out (OQ-59, 60)."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec
from msgspec import UNSET

from tollhouse.backends.types import (
    UpstreamChunk,
    UpstreamChunkChoice,
    UpstreamCompletion,
)
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import RequestId
from tollhouse.contract import response_events as events
from tollhouse.contract import response_result as wire
from tollhouse.contract.errors import POLICY_ERROR, ErrorBody
from tollhouse.contract.responses import ResponseRequest, check
from tollhouse.inference.engine_fields import TIERS, finish_reason
from tollhouse.inference.errors import AnswerTooLong
from tollhouse.inference.response_echo import begun
from tollhouse.inference.response_logprobs import written
from tollhouse.inference.response_output import Output
from tollhouse.inference.response_parts import NO_LOGPROBS
from tollhouse.inference.response_pieces import as_one_piece
from tollhouse.inference.response_translation import translate, wants_logprobs
from tollhouse.inference.surface import Finish, Translated
from tollhouse.ledger.pricing import Usage

_HEADS: Final[dict[type[events.ResponseEvent], bytes]] = {
    kind: f"event: {kind.__struct_config__.tag}\ndata: ".encode() for kind in events.EVENTS
}
_CUTS: Final[dict[str, Literal["max_output_tokens", "content_filter"]]] = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
}
_CODES: Final = {
    POLICY_ERROR: "invalid_prompt",
    "invalid_request_error": "invalid_prompt",
    "rate_limit_error": "rate_limit_exceeded",
}
"""SDKs know a closed list of codes; what has none there is an error of the server."""
KEPT_BYTES_MAX = 64 * 1024 * 1024
"""The last event repeats the whole answer, which must be kept until then."""


class ResponsesSurface:
    """POST /v1/responses."""

    def translate(
        self, body: ResponseRequest, *, request_id: RequestId, now: datetime
    ) -> Translated:
        """Stateless, so that the whole conversation is in the body."""
        check(body)
        request, name_of = translate(body)
        rendering = ResponseRendering(body, request_id, now)
        return Translated(
            request=request,
            rendering=rendering,
            name_of=name_of,
            may_be_cut=body.truncation == "auto",
        )


class ResponseRendering:
    """One answer. Its IDs come from the request's, and are the same in every event (OQ-60)."""

    def __init__(self, request: ResponseRequest, request_id: RequestId, now: datetime) -> None:
        self._begun = begun(
            request, response_id=f"resp_{request_id.hex}", created_at=unix_seconds(now)
        )
        self._output = Output(request_id)
        self._shows_logprobs = wants_logprobs(request)
        self._finish_reason: str | None = None
        self._tier: str | None = None
        self._encoder = msgspec.json.Encoder()

    # Whole

    def complete(self, completion: UpstreamCompletion, finish: Finish) -> bytes:
        """The object with which a stream of the same answer would end."""
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
        """Return the response without an answer, under the two names that its beginning has."""
        numbers = self._output.numbers
        created = events.ResponseCreated(sequence_number=next(numbers), response=self._begun)
        going_on = events.ResponseInProgress(sequence_number=next(numbers), response=self._begun)
        return self._framed((created, going_on))

    def records(self, chunks: Sequence[UpstreamChunk]) -> bytes:
        """What the backend added; usage is told at the end."""
        told = self._framed(self._of_chunks(chunks))
        if self._output.kept_bytes > KEPT_BYTES_MAX:
            raise AnswerTooLong
        return told

    @property
    def retained_bytes(self) -> int:
        """The last event repeats the whole answer, so all of it is kept."""
        return self._output.kept_bytes

    def closing(self, finish: Finish) -> Iterator[bytes]:
        """The ends of all items, then the whole response. No end marker follows (OQ-62).

        Several of these events repeat the answer: one of them at a time is in memory.
        """
        is_cut = self._finish_reason in _CUTS
        for event in self._output.end(is_cut=is_cut):
            yield self._framed((event,))
        kind = events.ResponseIncomplete if is_cut else events.ResponseCompleted
        number = next(self._output.numbers)
        yield self._framed((kind(sequence_number=number, response=self._ended(finish)),))

    def failure(self, error: ErrorBody) -> bytes:
        """One event, without the output: what the caller may see of it has been told (OQ-63)."""
        failed = msgspec.structs.replace(self._begun, status="failed", error=_error(error))
        number = next(self._output.numbers)
        return self._framed((events.ResponseFailed(sequence_number=number, response=failed),))

    def _of_chunks(self, chunks: Sequence[UpstreamChunk]) -> Iterator[events.ResponseEvent]:
        for chunk in chunks:
            self._tier = chunk.service_tier or self._tier
            for choice in chunk.choices:
                yield from self._of_choice(choice)

    def _of_choice(self, choice: UpstreamChunkChoice) -> Iterable[events.ResponseEvent]:
        """Only one choice is ever asked for."""
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
        """The kind of each event stands before it, and in it."""
        encode = self._encoder.encode
        return b"".join([b"%b%b\n\n" % (_HEADS[type(event)], encode(event)) for event in told])


def usage_of(usage: Usage) -> wire.ResponseUsage:
    """Usage as callers see it, in the same numbers that are charged."""
    return wire.ResponseUsage(
        input_tokens=usage.prompt_tokens,
        input_tokens_details={"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        output_tokens=usage.completion_tokens,
        output_tokens_details={"reasoning_tokens": usage.reasoning_tokens},
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
    )


def _error(error: ErrorBody) -> wire.ResponseError:
    """What a policy forbids says so by its type, because no code of SDKs does."""
    return wire.ResponseError(
        code=_CODES.get(error.type, "server_error"),
        message=error.message,
        type=POLICY_ERROR if error.type == POLICY_ERROR else UNSET,
    )


def _run(told: Iterable[object]) -> None:
    """For what the events leave behind, where nobody reads them."""
    for _ in told:
        pass
