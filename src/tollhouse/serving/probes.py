"""The endpoints for the platform: liveness, readiness and metrics."""

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

from tollhouse.observability import registry
from tollhouse.serving.server import Receive, Scope, Send

PLAIN = "text/plain; charset=utf-8"


class Probes:
    """An ASGI application with three paths, which has its own listener."""

    def __init__(self, *, is_ready: Callable[[], bool], metrics_directory: Path) -> None:
        self._is_ready = is_ready
        self._metrics_directory = metrics_directory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request without reading its body."""
        del receive
        status, content_type, body = self._answer(scope["path"])
        headers = [
            (b"content-type", content_type.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _answer(self, path: str) -> tuple[HTTPStatus, str, bytes]:
        match path:
            case "/livez":
                return HTTPStatus.OK, PLAIN, b"ok"
            case "/readyz" if self._is_ready():
                return HTTPStatus.OK, PLAIN, b"ok"
            case "/readyz":
                return HTTPStatus.SERVICE_UNAVAILABLE, PLAIN, b"not ready"
            case "/metrics":
                page = registry.exposition(self._metrics_directory)
                return HTTPStatus.OK, registry.CONTENT_TYPE, page
            case _:
                return HTTPStatus.NOT_FOUND, PLAIN, b"not found"
