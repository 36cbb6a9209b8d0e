"""From a failure to its answer: the only place where kinds become statuses."""

import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from tollhouse.api.edge_errors import Disconnected
from tollhouse.base.errors import GatewayError, Unexpected, without_frames
from tollhouse.base.ids import RequestId
from tollhouse.contract.errors import (
    Envelope,
    ErrorBody,
    ErrorShape,
    MessagesEnvelope,
    error_type,
)

T = TypeVar("T")

logger = logging.getLogger("tollhouse.api")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """An answer in its last form: status, headers and bytes."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    error_code: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Presentation:
    """How failures of one request are shown. `documentation_url` ends without a slash."""

    request_id: RequestId
    shape: ErrorShape
    documentation_url: str | None


async def or_failure(work: Awaitable[T], request_id: RequestId) -> T | GatewayError:
    """Run the work. Whatever is not a failure of ours is our own bug, logged and shown as such.

    No failure keeps the frames that it passed: a refused request must not stay in memory.
    """
    try:
        return await work
    except GatewayError as failure:
        return without_frames(failure)
    except Disconnected:
        raise
    except Exception as bug:  # the last line: a bug must not cost the connection its answer
        logger.exception("request_failed", extra={"request_id": request_id})
        without_frames(bug)
        return Unexpected()


def body_of(failure: GatewayError, presentation: Presentation) -> ErrorBody:
    """What is told of a failure, in an envelope or in a stream."""
    doc_url = _doc_url(failure.code, presentation.documentation_url)
    cites_page = failure.cites_page and doc_url is not None
    return ErrorBody(
        code=failure.code,
        message=f"{failure.message} See {doc_url} for more." if cites_page else failure.message,
        type=error_type(
            failure.kind, shape=presentation.shape, is_policy_failure=failure.is_policy_failure
        ),
        param=failure.param,
        request_id=str(presentation.request_id),
        doc_url=doc_url,
    )


def render(failure: GatewayError, presentation: Presentation) -> Reply:
    """The envelope of a failure, and the headers that SDKs obey."""
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
