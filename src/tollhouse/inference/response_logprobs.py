"""Log-probabilities of a chat in the form that a response has them."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from tollhouse.inference.response_parts import NO_LOGPROBS

Byte = Annotated[int, Meta(ge=0, le=255)]


class _Likely(Struct):
    """SDKs in strict mode need the bytes, which some engines leave to the reader."""

    token: str
    logprob: float
    bytes: list[Byte] | None = None

    def __post_init__(self) -> None:
        if self.bytes is None:
            self.bytes = list(self.token.encode())


class _Token(_Likely):
    top_logprobs: list[_Likely] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.top_logprobs is None:
            self.top_logprobs = []


class _Logprobs(Struct):
    content: list[_Token] | None = None


_encode = msgspec.json.Encoder().encode


def written(found: Any) -> Raw:  # noqa: ANN401 - as the backend has them
    """A list in JSON; empty where the backend says nothing that can be understood."""
    if found is None:
        return NO_LOGPROBS
    try:
        tokens = msgspec.convert(found, _Logprobs).content
    except msgspec.ValidationError:
        return NO_LOGPROBS
    return Raw(_encode(tokens)) if tokens else NO_LOGPROBS
