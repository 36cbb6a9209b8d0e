"""The headers of a request, and the checks that need nothing else."""

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
"""Invisible characters that Persian words and emoji need."""
_SPACE = "Zs"
_JSON_TYPES = [b"application/json"]
_UTF_8 = (b"utf-8", b'"utf-8"', b"utf8")


class Head:
    """The headers of one request. Names are in lower case; a header may be sent more than once.

    `content_length` is the declared size of the body, or 0 if none is declared. `announces_body` is
    true if bytes follow the head.
    """

    __slots__ = ("announces_body", "by_name", "content_length")

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.by_name: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            if name in self.by_name:
                self.by_name[name].append(value)
            else:
                self.by_name[name] = [value]
        lengths = self.by_name.get(b"content-length")
        self.content_length = int(lengths[0]) if lengths and lengths[0].isdigit() else 0
        self.announces_body = self.content_length > 0 or b"transfer-encoding" in self.by_name

    def values(self, name: bytes) -> list[bytes]:
        """Return every value of a header, in the order of arrival."""
        return self.by_name.get(name, [])

    @property
    def waits_for_continue(self) -> bool:
        """Whether the caller sends the body only after `100 Continue`."""
        return [value.lower() for value in self.values(b"expect")] == [b"100-continue"]


def check_http(head: Head, *, http_version: str) -> None:
    """Refuse heads that some servers accept and that two readers could understand differently."""
    hosts = head.by_name.get(b"host", ())
    if len(hosts) != 1 and not (http_version == "1.0" and not hosts):
        message = "The request must have exactly one Host header."
        raise MalformedRequest(message)
    if hosts and not _HOST.fullmatch(hosts[0]):
        message = "The Host header is not a host name or address."
        raise MalformedRequest(message)
    codings = head.by_name.get(b"transfer-encoding")
    if codings and not is_chunked(codings):
        message = "The Transfer-Encoding header must be exactly 'chunked'."
        raise MalformedRequest(message)
    lengths = head.by_name.get(b"content-length")
    if lengths and (codings or len(lengths) > 1):
        message = "The request's length is stated twice."
        raise MalformedRequest(message)


def is_chunked(codings: Sequence[bytes]) -> bool:
    """Return whether there is exactly one Transfer-Encoding header, with the value `chunked`."""
    return len(codings) == 1 and codings[0].strip(b" \t").lower() == b"chunked"


def check_media(head: Head) -> None:
    """Refuse a body that its headers do not declare as plain JSON."""
    types = head.by_name.get(b"content-type")
    if types == _JSON_TYPES and b"content-encoding" not in head.by_name:
        return
    if any(encoding.lower() != b"identity" for encoding in head.values(b"content-encoding")):
        raise UnsupportedContentEncoding
    if types is None or len(types) != 1:
        raise UnsupportedMediaType
    media, *parameters = (part.strip().lower() for part in types[0].split(b";"))
    if media != b"application/json":
        raise UnsupportedMediaType
    for parameter in parameters:
        name, _, value = parameter.partition(b"=")
        if name == b"charset" and value not in _UTF_8:
            raise UnsupportedMediaType


def decoded(value: bytes) -> str:
    """Decode the value of a header as UTF-8, or as Latin-1 if it is not valid UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _is_printable(text: str) -> bool:
    """Return whether a text has only printable characters, spaces and joiners."""
    return text.isprintable() or all(
        character.isprintable()
        or character in _JOINERS
        or unicodedata.category(character) == _SPACE
        for character in text
    )


def idempotency_key(head: Head, operation: Operation) -> str:
    """Return the idempotency key of a creation, or an empty text without one (OQ-95, OQ-101)."""
    if not operation.creates_idempotently:
        return ""
    name = "Idempotency-Key"
    values = head.values(b"idempotency-key")
    if not values:
        if not operation.demands_idempotency_key:
            return ""
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
