"""Restrict the fields of an answer that the engine fills and no policy reads.

They have values of closed lists, or are dropped, so that an engine cannot send text past a policy.
While an enforcing response policy applies, `judged_completion` and `judged_chunks` leave nothing in
them that was not judged (OQ-196). Choices that were not requested are always dropped.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar, cast, get_args

import msgspec
from msgspec import Struct

from tollhouse.backends.types import (
    FreeObject,
    UpstreamChoice,
    UpstreamChunk,
    UpstreamChunkChoice,
    UpstreamCompletion,
    UpstreamMessage,
)
from tollhouse.contract.responses import ServiceTier

_Choice = TypeVar("_Choice", UpstreamChoice, UpstreamChunkChoice)

TIERS: Final = frozenset(get_args(ServiceTier))
UNKNOWN_FINISH_REASON: Final = "stop"
_FINISH_REASONS: Final = {
    **{reason: reason for reason in ("stop", "length", "tool_calls", "content_filter")},
    "function_call": "function_call",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "safety": "content_filter",
}
"""The contract's finish reasons, and the names that some engines use for them."""
_FINGERPRINT: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_REPLACEMENT: Final = "\ufffd"
LEAST_LOGPROB: Final = -9999.0
"""The log probability that OpenAI sends for a token without a known probability."""


class _RankedToken(Struct, frozen=True):
    token: str
    logprob: float | None = None


class _EngineToken(_RankedToken, frozen=True):
    top_logprobs: list[_RankedToken] = []


class _EngineLogprobs(Struct, frozen=True):
    content: list[_EngineToken] | None = None
    refusal: list[_EngineToken] | None = None


def finish_reason(said: str | None) -> str | None:
    """Return the contract's finish reason; an unknown reason becomes `stop`."""
    return None if said is None else _FINISH_REASONS.get(said, UNKNOWN_FINISH_REASON)


def service_tier(said: str | None) -> str | None:
    """Return the service tier, if the contract has it."""
    return said if said in TIERS else None


def system_fingerprint(said: str | None) -> str | None:
    """Return the engine's fingerprint, if it has a valid form."""
    is_known = said is not None and _FINGERPRINT.fullmatch(said) is not None
    return said if is_known else None


def asked_completion(completion: UpstreamCompletion, completions: int) -> UpstreamCompletion:
    """Return a complete answer without choices that were not requested."""
    if len(completion.choices) == 1 and completion.choices[0].index == 0:
        return completion
    kept = [choice for choice in completion.choices if 0 <= choice.index < completions]
    if len(kept) == len(completion.choices):
        return completion
    return msgspec.structs.replace(completion, choices=kept)


def asked_chunks(chunks: Sequence[UpstreamChunk], completions: int) -> Sequence[UpstreamChunk]:
    """Return records of a stream without choices that were not requested."""
    for chunk in chunks:
        for choice in chunk.choices:
            if not 0 <= choice.index < completions:
                return [_asked_chunk(each, completions) for each in chunks]
    return chunks


def _asked_chunk(chunk: UpstreamChunk, completions: int) -> UpstreamChunk:
    kept = [choice for choice in chunk.choices if 0 <= choice.index < completions]
    return msgspec.structs.replace(chunk, choices=kept)


def judged_completion(completion: UpstreamCompletion) -> UpstreamCompletion:
    """Return a complete answer without the fields that no policy reads."""
    choices = [
        msgspec.structs.replace(_without_unjudged(choice), message=judged_message(choice.message))
        for choice in completion.choices
    ]
    return msgspec.structs.replace(
        completion, choices=choices, system_fingerprint=None, prompt_logprobs=None
    )


def judged_chunks(chunks: Sequence[UpstreamChunk]) -> list[UpstreamChunk]:
    """Return records of a stream without the fields that no policy reads."""
    return [_judged_chunk(chunk) for chunk in chunks]


def _judged_chunk(chunk: UpstreamChunk) -> UpstreamChunk:
    has_unjudged = any(
        choice.logprobs is not None or choice.delta.signature is not None
        for choice in chunk.choices
    )
    if not has_unjudged and chunk.system_fingerprint is None:
        return chunk
    choices = [_without_signature(_without_unjudged(choice)) for choice in chunk.choices]
    return msgspec.structs.replace(chunk, choices=choices, system_fingerprint=None)


def _without_signature(choice: UpstreamChunkChoice) -> UpstreamChunkChoice:
    if choice.delta.signature is None:
        return choice
    delta = msgspec.structs.replace(choice.delta, signature=None)
    return msgspec.structs.replace(choice, delta=delta)


def _without_unjudged(choice: _Choice) -> _Choice:
    if choice.logprobs is None:
        return choice
    return msgspec.structs.replace(choice, logprobs=_judged_logprobs(choice.logprobs))


def _judged_logprobs(found: Any) -> FreeObject | None:  # noqa: ANN401 - as the backend has them
    """Rebuild log probabilities from the texts of tokens, or drop what has another form."""
    try:
        known = msgspec.convert(found, _EngineLogprobs)
    except msgspec.ValidationError:
        return None
    return {
        name: None if tokens is None else [_token(token) for token in tokens]
        for name, tokens in (("content", known.content), ("refusal", known.refusal))
    }


def _token(token: _EngineToken) -> FreeObject:
    return _guess(token) | {"top_logprobs": [_guess(guess) for guess in token.top_logprobs]}


def _guess(guess: _RankedToken) -> FreeObject:
    """Return null for the bytes of a token that is only part of a character."""
    is_whole = _REPLACEMENT not in guess.token
    shown = list(guess.token.encode()) if is_whole else None
    return {"token": guess.token, "logprob": _logprob(guess.logprob), "bytes": shown}


def _logprob(said: float | None) -> float:
    """Return a log probability, which is never above 0."""
    if said is None or not LEAST_LOGPROB <= said <= 0:
        return LEAST_LOGPROB
    return said


_TEXT_TYPES: Final = (None, "text", "output_text")
_REFUSAL: Final = "refusal"
_CALL_MEMBERS: Final = {"function": "arguments", "custom": "input"}
"""The types of tool calls, and the member that contains the input of each."""


def judged_message(message: UpstreamMessage) -> UpstreamMessage:
    """Return the message with texts, refusals and calls in the contract's form.

    A part of another type is left as it is: the evaluation refuses the message.
    """
    content, calls, call = message.content, message.tool_calls, message.function_call
    return msgspec.structs.replace(
        message,
        signature=None,
        content=[_part(part) for part in content] if isinstance(content, list) else content,
        tool_calls=None if calls is None else [_call(each) for each in calls],
        function_call=None if call is None else _called(call, "arguments"),
    )


def _part(part: FreeObject) -> FreeObject:
    if part.get("type") == _REFUSAL:
        return {"type": _REFUSAL, _REFUSAL: _text(part.get(_REFUSAL))}
    if part.get("type") in _TEXT_TYPES:
        return {"type": "text", "text": _text(part.get("text"))}
    return part


def _call(call: FreeObject) -> FreeObject:
    kind = "custom" if call.get("type") == "custom" else "function"
    called = _called(call.get(kind), _CALL_MEMBERS[kind])
    shown: FreeObject = {"id": _text(call.get("id")), "type": kind, kind: called}
    extra = call.get("extra_content")
    return shown if extra is None else shown | {"extra_content": extra}


def _called(function: Any, member: str) -> FreeObject:  # noqa: ANN401 - as the backend has it
    """Return the input of a tool as text; an object becomes its JSON."""
    fields = cast("FreeObject", function) if isinstance(function, dict) else {}
    said = fields.get(member)
    if not isinstance(said, str):
        said = "" if said is None else msgspec.json.encode(said).decode()
    return {"name": _text(fields.get("name")), member: said}


def _text(value: Any) -> str:  # noqa: ANN401 - as the backend has it
    return value if isinstance(value, str) else ""
