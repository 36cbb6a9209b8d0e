"""The chat endpoint: its requests have the pipeline's form; answers follow OQ-19 to OQ-30."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from tollhouse.backends.types import (
    FreeObject,
    UpstreamChoice,
    UpstreamChunk,
    UpstreamChunkChoice,
    UpstreamCompletion,
    UpstreamDelta,
    UpstreamMessage,
)
from tollhouse.backends.types import ToolCallDelta as UpstreamToolCall
from tollhouse.base.ids import RequestId
from tollhouse.contract import completions as wire
from tollhouse.contract.chat import ChatRequest, check
from tollhouse.contract.errors import Envelope, ErrorBody, ErrorShape
from tollhouse.contract.field_checks import ABSENT
from tollhouse.contract.own_answers import ChatRequestWithOwnAnswers, check_own_answers
from tollhouse.inference import engine_fields
from tollhouse.inference.chat_content import as_specified
from tollhouse.inference.content_parts import with_forwarded_parts
from tollhouse.inference.endpoint import Finish, TranslatedRequest, same_name
from tollhouse.inference.forwarded_tools import with_forwarded_tools
from tollhouse.ledger.pricing import Usage

END: Final = b"data: [DONE]\n\n"
_encode: Final = msgspec.json.Encoder().encode


class ChatEndpoint:
    """Translates requests of `POST /v1/chat/completions`."""

    def translate(
        self, body: ChatRequest, *, request_id: RequestId, now: datetime
    ) -> TranslatedRequest:
        """Return the request as it is priced, judged and forwarded."""
        check(body)
        if isinstance(body, ChatRequestWithOwnAnswers):
            check_own_answers(body)
            body = as_specified(body)
        request = _with_logprobs(with_forwarded_tools(with_forwarded_parts(body)))
        names_logprobs = request.logprobs is body.logprobs
        return TranslatedRequest(
            request=request,
            encoder=ChatEncoder(body, request_id, now),
            name_of=same_name if names_logprobs else _top_logprobs,
        )


class _ChunkFrame:
    """The parts that all records of a stream share, encoded once: only the choice is encoded anew.

    `record` is an encoded chunk without choices.
    """

    __slots__ = ("_encode", "_prefix", "_suffix", "_text_prefixes", "_text_suffix")

    def __init__(self, record: bytes, encode: Callable[[object], bytes]) -> None:
        prefix, choices, suffix = record.partition(_CHOICES)
        self._encode = encode
        self._prefix = prefix + choices
        self._suffix = suffix
        self._text_prefixes: dict[int, bytes] = {}
        self._text_suffix = b""

    def record(self, choice: wire.ChunkChoice) -> bytes:
        """Encode a record with this choice."""
        return b"%b%b%b" % (self._prefix, self._encode(choice), self._suffix)

    def text_record(self, index: int, text: str) -> bytes:
        """Encode a record that adds text to a choice and nothing else, as most records do."""
        prefix = self._text_prefixes.get(index) or self._text_prefix(index)
        return prefix + self._encode(text) + self._text_suffix

    def _text_prefix(self, index: int) -> bytes:
        choice = wire.ChunkChoice(index=index, delta=wire.Delta(content=""))
        prefix, _, self._text_suffix = self.record(choice).rpartition(_NO_TEXT)
        self._text_prefixes[index] = prefix
        return prefix


class ChatEncoder:
    """Encodes one answer. Its ID, time and model are the gateway's own in every record (OQ-44)."""

    error_shape = ErrorShape.OPENAI
    streams_long_prompts = False
    retained_bytes = 0
    """Every record contains only new output."""

    def __init__(self, request: ChatRequest, request_id: RequestId, now: datetime) -> None:
        self._id = f"chatcmpl-{request_id.hex}"
        self._created = int(now.timestamp())
        self._model = request.model
        self._choices = request.n or 1
        self._shows_usage = bool(request.stream_options and request.stream_options.include_usage)
        self._shows_reasoning = shows_reasoning(request)
        self._shows_prompt_logprobs = request.prompt_logprobs not in ABSENT
        self._calls: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self._with_extra: set[tuple[int, int]] = set()
        self._fingerprint: str | None = None
        self._tier: str | None = None
        self._frame: _ChunkFrame | None = None
        self._encoder = msgspec.json.Encoder()

    def answered_by(self, model: str, *, default_output_tokens: int) -> None:  # noqa: ARG002 - responses shows it
        """Name the model that answers."""
        self._model = model

    # Whole

    def complete(self, completion: UpstreamCompletion, finish: Finish) -> bytes:
        """Encode the complete answer, with its choices in order."""
        choices = completion.choices
        if len(choices) > 1:
            choices = sorted(choices, key=attrgetter("index"))
        body = wire.ChatCompletion(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=list(map(self._choice, choices)),
            usage=_reported(finish),
            system_fingerprint=engine_fields.system_fingerprint(completion.system_fingerprint),
            service_tier=engine_fields.service_tier(completion.service_tier),
            prompt_logprobs=self._prompt_logprobs(completion),
        )
        return _encode(body)

    def _prompt_logprobs(
        self, completion: UpstreamCompletion
    ) -> list[FreeObject | None] | UnsetType:
        return (completion.prompt_logprobs if self._shows_prompt_logprobs else None) or UNSET

    def _choice(self, choice: UpstreamChoice) -> wire.Choice:
        return wire.Choice(
            index=choice.index,
            message=self._message(choice.message),
            logprobs=choice.logprobs,
            finish_reason=engine_fields.finish_reason(choice.finish_reason),
        )

    def _message(self, message: UpstreamMessage) -> wire.CompletionMessage:
        """Encode a message without a null refusal, which SDKs would send back."""
        reasoning = self._reasoning(message)
        return wire.CompletionMessage(
            role="assistant",
            content=message.content,
            refusal=message.refusal or UNSET,
            reasoning=reasoning,
            reasoning_content=reasoning,
            tool_calls=_numbered(message.tool_calls) if message.tool_calls else UNSET,
            function_call=message.function_call or UNSET,
            annotations=annotations_of(message.annotations) if message.annotations else UNSET,
        )

    # Streamed

    def opening(self, first: Sequence[UpstreamChunk]) -> bytes:
        """Return the role of every choice, in order: SDKs find a choice by its position (OQ-24).

        The fingerprint of the first chunks is that of all records (OQ-44).
        """
        self._frame = None
        for chunk in first:
            if self._fingerprint is None:
                self._fingerprint = engine_fields.system_fingerprint(chunk.system_fingerprint)
            self._tier = engine_fields.service_tier(chunk.service_tier) or self._tier
        delta = wire.Delta(role="assistant", content="")
        return b"".join(self._record(index, delta) for index in range(self._choices))

    def records(self, chunks: Sequence[UpstreamChunk]) -> bytes:
        """Encode new records. Usage is sent at the end, and only if it was requested."""
        records: list[bytes] = []
        for chunk in chunks:
            if chunk.service_tier is not None:
                self._set_tier(chunk.service_tier)
            frame = self._frame or self._new_frame()
            for choice in chunk.choices:
                if not is_text(choice):
                    records += self._of_choice(choice)
                elif choice.delta.content:
                    records.append(frame.text_record(choice.index, choice.delta.content))
        return b"".join(records)

    def _set_tier(self, said: str) -> None:
        tier = engine_fields.service_tier(said)
        if tier != self._tier:
            self._tier = tier
            self._frame = None

    def _new_frame(self) -> _ChunkFrame:
        record = self._framed(choices=[], usage=None if self._shows_usage else UNSET)
        self._frame = _ChunkFrame(record, self._encoder.encode)
        return self._frame

    def _of_choice(self, choice: UpstreamChunkChoice) -> list[bytes]:
        """Split a finish reason from content that came with it: SDKs expect it alone."""
        records: list[bytes] = []
        delta = self._delta(choice.index, choice.delta)
        if delta is not None or choice.logprobs is not None:
            told = self._record(choice.index, delta or _NOTHING, logprobs=choice.logprobs)
            records.append(told)
        if choice.finish_reason is not None:
            reason = engine_fields.finish_reason(choice.finish_reason)
            end = self._record(choice.index, _NOTHING, finish_reason=reason)
            records.append(end)
        return records

    def _delta(self, index: int, delta: UpstreamDelta) -> wire.Delta | None:
        reasoning = self._reasoning(delta) or UNSET
        calls = [self._tool_call(index, call) for call in delta.tool_calls or ()]
        told = wire.Delta(
            content=delta.content or UNSET,
            refusal=delta.refusal or UNSET,
            reasoning=reasoning,
            reasoning_content=reasoning,
            tool_calls=calls or UNSET,
            function_call=_function_call(delta),
            annotations=annotations_of(delta.annotations),
        )
        return None if told == _NOTHING else told

    def _tool_call(self, index: int, call: UpstreamToolCall) -> wire.ToolCallDelta:
        """Encode pieces of tool calls: only the first piece of each has its ID and name.

        Calls are numbered by their first pieces, whatever indexes the backend sends (OQ-196).
        """
        numbers = self._calls[index]
        function = call.function
        arguments = (function.arguments if function else None) or ""
        extra = self._extra_content(index, call)
        if (number := numbers.get(call.index)) is not None:
            return wire.ToolCallDelta(
                index=number,
                function=wire.ToolCallFunctionDelta(arguments=arguments),
                extra_content=extra,
            )
        number = numbers[call.index] = len(numbers)
        name = (function.name if function else None) or ""
        return wire.ToolCallDelta(
            index=number,
            id=call.id or f"call_{self._id[-16:]}_{index}_{number}",
            type="function",
            function=wire.ToolCallFunctionDelta(name=name, arguments=arguments),
            extra_content=extra,
        )

    def _extra_content(self, index: int, call: UpstreamToolCall) -> Any:  # noqa: ANN401 - free-form
        """Return the first extra content of a call: SDKs would join it with a second one."""
        place = (index, call.index)
        if call.extra_content is None or place in self._with_extra:
            return UNSET
        self._with_extra.add(place)
        return call.extra_content

    def closing(self, finish: Finish) -> Iterator[bytes]:
        """Encode usage as the last record: a later one resets it in SDKs (OQ-22)."""
        if not self._shows_usage:
            yield END
            return
        yield self._framed(choices=[], usage=_reported(finish)) + END

    def failure(self, error: ErrorBody) -> bytes:
        """Encode the error as a record, without an end marker after it (OQ-25)."""
        return framed(_encode(Envelope(error=error)))

    def _record(
        self,
        index: int,
        delta: wire.Delta,
        *,
        logprobs: object = None,
        finish_reason: str | None = None,
    ) -> bytes:
        frame = self._frame or self._new_frame()
        return frame.record(
            wire.ChunkChoice(
                index=index, delta=delta, logprobs=logprobs, finish_reason=finish_reason
            )
        )

    def _framed(
        self, *, choices: list[wire.ChunkChoice], usage: wire.Usage | UnsetType | None
    ) -> bytes:
        chunk = wire.ChatChunk(
            id=self._id,
            created=self._created,
            model=self._model,
            service_tier=self._tier,
            system_fingerprint=self._fingerprint,
            choices=choices,
            usage=usage,
        )
        return framed(_encode(chunk))

    def _reasoning(self, said: UpstreamDelta | UpstreamMessage) -> str | None:
        """Return reasoning under both of its names, or neither (OQ-26)."""
        return (said.reasoning or said.reasoning_content) if self._shows_reasoning else None


_NOTHING: Final = wire.Delta()
_CHOICES: Final = b'"choices":['
"""Occurs once in a record: a quote inside a text is escaped."""
_NO_TEXT: Final = b'""'


def is_text(choice: UpstreamChunkChoice) -> bool:
    """Whether a choice has nothing but text for the caller, or nothing at all."""
    delta = choice.delta
    return not (
        choice.logprobs is not None
        or choice.finish_reason is not None
        or delta.tool_calls
        or delta.reasoning
        or delta.reasoning_content
        or delta.signature
        or delta.refusal
        or delta.function_call
        or delta.annotations
    )


def _with_logprobs(request: ChatRequest) -> ChatRequest:
    """Return a request in which `top_logprobs` alone asks for log probabilities (OQ-39)."""
    if request.logprobs is True or request.top_logprobs in ABSENT:
        return request
    if not request.top_logprobs:
        return msgspec.structs.replace(request, top_logprobs=UNSET)
    return msgspec.structs.replace(request, logprobs=True)


def _top_logprobs(param: str) -> str:
    """Name the field that the caller sent, where `logprobs` was added for it."""
    return "top_logprobs" if param == "logprobs" else param


def framed(record: bytes) -> bytes:
    """Encode one server-sent event; encoded JSON contains no line ends."""
    return b"data: %b\n\n" % record


def shows_reasoning(request: ChatRequest) -> bool:
    """Whether the answer includes reasoning; contradicting options were refused before."""
    excluded = request.reasoning.exclude is True if request.reasoning else False
    return not excluded and request.include_reasoning is not False


def usage_of(usage: Usage) -> wire.Usage:
    """Return the charged usage in the form of the API."""
    return wire.Usage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
        prompt_tokens_details={"cached_tokens": usage.cached_tokens},
        completion_tokens_details={"reasoning_tokens": usage.reasoning_tokens},
    )


def _reported(finish: Finish) -> wire.Usage | None:
    """Return the usage that the engine reported, or None if part of it is an estimate (OQ-183)."""
    return None if finish.is_estimated else usage_of(finish.usage)


def annotations_of(found: list[FreeObject] | None) -> list[wire.Annotation] | UnsetType:
    """Return the sources that have the contract's form; others are dropped."""
    kept: list[wire.Annotation] = []
    for annotation in found or ():
        try:
            kept.append(msgspec.convert(annotation, wire.Annotation))
        except msgspec.ValidationError:
            continue
    return kept or UNSET


def _numbered(calls: list[FreeObject]) -> list[FreeObject]:
    """Replace the engine's indexes of tool calls by their positions."""
    return [
        {**call, "index": number} if "index" in call else call for number, call in enumerate(calls)
    ]


def _function_call(delta: UpstreamDelta) -> FreeObject | UnsetType:
    call = delta.function_call
    if call is None:
        return UNSET
    pieces = {"name": call.name, "arguments": call.arguments}
    return {name: piece for name, piece in pieces.items() if piece is not None} or UNSET
