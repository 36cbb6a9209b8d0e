"""Rendering errors. This is the only module that turns the kind of an error into a status."""

import logging
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from tollhouse.base.errors import GatewayError, Unexpected, without_frames
from tollhouse.base.ids import RequestId
from tollhouse.contract.errors import (
    Envelope,
    ErrorBody,
    ErrorShape,
    MessagesEnvelope,
    error_type,
)

logger = logging.getLogger("tollhouse.api")


class Reply(Struct, frozen=True, kw_only=True):
    """A complete answer: status, headers and bytes, which are JSON or, if `is_events`, a stream."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    is_events: bool = False
    error_code: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Presentation:
    """How the errors of one request are rendered. `documentation_url` ends without a slash."""

    request_id: RequestId
    shape: ErrorShape
    documentation_url: str | None


def unexpected(bug: Exception, request_id: RequestId) -> Unexpected:
    """Log an exception that is no `GatewayError`, and return the error that the caller sees."""
    logger.error("request_failed", exc_info=bug, extra={"request_id": request_id})
    without_frames(bug)
    return Unexpected()


def body_of(failure: GatewayError, presentation: Presentation) -> ErrorBody:
    """Return the error object, for an envelope or for a stream."""
    doc_url = _doc_url(failure.code, presentation.documentation_url)
    message = failure.message
    if presentation.shape is ErrorShape.MESSAGES and failure.messages_words is not None:
        message = failure.messages_words
    elif failure.cites_page and doc_url is not None:
        message = f"{message} See {doc_url} for more."
    return ErrorBody(
        code=failure.code,
        message=message,
        type=error_type(
            failure.kind, shape=presentation.shape, is_policy_failure=failure.is_policy_failure
        ),
        param=failure.param,
        request_id=str(presentation.request_id),
        doc_url=doc_url,
    )


def stream_error_body(
    failure: GatewayError,
    request_id: RequestId,
    shape: ErrorShape,
    *,
    documentation_url: str | None,
) -> ErrorBody:
    """Return the error object for an answer that fails after its first byte."""
    presentation = Presentation(
        request_id=request_id, shape=shape, documentation_url=documentation_url
    )
    return body_of(failure, presentation)


def render(failure: GatewayError, presentation: Presentation) -> Reply:
    """Return the answer for an error, with the headers that SDKs use to retry."""
    body = body_of(failure, presentation)
    envelope = (
        MessagesEnvelope(error=body, request_id=body.request_id)
        if presentation.shape is ErrorShape.MESSAGES
        else Envelope(error=body)
    )
    return Reply(
        status=failure.kind,
        headers=failure.headers() + _retry_headers(failure),
        body=msgspec.json.encode(envelope),
        error_code=failure.code,
    )


def _doc_url(code: str, documentation_url: str | None) -> str | None:
    return None if documentation_url is None else f"{documentation_url}/{code}"


def _retry_headers(failure: GatewayError) -> tuple[tuple[str, str], ...]:
    headers: tuple[tuple[str, str], ...] = ()
    if failure.retry_after_seconds is not None:
        headers += (
            ("retry-after", str(failure.retry_after_seconds)),
            ("retry-after-ms", str(failure.retry_after_seconds * 1000)),
        )
    if failure.should_retry is not None:
        headers += (("x-should-retry", "true" if failure.should_retry else "false"),)
    return headers
