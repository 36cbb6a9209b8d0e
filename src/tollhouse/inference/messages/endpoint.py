"""The Messages endpoint: translate requests to chat, encode Anthropic's object and events."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec

from tollhouse.backends.types import (
    FreeObject,
    UpstreamChunk,
    UpstreamChunkChoice,
    UpstreamCompletion,
)
from tollhouse.base.ids import RequestId
from tollhouse.contract import message_result as wire
from tollhouse.contract.errors import ErrorBody, ErrorShape
from tollhouse.contract.message_request import MessageRequest, check
from tollhouse.inference.chat import is_text
from tollhouse.inference.endpoint import Finish, TranslatedRequest
from tollhouse.inference.engine_fields import finish_reason
from tollhouse.inference.messages.output import BlockKind, MessageOutput, whole_blocks
from tollhouse.inference.messages.translation import (
    optional_features,
    refused_tools,
    shows_thinking,
    translate,
)
from tollhouse.inference.whole_messages import as_one_piece
from tollhouse.ledger.pricing import Usage

_HEADS: Final[dict[type[wire.MessageEvent], bytes]] = {
    kind: f"event: {kind.__struct_config__.tag}\ndata: ".encode() for kind in wire.EVENTS
}
_STOP_REASONS: Final[dict[str | None, wire.StopReason]] = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
"""The reasons other than `end_turn`."""
_UNKNOWN_USAGE: Final = wire.MessageUsage(input_tokens=0, output_tokens=0)


class MessagesEndpoint:
    """Translates requests of `POST /compat/anthropic/v1/messages`."""

    def translate(
        self, body: MessageRequest, *, request_id: RequestId, now: datetime
    ) -> TranslatedRequest:
        """Return the request as chat. It is stateless: the body has the whole conversation."""
        del now
        check(body)
        request, name_of, hints = translate(body)
        return TranslatedRequest(
            request=request,
            encoder=MessagesEncoder(body, request_id),
            name_of=name_of,
            optional=optional_features(body),
            hints=hints,
            refused_tools=refused_tools(body),
        )


class MessagesEncoder:
    """Encodes one answer. Its ID derives from the request's."""

    error_shape = ErrorShape.MESSAGES
    streams_long_prompts = False
    retained_bytes = 0
    """Every event contains only new output."""

    def __init__(self, request: MessageRequest, request_id: RequestId) -> None:
        self._id = f"msg_{request_id.hex}"
        self._model = request.model
        self._stop_sequences = frozenset(request.stop_sequences or ())
        self._output = MessageOutput(request_id, shows_thinking=shows_thinking(request))
        self._finish_reason: str | None = None
        self._stop_sequence: str | None = None
        self._encode = msgspec.json.Encoder().encode
        self._text_block = -1
        self._text_prefix = b""

    def answered_by(self, model: str, *, default_output_tokens: int) -> None:  # noqa: ARG002 - responses shows it
        """Name the model that answers."""
        self._model = model

    # Whole

    def complete(self, completion: UpstreamCompletion, finish: Finish) -> bytes:
        """Encode the message that a stream of the same answer would add up to."""
        content: list[FreeObject] = []
        for choice in completion.choices:
            self._note_end(choice.finish_reason, choice.stop_reason)
            told = (*self._output.add(as_one_piece(choice.message)), *self._output.end())
            content += whole_blocks(told)
        end = self._end()
        return self._encode(
            wire.Message(
                id=self._id,
                model=self._model,
                content=content,
                stop_reason=end.stop_reason,
                stop_sequence=end.stop_sequence,
                usage=usage_of(finish.usage),
            )
        )

    # Streamed

    def opening(self, first: Sequence[UpstreamChunk]) -> bytes:  # noqa: ARG002 - chat looks at it
        """Encode the beginning. Engines report usage at the end, so it is 0 here (OQ-223)."""
        begun = wire.Message(id=self._id, model=self._model, content=[], usage=_UNKNOWN_USAGE)
        return self._framed((wire.MessageStart(message=begun),))

    def records(self, chunks: Sequence[UpstreamChunk]) -> bytes:
        """Encode new output. Usage is sent at the end."""
        records: list[bytes] = []
        for chunk in chunks:
            for choice in chunk.choices:
                if self._output.kind is BlockKind.TEXT and is_text(choice):
                    if choice.delta.content:
                        records.append(self._text(choice.delta.content))
                else:
                    records.append(self._framed(self._of_choice(choice)))
        return b"".join(records)

    def closing(self, finish: Finish) -> Iterator[bytes]:
        """Encode the end of the last block, why the answer ended, and its usage."""
        told = (
            *self._output.end(),
            wire.MessageDelta(delta=self._end(), usage=usage_of(finish.usage)),
            wire.MessageStop(),
        )
        yield self._framed(told)

    def failure(self, error: ErrorBody) -> bytes:
        """Encode the error as the last event."""
        return self._framed((wire.MessageFailure(error=error, request_id=error.request_id),))

    def _of_choice(self, choice: UpstreamChunkChoice) -> Iterator[wire.MessageEvent]:
        self._note_end(choice.finish_reason, choice.stop_reason)
        return self._output.add(choice.delta)

    def _text(self, text: str) -> bytes:
        """Encode more text of the open block, as most events do, from a prefix made once."""
        if self._text_block != self._output.count:
            self._text_block = self._output.count
            delta = {"type": "text_delta", "text": ""}
            event = wire.ContentBlockDelta(index=self._output.count - 1, delta=delta)
            self._text_prefix = self._framed((event,)).removesuffix(_TEXT_SUFFIX)
        return self._text_prefix + self._encode(text) + _AFTER_TEXT

    def _note_end(self, reason: str | None, stopped_by: object) -> None:
        self._finish_reason = finish_reason(reason) or self._finish_reason
        # An engine's own text never leaves by this way: it is one of the caller's sequences.
        if isinstance(stopped_by, str) and stopped_by in self._stop_sequences:
            self._stop_sequence = stopped_by

    def _end(self) -> wire.MessageEnd:
        """Return why the answer ended. Some engines name a forced call an ordinary end."""
        reason = _STOP_REASONS.get(self._finish_reason)
        if reason is None and self._output.has_refusal:
            reason = "refusal"
        if reason is None and self._output.has_calls:
            reason = "tool_use"
        if reason is None and self._stop_sequence is not None:
            return wire.MessageEnd(stop_reason="stop_sequence", stop_sequence=self._stop_sequence)
        return wire.MessageEnd(stop_reason=reason or "end_turn")

    def _framed(self, told: Iterable[wire.MessageEvent]) -> bytes:
        """Encode server-sent events with their types."""
        encode = self._encode
        return b"".join([b"%b%b\n\n" % (_HEADS[type(event)], encode(event)) for event in told])


_TEXT_SUFFIX: Final = b'""}}\n\n'
_AFTER_TEXT: Final = b"}}\n\n"


def usage_of(usage: Usage) -> wire.MessageUsage:
    """Return the charged usage in the form of the API: cached tokens are counted apart."""
    return wire.MessageUsage(
        input_tokens=usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens,
        cache_creation_input_tokens=usage.cache_write_tokens,
        cache_read_input_tokens=usage.cached_tokens,
        output_tokens=usage.completion_tokens,
    )
