"""The head of a request: the headers that we read, and what they say of the body."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from tollhouse.api.edge_errors import (
    MalformedRequest,
    UnsupportedContentEncoding,
    UnsupportedMediaType,
)
from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import (
    IDEMPOTENCY_KEY_LENGTH_MAX,
    IDEMPOTENCY_KEY_LENGTH_MIN,
)
from tollhouse.contract.operation import Operation

_HOST = re.compile(rb"(?:[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_JOINERS = "\u200c\u200d"
"""They are invisible, and Persian words and emoji are written with them."""
_SPACE = "Zs"
_UTF_8 = (b"utf-8", b'"utf-8"', b"utf8")


class Head:
    """Header names arrive in lower case; a header may stand more than once."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            self._values.setdefault(name, []).append(value)

    def values(self, name: bytes) -> list[bytes]:
        """Every value, in the order of arrival."""
        return self._values.get(name, [])

    def text(self, name: bytes) -> str | None:
        """The first value, with bytes that are no text shown as such."""
        values = self._values.get(name)
        return values[0].decode("latin-1") if values else None

    @property
    def content_length(self) -> int:
        """The declared size of the body; 0 when none is declared."""
        values = self.values(b"content-length")
        return int(values[0]) if values and values[0].isdigit() else 0

    @property
    def announces_body(self) -> bool:
        """Whether bytes will follow the head."""
        return self.content_length > 0 or bool(self.values(b"transfer-encoding"))

    @property
    def waits_for_continue(self) -> bool:
        """Whether the caller sends the body only after it was asked for."""
        return [value.lower() for value in self.values(b"expect")] == [b"100-continue"]


def check_http(head: Head, *, http_version: str) -> None:
    """What the parser of one server or another lets through and must not pass."""
    hosts = head.values(b"host")
    if len(hosts) != 1 and not (http_version == "1.0" and not hosts):
        message = "The request must have exactly one Host header."
        raise MalformedRequest(message)
    if hosts and not _HOST.fullmatch(hosts[0]):
        message = "The Host header is not a host name or address."
        raise MalformedRequest(message)
    codings = head.values(b"transfer-encoding")
    if codings and not is_chunked(codings):
        message = "The Transfer-Encoding header must be exactly 'chunked'."
        raise MalformedRequest(message)
    lengths = head.values(b"content-length")
    if len(lengths) > 1 or (lengths and codings):
        message = "The request's length is stated twice."
        raise MalformedRequest(message)


def is_chunked(codings: Sequence[bytes]) -> bool:
    """Return whether there is one Transfer-Encoding header, and `chunked` is all that it says."""
    return len(codings) == 1 and codings[0].strip(b" \t").lower() == b"chunked"


def check_media(head: Head) -> None:
    """Refuse a body that is not plain JSON, by its headers alone."""
    encodings = head.values(b"content-encoding")
    if any(encoding.lower() != b"identity" for encoding in encodings):
        raise UnsupportedContentEncoding
    types = head.values(b"content-type")
    if len(types) != 1:
        raise UnsupportedMediaType
    media, *parameters = (part.strip().lower() for part in types[0].split(b";"))
    if media != b"application/json":
        raise UnsupportedMediaType
    for parameter in parameters:
        name, _, value = parameter.partition(b"=")
        if name == b"charset" and value not in _UTF_8:
            raise UnsupportedMediaType


def decoded(value: bytes) -> str:
    """Return the text of a header: UTF-8 where it is that, else one character for each byte."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _is_printable(text: str) -> bool:
    """Return whether a text has only letters, marks, numbers, signs, spaces and joiners."""
    return text.isprintable() or all(
        character.isprintable()
        or character in _JOINERS
        or unicodedata.category(character) == _SPACE
        for character in text
    )


def idempotency_key(head: Head, operation: Operation) -> str:
    """Return the one key of a creation; operations that create nothing do not read it (OQ-101)."""
    if not operation.creates_idempotently:
        return ""
    name = "Idempotency-Key"
    values = head.values(b"idempotency-key")
    if not values:
        message = f"Missing required header: '{name}'."
        raise InvalidRequest("missing_required_parameter", message, param=name)
    try:
        key = values[0].decode()
    except UnicodeDecodeError:
        message = f"Invalid '{name}': its bytes are not UTF-8. Send printable characters as UTF-8."
        raise InvalidRequest("invalid_value", message, param=name) from None
    has_length = IDEMPOTENCY_KEY_LENGTH_MIN <= len(key) <= IDEMPOTENCY_KEY_LENGTH_MAX
    if len(values) > 1 or not has_length or not _is_printable(key):
        message = (
            f"Invalid '{name}': expected one value of {IDEMPOTENCY_KEY_LENGTH_MIN} to "
            f"{IDEMPOTENCY_KEY_LENGTH_MAX} printable characters."
        )
        raise InvalidRequest("invalid_value", message, param=name)
    return key
