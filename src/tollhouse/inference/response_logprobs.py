"""Log-probabilities of a chat in the form that a response has them."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from tollhouse.inference.response_parts import NO_LOGPROBS


class _Likely(Struct, frozen=True):
    token: str
    logprob: float
    bytes: list[int] | None = None


class _Token(_Likely, frozen=True):
    top_logprobs: list[_Likely] | None = None


class _Logprobs(Struct, frozen=True):
    content: list[_Token] | None = None


def written(found: Any) -> Raw:  # noqa: ANN401 - as the backend has them
    """A list in JSON; empty where the backend says nothing that can be understood."""
    try:
        tokens = msgspec.convert(found, _Logprobs | None)
    except msgspec.ValidationError:
        return NO_LOGPROBS
    if tokens is None or not tokens.content:
        return NO_LOGPROBS
    return Raw(msgspec.json.encode([_shown(token) for token in tokens.content]))


def _shown(token: _Token) -> dict[str, Any]:
    return _likely(token) | {"top_logprobs": [_likely(other) for other in token.top_logprobs or ()]}


def _likely(token: _Likely) -> dict[str, Any]:
    """SDKs in strict mode need the bytes, which some engines leave to the reader."""
    found = list(token.token.encode()) if token.bytes is None else token.bytes
    return {"token": token.token, "bytes": found, "logprob": token.logprob}
