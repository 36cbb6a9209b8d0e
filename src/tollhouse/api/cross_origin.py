"""Cross-origin requests of browsers (CORS), for the origins that the operator names.

Without such origins the edge is served as it is, and no answer has a header of this module.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from tollhouse.api.body import Message, Receive, Scope, Send

AsgiServer = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

PREFLIGHT_SECONDS: Final = 600
_PATHS: Final = (b"/v1/", b"/compat/")
_LIMITS: Final = tuple(
    f"x-ratelimit-{value}-{kind}"
    for value in ("limit", "remaining", "reset")
    for kind in ("requests", "tokens")
)
_EXPOSED: Final = (
    *("x-request-id", "request-id", "retry-after", "retry-after-ms", "x-tollhouse-model"),
    *_LIMITS,
)
_EXPOSE: Final = (b"access-control-expose-headers", ", ".join(_EXPOSED).encode())
_VARY: Final = (b"vary", b"Origin")
_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"DELETE, GET, PATCH, POST"),
    # The asterisk stands for all headers but this one, since credentials are never allowed.
    (b"access-control-allow-headers", b"Authorization, *"),
    (b"access-control-max-age", b"%d" % PREFLIGHT_SECONDS),
)
_OK_MIN, _OK_MAX = 200, 299


def allowing_origins(edge: AsgiServer, origins: Sequence[str]) -> AsgiServer:
    """Return the edge itself without origins, and otherwise one that answers browsers too."""
    return CrossOriginEdge(edge, origins) if origins else edge


class CrossOriginEdge:
    """Adds the headers that let scripts of named origins call `/v1` and `/compat`.

    Origins are compared byte by byte. Cookies are never allowed: scripts send a key, as all
    callers do.
    """

    def __init__(self, edge: AsgiServer, origins: Sequence[str]) -> None:
        self._edge = edge
        self._origins = frozenset(origin.encode() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. The edge answers a preflight too, since it knows the paths."""
        if not scope["raw_path"].startswith(_PATHS):
            await self._edge(scope, receive, send)
            return
        added = self._headers(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], *added, *_of_preflight(scope, message, added)]
                message = {**message, "headers": headers}
            await send(message)

        await self._edge(scope, receive, send_with_headers)

    def _headers(self, scope: Scope) -> tuple[Header, ...]:
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        if len(origins) != 1 or origins[0] not in self._origins:
            return (_VARY,)
        return ((b"access-control-allow-origin", origins[0]), _EXPOSE, _VARY)


def _of_preflight(scope: Scope, message: Message, added: Sequence[Header]) -> tuple[Header, ...]:
    """Return what a preflight of a named origin asks for, if the path exists."""
    is_named, is_found = len(added) > 1, _OK_MIN <= message["status"] <= _OK_MAX
    asks = any(name == b"access-control-request-method" for name, _ in scope["headers"])
    return _PREFLIGHT if scope["method"] == "OPTIONS" and asks and is_named and is_found else ()
