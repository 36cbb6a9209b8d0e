"""Recognize that an engine refuses a prompt as too long, by its own words, and read its numbers.

The words are those of llama.cpp, vLLM, SGLang, OpenAI, Azure OpenAI, Anthropic and Gemini.
"""

import re
from typing import Any, Final, NamedTuple, cast

import msgspec

_NUMBER = r"(\d{1,9})(?!\d)"
_CODES: Final = {"context_length_exceeded", "exceed_context_size_error"}
_SIGNS: Final = re.compile(
    r"maximum context length"
    r"|exceeds the available context size"
    r"|longer than the maximum model length"
    r"|exceeds the max_model_len"
    r"|context length is only"
    r"|longer than the model's context length"
    r"|exceeds the maximum allowed length"
    r"|exceeds the context window"
    r"|Input tokens exceed the configured limit"
    r"|prompt is too long"
    r"|exceed context limit"
    r"|input token count .{0,40}exceeds the maximum number of tokens"
)
_CONTEXT: Final = re.compile(
    rf"maximum context length (?:is|of) {_NUMBER}"
    rf"|available context size \({_NUMBER}"
    rf"|maximum model length of {_NUMBER}"
    rf"|max_model_len {_NUMBER}"
    rf"|context length is only {_NUMBER}"
    rf"|model's context length \({_NUMBER}"
    rf"|maximum allowed length \({_NUMBER}"
    rf"|configured limit of {_NUMBER}"
    rf"|tokens > {_NUMBER} maximum"
    rf"|context limit: \d{{1,9}} \+ \d{{1,9}} > {_NUMBER}"
    rf"|tokens allowed \({_NUMBER}\)"
)
_PROMPT: Final = re.compile(
    rf"request \({_NUMBER} tokens"
    rf"|resulted in {_NUMBER} tokens"
    rf"|\({_NUMBER} in (?:the|your) (?:messages|prompt)"
    rf"|contains at least {_NUMBER} input tokens"
    rf"|request has {_NUMBER} input tokens"
    rf"|{_NUMBER} tokens from the input"
    rf"|passed {_NUMBER} input tokens"
    rf"|prompt \(length {_NUMBER}\)"
    rf"|prompt length {_NUMBER}"
    rf"|Input length \({_NUMBER}"
    rf"|The input \({_NUMBER} tokens"
    rf"|too long: {_NUMBER} tokens"
    rf"|context limit: {_NUMBER} \+"
    rf"|token count \({_NUMBER}\)"
)
_CHARACTERS_READ: Final = 2_000


class ContextRefusal(NamedTuple):
    """What the engine says of the length of the prompt and of its context, if it says it."""

    prompt_tokens: int | None
    context_tokens: int | None


def context_refusal(body: bytes) -> ContextRefusal | None:
    """Return what a refusal says of the context, or None if it refuses for another reason."""
    try:
        refusal = _error(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    told = [refusal.get(name) for name in ("message", "detail")]
    words = " ".join(each for each in told if isinstance(each, str))[:_CHARACTERS_READ]
    codes = [refusal.get(name) for name in ("code", "type")]
    if not any(code in _CODES for code in codes if isinstance(code, str)) and (
        _SIGNS.search(words) is None
    ):
        return None
    return ContextRefusal(
        prompt_tokens=_count(refusal.get("n_prompt_tokens")) or _number(_PROMPT, words),
        context_tokens=_count(refusal.get("n_ctx")) or _number(_CONTEXT, words),
    )


def _error(body: object) -> dict[str, Any]:
    """Return the object that has the message: the body, its member `error`, or its first item."""
    if isinstance(body, list) and body:
        return _error(cast("list[object]", body)[0])
    if not isinstance(body, dict):
        return {}
    tree = cast("dict[str, Any]", body)
    error = tree.get("error")
    if isinstance(error, str):
        return {"message": error}
    return cast("dict[str, Any]", error) if isinstance(error, dict) else tree


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and 0 < value < 10**9 else None


def _number(pattern: re.Pattern[str], words: str) -> int | None:
    found = pattern.search(words)
    return None if found is None else int(next(filter(None, found.groups())))
