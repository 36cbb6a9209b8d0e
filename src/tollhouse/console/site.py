"""The console at `/console`: files for anybody, since whoever has no key sees nothing with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tollhouse.api.body import Receive, Send
from tollhouse.api.edge import Scope
from tollhouse.api.head import Head
from tollhouse.base.clock import Clock
from tollhouse.base.ids import RequestId, time_ordered_uuid
from tollhouse.console.files import INDEX, File
from tollhouse.observability import log, metrics
from tollhouse.observability.context import RequestContext

ROOT: Final = b"/console"
OPERATION: Final = "console"
_BELOW: Final = ROOT + b"/"
_PLAIN: Final = "text/plain; charset=utf-8"
_METHODS: Final = "GET, HEAD"

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_GUARDS: Final = (
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
)
_FOR_GOOD: Final = "public, max-age=31536000, immutable"

_NOT_BUILT: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Tollhouse</title></head>
<body>
<h1>The console is not built</h1>
<p>Run <code>make console</code> in the checkout and start the gateway again.
An installed wheel has the console built in.</p>
</body>
</html>
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    status: int
    headers: tuple[tuple[str, str], ...]
    content: bytes


class Site:
    """An ASGI application for the paths that `is_at` claims."""

    def __init__(self, files: Mapping[str, File], clock: Clock) -> None:
        self._files = files
        self._clock = clock

    def is_at(self, raw_path: bytes) -> bool:
        """Whether the path, as it was sent, belongs to the console."""
        return raw_path == ROOT or raw_path.startswith(_BELOW)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. No body is read: one that was announced costs its connection."""
        del receive
        started_seconds = self._clock.monotonic_seconds()
        head = Head(scope["headers"])
        request_id = RequestId(time_ordered_uuid())
        answer = self._answer(scope["method"], scope["raw_path"], head)
        headers = [("x-request-id", str(request_id)), *_GUARDS, *answer.headers]
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
        self._tell(scope["method"], request_id, answer.status, seconds)

    def _tell(self, method: str, request_id: RequestId, status: int, seconds: float) -> None:
        context = RequestContext(request_id=request_id, method=method, operation=OPERATION)
        metrics.request_answered(OPERATION, status=status, seconds=seconds)
        log.request_line(context, status=status, duration_ms=seconds * 1000, now=self._clock.now())

    def _answer(self, method: str, raw_path: bytes, head: Head) -> _Answer:
        if method not in ("GET", "HEAD"):
            return _text(405, f"The console accepts {_METHODS}.", _PLAIN, ("allow", _METHODS))
        if INDEX not in self._files:
            return _text(503, _NOT_BUILT, "text/html; charset=utf-8")
        name = raw_path[len(_BELOW) :].decode("latin-1")
        file = self._files.get(name)
        if file is None and name.startswith("assets/"):
            return _text(404, "No such file.", _PLAIN)
        # Every other path is a page, and the console knows which.
        return _file(file or self._files[INDEX], head)


def _file(file: File, head: Head) -> _Answer:
    caching = _FOR_GOOD if file.is_hashed else "no-cache"
    headers = (("cache-control", caching), ("etag", file.etag), ("vary", "accept-encoding"))
    if _has(head.values(b"if-none-match"), file.etag.encode()):
        return _Answer(status=304, headers=headers, content=b"")
    headers += (("content-type", file.media_type),)
    content = file.content
    if file.gzipped is not None and _has(head.values(b"accept-encoding"), b"gzip"):
        headers += (("content-encoding", "gzip"),)
        content = file.gzipped
    headers += (("content-length", str(len(content))),)
    return _Answer(status=200, headers=headers, content=content)


def _has(values: list[bytes], wanted: bytes) -> bool:
    """Whether a list in headers names something as it is; `gzip;q=0` does not name gzip."""
    return any(item.strip() == wanted for value in values for item in value.split(b","))


def _text(status: int, text: str, media_type: str, *headers: tuple[str, str]) -> _Answer:
    content = text.encode()
    return _Answer(
        status=status,
        headers=(
            ("cache-control", "no-store"),
            ("content-type", media_type),
            ("content-length", str(len(content))),
            *headers,
        ),
        content=content,
    )
