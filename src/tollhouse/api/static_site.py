"""Paths that need no API key: public files from memory, and the sign-in of the console."""

import gzip
import hashlib
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tollhouse.activity.rules import outcome
from tollhouse.api.body import Receive, Scope, Send
from tollhouse.api.head import Head
from tollhouse.base.clock import Clock
from tollhouse.base.ids import RequestId, time_ordered_uuid
from tollhouse.observability import log, metrics

HTML: Final = "text/html; charset=utf-8"
PLAIN_TEXT: Final = "text/plain; charset=utf-8"
_METHODS: Final = "GET, HEAD"
_GUARDS: Final = (
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
)
_GZIP: Final = re.compile(rb"gzip(?:\s*;\s*q=(?:1(?:\.0*)?|0\.\d*[1-9]\d*))?")
_FOR_GOOD: Final = "public, max-age=31536000, immutable"


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """One file: `content`, `gzipped`, or both. `is_hashed`: its name changes with its content."""

    content: bytes | None = None
    media_type: str
    gzipped: bytes | None = None
    etag: str
    is_hashed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class StaticAnswer:
    """An answer without the headers that every answer of the site has."""

    status: int
    headers: tuple[tuple[str, str], ...]
    content: bytes


class StaticSite(ABC):
    """An ASGI application for the path `root` and all paths below it."""

    def __init__(
        self, *, root: bytes, operation: str, content_security_policy: str, clock: Clock
    ) -> None:
        self._root = root
        self._below = root + b"/"
        self._operation = operation
        self._guards = (("content-security-policy", content_security_policy), *_GUARDS)
        self._clock = clock

    @abstractmethod
    def find(self, path: str) -> File | StaticAnswer:
        """Return the file or answer at `path`, which is empty or begins with a slash."""

    def is_at(self, raw_path: bytes) -> bool:
        """Return whether a path, as it was sent, belongs to the site."""
        return raw_path == self._root or raw_path.startswith(self._below)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request without reading its body; an announced body closes the connection."""
        del receive
        started_seconds = self._clock.monotonic_seconds()
        head = Head(scope["headers"])
        request_id = RequestId(time_ordered_uuid())
        answer = await self.answer(scope, head, request_id)
        headers = [("x-request-id", str(request_id)), *self._guards, *answer.headers]
        if head.announces_body:
            headers.append(("connection", "close"))
        await send(
            {
                "type": "http.response.start",
                "status": answer.status,
                "headers": [(name.encode(), value.encode()) for name, value in headers],
            }
        )
        content = b"" if scope["method"] == "HEAD" else answer.content
        await send({"type": "http.response.body", "body": content})
        seconds = self._clock.monotonic_seconds() - started_seconds
        self._record(scope["method"], request_id, answer.status, seconds)

    def _record(self, method: str, request_id: RequestId, status: int, seconds: float) -> None:
        ended = outcome(status, None)
        metrics.request_answered(self._operation, status=status, outcome=ended, seconds=seconds)
        if not log.are_requests_logged():
            return
        log.request_line(
            log.RequestLine(
                timestamp=self._clock.now(),
                request_id=request_id,
                method=method,
                status=status,
                duration_ms=round(seconds * 1000, log.MILLISECOND_DECIMALS),
                operation=self._operation,
            )
        )

    async def answer(self, scope: Scope, head: Head, request_id: RequestId) -> StaticAnswer:
        """Return the answer to a request, whose body is not read."""
        del request_id
        method, raw_path = scope["method"], scope["raw_path"]
        if method not in ("GET", "HEAD"):
            message = f"This URL accepts {_METHODS}."
            return text_answer(405, message, PLAIN_TEXT, ("allow", _METHODS))
        found = self.find(raw_path[len(self._root) :].decode("latin-1"))
        return found if isinstance(found, StaticAnswer) else _file_answer(found, head)


def etag_of(content: bytes) -> str:
    """Return a weak entity tag: compressed or not, the content is the same."""
    return f'W/"{hashlib.sha256(content).hexdigest()[:32]}"'


def text_answer(status: int, text: str, media_type: str, *headers: tuple[str, str]) -> StaticAnswer:
    """Return an answer that no cache keeps."""
    content = text.encode()
    return StaticAnswer(
        status=status,
        headers=(
            ("cache-control", "no-store"),
            ("content-type", media_type),
            ("content-length", str(len(content))),
            *headers,
        ),
        content=content,
    )


def _file_answer(file: File, head: Head) -> StaticAnswer:
    caching = _FOR_GOOD if file.is_hashed else "no-cache"
    headers = (("cache-control", caching), ("etag", file.etag), ("vary", "accept-encoding"))
    if _names(head.values(b"if-none-match"), file.etag.encode()):
        return StaticAnswer(status=304, headers=headers, content=b"")
    headers += (("content-type", file.media_type),)
    if file.gzipped is not None and _accepts_gzip(head.values(b"accept-encoding")):
        headers += (("content-encoding", "gzip"),)
        content = file.gzipped
    elif file.content is not None:
        content = file.content
    else:
        content = _decompressed(file.gzipped or b"")
    headers += (("content-length", str(len(content))),)
    return StaticAnswer(status=200, headers=headers, content=content)


# A caller without gzip must not be able to keep the event loop busy with the same file.
_decompressed = lru_cache(maxsize=4)(gzip.decompress)


def _accepts_gzip(values: list[bytes]) -> bool:
    """Return whether `gzip` is accepted, with any weight but zero."""
    return any(
        _GZIP.fullmatch(item.strip()) is not None for value in values for item in value.split(b",")
    )


def _names(values: list[bytes], wanted: bytes) -> bool:
    """Return whether a comma-separated header contains `wanted`."""
    return any(item.strip() == wanted for value in values for item in value.split(b","))
