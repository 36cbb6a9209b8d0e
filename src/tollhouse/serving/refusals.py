"""Answers to requests that are refused before the edge receives them."""

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final
from uuid import UUID

from tollhouse.activity.rules import outcome
from tollhouse.api.edge_errors import WorkerOverloaded
from tollhouse.api.errors import Presentation, render
from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import RequestId, time_ordered_uuid
from tollhouse.contract.errors import ErrorShape
from tollhouse.contract.operations import OPERATIONS
from tollhouse.observability import metrics

logger = logging.getLogger("tollhouse.serving")

Header = tuple[bytes, bytes]

_HEADERS: Final = (("content-type", "application/json"), ("cache-control", "no-store"))
_CLOSE: Final = (b"connection", b"close")
_PLACEHOLDER_ID: Final = RequestId(UUID(int=0))
_PLACEHOLDER: Final = str(_PLACEHOLDER_ID).encode()
_MESSAGES_PATHS: Final = frozenset(
    operation.path.encode()
    for operation in OPERATIONS
    if operation.error_shape is ErrorShape.MESSAGES
)


class PreparedRefusal:
    """The answer for one error. Only its request ID and the server's own headers differ."""

    def __init__(
        self, error: GatewayError, shape: ErrorShape, *, documentation_url: str | None
    ) -> None:
        presentation = Presentation(
            request_id=_PLACEHOLDER_ID, shape=shape, documentation_url=documentation_url
        )
        reply = render(error, presentation)
        names = ("x-request-id", "request-id")
        ids = names if shape is ErrorShape.MESSAGES else names[:1]
        headers = (
            *((name, str(_PLACEHOLDER_ID)) for name in ids),
            *reply.headers,
            *_HEADERS,
            ("content-length", str(len(reply.body))),
        )
        status = HTTPStatus(reply.status)
        self._status_line = f"HTTP/1.1 {status} {status.phrase}\r\n".encode()
        self._head = "".join(f"{name}: {value}\r\n" for name, value in headers).encode() + b"\r\n"
        self._whole = self._head + reply.body

    def answer(
        self, request_id: RequestId, server_headers: Sequence[Header], *, has_body: bool = True
    ) -> bytes:
        """Return the answer to one request."""
        rest = self._whole if has_body else self._head
        own = b"".join([b"%b: %b\r\n" % header for header in server_headers])
        return self._status_line + own + rest.replace(_PLACEHOLDER, str(request_id).encode())


class OverloadRefusals:
    """The answers of an overloaded worker. They are prepared, and not logged one by one."""

    def __init__(self, *, documentation_url: str | None) -> None:
        self._by_shape = {
            shape: PreparedRefusal(WorkerOverloaded(), shape, documentation_url=documentation_url)
            for shape in ErrorShape
        }

    def answer(
        self, method: bytes, target: bytes, server_headers: list[Header], *, keeps_alive: bool
    ) -> bytes:
        """Return the answer to one request, in the form of its route."""
        is_messages = target.partition(b"?")[0] in _MESSAGES_PATHS
        prepared = self._by_shape[ErrorShape.MESSAGES if is_messages else ErrorShape.OPENAI]
        _count(WorkerOverloaded.kind, WorkerOverloaded.code)
        return prepared.answer(
            RequestId(time_ordered_uuid()),
            server_headers if keeps_alive else [*server_headers, _CLOSE],
            has_body=method != b"HEAD",
        )


def refusal(
    error: GatewayError, server_headers: list[Header], *, documentation_url: str | None
) -> bytes:
    """Return the response for a connection that is about to close. Logs it with its request ID."""
    request_id = RequestId(time_ordered_uuid())
    logger.info(
        "request_refused",
        extra={"request_id": request_id, "status": int(error.kind), "code": error.code},
    )
    _count(error.kind, error.code)
    prepared = PreparedRefusal(error, ErrorShape.OPENAI, documentation_url=documentation_url)
    return prepared.answer(request_id, [*server_headers, _CLOSE])


def _count(status: int, code: str) -> None:
    metrics.request_answered(None, status=status, outcome=outcome(status, code), seconds=0.0)
