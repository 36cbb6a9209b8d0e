"""Fields of an answer that the engine fills and no policy reads: closed sets, or dropped.

A model cannot speak through them, but an engine that lies can. While an enforcing response policy
applies, `judged_completion` and `judged_chunks` leave nothing in them that was not judged (OQ-196).
Choices that nobody asked for are dropped from every answer.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar, get_args

import msgspec
from msgspec import Struct

from tollhouse.backends.types import (
    FreeObject,
    UpstreamChoice,
    UpstreamChunk,
    UpstreamChunkChoice,
    UpstreamCompletion,
)
from tollhouse.contract.responses import ServiceTier
from tollhouse.inference.judged_messages import judged_message

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
"""The contract's words, and what other dialects of engines call them."""
_FINGERPRINT: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_REPLACEMENT: Final = "\ufffd"
LEAST_LOGPROB: Final = -9999.0
"""What OpenAI says of a token whose probability it does not tell."""


class _Guess(Struct, frozen=True):
    token: str
    logprob: float | None = None


class _Token(_Guess, frozen=True):
    top_logprobs: list[_Guess] = []


class _Logprobs(Struct, frozen=True):
    content: list[_Token] | None = None
    refusal: list[_Token] | None = None


def finish_reason(said: str | None) -> str | None:
    """Return why a choice ended in a word of the contract; an unknown word is `stop`."""
    return None if said is None else _FINISH_REASONS.get(said, UNKNOWN_FINISH_REASON)


def service_tier(said: str | None) -> str | None:
    """Return the tier that served, if it is one of the contract's."""
    return said if said in TIERS else None


def system_fingerprint(said: str | None) -> str | None:
    """Return the engine's fingerprint, if it has the form of one."""
    is_known = said is not None and _FINGERPRINT.fullmatch(said) is not None
    return said if is_known else None


def asked_completion(completion: UpstreamCompletion, completions: int) -> UpstreamCompletion:
    """Return a whole answer without choices whose index is not one of those asked for."""
    kept = [choice for choice in completion.choices if 0 <= choice.index < completions]
    if len(kept) == len(completion.choices):
        return completion
    return msgspec.structs.replace(completion, choices=kept)


def asked_chunks(chunks: Sequence[UpstreamChunk], completions: int) -> Sequence[UpstreamChunk]:
    """Return records of a stream without choices whose index is not one of those asked for."""
    indexes = (choice.index for chunk in chunks for choice in chunk.choices)
    if all(0 <= index < completions for index in indexes):
        return chunks
    return [_asked_chunk(chunk, completions) for chunk in chunks]


def _asked_chunk(chunk: UpstreamChunk, completions: int) -> UpstreamChunk:
    kept = [choice for choice in chunk.choices if 0 <= choice.index < completions]
    return msgspec.structs.replace(chunk, choices=kept)


def judged_completion(completion: UpstreamCompletion) -> UpstreamCompletion:
    """Return a whole answer without the fields that no policy reads."""
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
    has_logprobs = any(choice.logprobs is not None for choice in chunk.choices)
    if not has_logprobs and chunk.system_fingerprint is None:
        return chunk
    choices = [_without_unjudged(choice) for choice in chunk.choices]
    return msgspec.structs.replace(chunk, choices=choices, system_fingerprint=None)


def _without_unjudged(choice: _Choice) -> _Choice:
    if choice.logprobs is None:
        return choice
    return msgspec.structs.replace(choice, logprobs=_judged_logprobs(choice.logprobs))


def _judged_logprobs(found: Any) -> FreeObject | None:  # noqa: ANN401 - as the backend has them
    """Rebuild log probabilities from the texts of tokens, or drop what has another form."""
    try:
        known = msgspec.convert(found, _Logprobs)
    except msgspec.ValidationError:
        return None
    return {
        name: None if tokens is None else [_token(token) for token in tokens]
        for name, tokens in (("content", known.content), ("refusal", known.refusal))
    }


def _token(token: _Token) -> FreeObject:
    return _guess(token) | {"top_logprobs": [_guess(guess) for guess in token.top_logprobs]}


def _guess(guess: _Guess) -> FreeObject:
    """A token that is part of a character has bytes that its text does not show: they are null."""
    is_whole = _REPLACEMENT not in guess.token
    shown = list(guess.token.encode()) if is_whole else None
    return {"token": guess.token, "logprob": _logprob(guess.logprob), "bytes": shown}


def _logprob(said: float | None) -> float:
    """A probability is at most 1, so that its logarithm is not above 0."""
    if said is None or not LEAST_LOGPROB <= said <= 0:
        return LEAST_LOGPROB
    return said
