"""Upstream bytes into nouns. What an engine says is taken leniently, but never half understood."""

import re
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import msgspec
from msgspec import DecodeError, Struct, ValidationError

from tollhouse.backends.types import UpstreamChunk, UpstreamCompletion

T = TypeVar("T")

SAID_CHARACTERS_MAX = 500
_SAID_READ_MAX = 8_192
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://\S+", re.IGNORECASE)
_UNSPOKEN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")
_HIDDEN = "[hidden]"


class Undecodable(Exception):
    """The bytes are not what they must be, or say that the engine failed."""


class _Record(UpstreamChunk, frozen=True):
    error: Any = None


class _Answer(UpstreamCompletion, frozen=True):
    error: Any = None


class _Complaint(Struct, frozen=True):
    """Where dialects put their sentence: OpenAI's, an older vLLM's, FastAPI's."""

    error: Any = None
    message: Any = None
    detail: Any = None


_record_decoder = msgspec.json.Decoder(_Record)
_answer_decoder = msgspec.json.Decoder(_Answer)
_complaint_decoder = msgspec.json.Decoder(_Complaint)


def decode_chunk(payload: bytes) -> UpstreamChunk:
    """One record of a stream; usage that cannot be counts is left out."""
    record = _decode(_record_decoder, _Record, payload)
    if record.error is not None:
        raise Undecodable
    return record


def decode_completion(body: bytes) -> UpstreamCompletion:
    """A whole answer, of at least one choice; usage that cannot be counts is left out."""
    answer = _decode(_answer_decoder, _Answer, body)
    if answer.error is not None or not answer.choices:
        raise Undecodable
    return answer


def decode_to(kind: type[T], body: bytes) -> T:
    """An answer that is no completion."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        raise Undecodable from None


def _decode(decoder: "msgspec.json.Decoder[T]", kind: type[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except ValidationError:
        return _without_usage(kind, data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        raise Undecodable from None


def _without_usage(kind: type[T], data: bytes) -> T:
    """An absurd count must not cost the caller the answer: usage is then missing instead."""
    try:
        tree = msgspec.json.decode(data)
        if isinstance(tree, dict):
            cast("dict[str, Any]", tree).pop("usage", None)
        return msgspec.convert(tree, kind)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        raise Undecodable from None


def complaint(body: bytes, *, hidden: Sequence[str]) -> str | None:
    """What a refusal says, in one printable line without addresses and without `hidden`."""
    try:
        found = _complaint_decoder.decode(body)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    for said in (_message(found.error), found.message, found.detail):
        if isinstance(said, str):
            return _speakable(said[:_SAID_READ_MAX], hidden) or None
    return None


def _message(error: object) -> object:
    return cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else error


def _speakable(said: str, hidden: Sequence[str]) -> str:
    for secret in hidden:
        said = said.replace(secret, _HIDDEN)
    line = _UNSPOKEN.sub(" ", _ADDRESS.sub(_HIDDEN, said)).strip()
    printable = "".join(character for character in line if character.isprintable())
    return printable[:SAID_CHARACTERS_MAX]
