"""A request's head on the wire, and where it goes. Made once for all requests that share it.

Nothing that could end a line early gets into one: what stands here is configuration, but a
credential may come from a file, and a file has line ends.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import urlsplit

Method = Literal["GET", "POST"]
Headers = tuple[tuple[str, str], ...]

HEADS_REMEMBERED_MAX: Final = 1_024
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_HOST: Final = re.compile(r"[A-Za-z0-9._:-]+", re.ASCII)
_TARGET: Final = re.compile(r"/[!-~]*", re.ASCII)
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_VALUE: Final = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?", re.ASCII)
_FRAMING: Final = frozenset({"connection", "content-length", "host", "transfer-encoding"})


class NotSendable(ValueError):
    """A part of a request that must not stand on the wire; it may be a secret, so is not told."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a connection leads to."""

    is_tls: bool
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class RequestHead:
    """All of a head but the length of the body."""

    origin: Origin
    lines: bytes = field(repr=False)

    def with_body(self, body: bytes | None) -> bytes:
        """The whole head of a request with this body."""
        if body is None:
            return self.lines + b"\r\n"
        return b"%bcontent-length: %d\r\n\r\n" % (self.lines, len(body))


@lru_cache(maxsize=HEADS_REMEMBERED_MAX)
def request_head(method: Method, url: str, headers: Headers) -> RequestHead:
    """The head of a request to `url`; raises NotSendable."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme)
    if port is None or parts.username is not None or parts.fragment:
        raise NotSendable
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    _check(_HOST, host)
    _check(_TARGET, target)
    is_usual_port = port == _DEFAULT_PORTS[parts.scheme]
    named_host = f"[{host}]" if ":" in host else host
    lines = [
        f"{method} {target} HTTP/1.1",
        f"host: {named_host}" if is_usual_port else f"host: {named_host}:{port}",
        *map(_line, headers),
    ]
    origin = Origin(is_tls=parts.scheme == "https", host=host, port=port)
    return RequestHead(origin, "".join(f"{line}\r\n" for line in lines).encode("ascii"))


def _line(header: tuple[str, str]) -> str:
    name, value = header
    _check(_NAME, name)
    _check(_VALUE, value)
    if name.lower() in _FRAMING:
        raise NotSendable
    return f"{name}: {value}"


def _check(form: re.Pattern[str], text: str) -> None:
    if form.fullmatch(text) is None:
        raise NotSendable
