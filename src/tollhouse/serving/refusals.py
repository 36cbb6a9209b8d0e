"""Answers to requests that are refused before the edge receives them."""

import logging
from http import HTTPStatus
from typing import Final

from tollhouse.api.errors import Presentation, render
from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import RequestId, time_ordered_uuid
from tollhouse.contract.errors import ErrorShape
from tollhouse.observability import metrics

logger = logging.getLogger("tollhouse.serving")

_HEADERS: Final = (
    b"content-type: application/json\r\ncache-control: no-store\r\nconnection: close\r\n"
)


def refusal(
    error: GatewayError,
    default_headers: list[tuple[bytes, bytes]],
    *,
    documentation_url: str | None,
) -> bytes:
    """Return the response for a connection that is about to close. Logs it with its request ID."""
    request_id = RequestId(time_ordered_uuid())
    logger.info(
        "request_refused",
        extra={"request_id": request_id, "status": int(error.kind), "code": error.code},
    )
    metrics.request_answered(None, status=error.kind, seconds=0.0)
    presentation = Presentation(
        request_id=request_id, shape=ErrorShape.OPENAI, documentation_url=documentation_url
    )
    body = render(error, presentation).body
    status = HTTPStatus(error.kind)
    return b"".join(
        (
            f"HTTP/1.1 {status} {status.phrase}\r\n".encode(),
            *(b"%b: %b\r\n" % header for header in default_headers),
            _HEADERS,
            f"x-request-id: {request_id}\r\ncontent-length: {len(body)}\r\n\r\n".encode(),
            body,
        )
    )
