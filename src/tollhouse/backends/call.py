"""One call to a backend: attempts on its replicas, timeouts, and the failure for each status."""

import asyncio
import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, TypeVar
from urllib.parse import urlsplit

from tollhouse.backends.connection import Deadline, UpstreamConnection
from tollhouse.backends.errors import (
    BackendBroke,
    BackendBusy,
    BackendDown,
    BackendError,
    BackendFailed,
    BackendHungUp,
    BackendMalformed,
    BackendRejected,
    BackendTimedOut,
    BackendUnauthorized,
    BackendUnreachable,
    ConnectionBroken,
    NoReplica,
    NotConnected,
    NotHttp,
    TookTooLong,
    TransportError,
    UpstreamBodyTooLarge,
)
from tollhouse.backends.http1 import Headers, RequestHead, request_head
from tollhouse.backends.openai_json import refusal_text
from tollhouse.backends.replicas import Replica, Replicas
from tollhouse.backends.transport import Response, Transport
from tollhouse.backends.types import BackendConfig, UpstreamRequest
from tollhouse.observability.metrics import BackendMetrics

logger = logging.getLogger("tollhouse.backends")

E = TypeVar("E", bound=BackendError)

LINGER_SECONDS: Final = 0.05
"""How long to wait for the end of a finished answer, so that its connection can be reused."""
REFUSAL_BYTES_MAX: Final = 65_536
_SECONDS: Final = re.compile(rb"[0-9]{1,9}")
_OK: Final = 200
_BUSY: Final = frozenset({429, 529})
"""529 is how Anthropic says that it is overloaded."""
_REQUEST_REFUSED: Final = frozenset({400, 413, 422})
_DENIED: Final = range(300, 500)
_ENGINE_ABSENT: Final = frozenset({502, 503, 504})
_ANSWERED: Final = "answered"
_LEFT: Final = "left"
_UNANSWERED: Final[Mapping[type[TransportError], type[BackendFailed]]] = {
    NotConnected: BackendUnreachable,
    ConnectionBroken: BackendHungUp,
    NotHttp: BackendMalformed,
}


class UpstreamCall:
    """One call. Its owner must close it; closing early aborts the connection and stops the engine.

    `replica` is the name of the replica that answers, or that was tried last.
    """

    __slots__ = (
        "_acquired",
        "_began_at_seconds",
        "_config",
        "_connection",
        "_deadline",
        "_has_begun",
        "_loop",
        "_metrics",
        "_open_until_seconds",
        "_outcome",
        "_replicas",
        "_response",
        "_transport",
        "_tried",
        "replica",
    )

    def __init__(
        self,
        config: BackendConfig,
        transport: Transport,
        replicas: Replicas,
        metrics: BackendMetrics,
    ) -> None:
        self._config = config
        self._transport = transport
        self._replicas = replicas
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._began_at_seconds = self._loop.time()
        self._deadline = Deadline(self._time_out)
        self._tried: list[Replica] = []
        self._acquired: Replica | None = None
        self._connection: UpstreamConnection | None = None
        self._response: Response | None = None
        self._has_begun = False
        self._outcome = _LEFT
        self.replica = ""

    async def open(
        self, request: UpstreamRequest, headers: Headers, *, media_type: bytes, seconds: float
    ) -> None:
        """Send the request until a replica answers 200, and wait for the head of that answer.

        `seconds` bounds all attempts together, and reading until `next_bytes` sets another
        deadline. Raises the last failure, or if the answer has another media type. No frame keeps
        a failure that it raises: such a cycle would keep the request in memory.
        """
        self._open_until_seconds = self._began_at_seconds + seconds
        self._deadline.set(self._open_until_seconds)
        try:
            replica = self._replicas.acquire(request.affinity)
            if replica is None:
                raise NoReplica
            while self._response is None:
                try:
                    self._response = await self._attempt(replica, request, headers)
                except BackendError as failure:
                    following = self._next_replica(replica, request, failure)
                    if following is None:
                        raise
                    replica = following
        except TookTooLong:
            raise self.failed(BackendTimedOut(replica=self.replica)) from None
        except BackendError as failure:
            self._outcome = failure.outcome
            raise
        if not _is_uncompressed(self._response.headers, media_type):
            raise self.failed(BackendMalformed(replica=self.replica))

    async def _attempt(
        self, replica: Replica, request: UpstreamRequest, headers: Headers
    ) -> Response:
        """Send the request to an acquired replica, and return its answer if the status is 200.

        Raises `TookTooLong` at the deadline of `open`.
        """
        self._acquired = replica
        self._tried.append(replica)
        self.replica = replica.name
        url = (replica.host_url if request.is_at_host else replica.url) + request.path
        head = request_head("POST", url, headers)
        if request.traceparent is not None:
            head = head.with_traceparent(request.traceparent)
        try:
            self._connection = self._transport.pop_idle(head.origin) or await self._connect(head)
            response = await self._transport.send_on(self._connection, head, request.body)
        except TookTooLong:
            raise
        except TransportError as error:
            raise _UNANSWERED[type(error)](replica=replica.name) from None
        if response.status != _OK:
            raise await self._refusal(response)
        return response

    async def _connect(self, head: RequestHead) -> UpstreamConnection:
        left_seconds = self._open_until_seconds - self._loop.time()
        try:
            return await self._transport.connect(
                head.origin, min(self._config.connect_seconds, left_seconds)
            )
        except NotConnected:
            if self._loop.time() >= self._open_until_seconds:
                raise TookTooLong from None
            raise

    def _next_replica(
        self, replica: Replica, request: UpstreamRequest, failure: BackendError
    ) -> Replica | None:
        """Record a failed attempt, and return the replica for the next one, if there is any."""
        if failure.blames_replica:
            self._replicas.record_failure(replica)
        else:
            self._replicas.record_success(replica)
        self._release()
        return self._replicas.acquire_next(request.affinity, failure, self._tried)

    async def _refusal(self, response: Response) -> BackendError:
        """Return the failure that an answer other than 200 means (OQ-48). Closes the response."""
        status, replica = response.status, self.replica
        try:
            if status in _REQUEST_REFUSED:
                return BackendRejected(await self._refusal_text(response), replica=replica)
        finally:
            self._connection = None
            response.close()
        if status in _BUSY:
            wait_seconds = _whole_seconds(response.headers.get(b"retry-after", b""))
            return BackendBusy(replica=replica, retry_after_seconds=wait_seconds)
        logger.warning(
            "backend_refused",
            extra={"backend": self._config.name, "replica": self._tried[-1].url, "status": status},
        )
        if status in _ENGINE_ABSENT:
            return BackendDown(replica=replica)
        if status in _DENIED:
            return BackendUnauthorized(replica=replica)
        return BackendFailed(replica=replica)

    async def _refusal_text(self, response: Response) -> str | None:
        try:
            body = await response.read(REFUSAL_BYTES_MAX)
        except TookTooLong:
            raise
        except TransportError:
            return None
        parts = urlsplit(self._tried[-1].url)
        hidden = [self._config.api_key, parts.netloc, parts.hostname]
        return refusal_text(body, hidden=[text for text in hidden if text])

    async def next_bytes(self, until_seconds: float) -> bytes:
        """Return the next bytes of the body; empty at its end."""
        assert self._response is not None, "a call is opened before it is read"
        # Without this check, bytes that have already arrived would be returned after the deadline.
        if self._loop.time() >= until_seconds:
            raise self.failed(BackendTimedOut(replica=self.replica))
        self._deadline.set(until_seconds)
        try:
            return await self._response.next_bytes()
        except TookTooLong:
            raise self.failed(BackendTimedOut(replica=self.replica)) from None
        except TransportError:
            raise self.failed(BackendBroke(replica=self.replica)) from None
        finally:
            self._deadline.suspend()

    async def read(self, *, bytes_max: int) -> bytes:
        """Return the whole body. Raises `BackendTimedOut` at the deadline of `open`."""
        assert self._response is not None, "a call is opened before it is read"
        try:
            return await self._response.read(bytes_max)
        except TookTooLong:
            raise self.failed(BackendTimedOut(replica=self.replica)) from None
        except UpstreamBodyTooLarge:
            raise self.failed(BackendMalformed(replica=self.replica)) from None
        except TransportError:
            raise self.failed(BackendBroke(replica=self.replica)) from None

    def began(self) -> None:
        """Record that a part of the answer was decoded: the replica works."""
        assert self._acquired is not None, "a call is opened before it is read"
        self._has_begun = True
        self._replicas.record_success(self._acquired)
        self._metrics.answer_began(self._loop.time() - self._began_at_seconds)

    def completed(self) -> None:
        """Record that the answer is complete."""
        if not self._has_begun:
            self.began()
        self._outcome = _ANSWERED

    def failed(self, failure: E) -> E:
        """Record the failure and return it, to be raised."""
        self._outcome = failure.outcome
        if self._acquired is not None and failure.blames_replica and not self._has_begun:
            self._replicas.record_failure(self._acquired)
        return failure

    async def linger(self) -> None:
        """Wait a moment for the end of a finished answer."""
        assert self._response is not None, "a call is opened before it is read"
        self._deadline.set(self._loop.time() + LINGER_SECONDS)
        with suppress(TransportError):
            while await self._response.next_bytes():
                pass
        self._deadline.suspend()

    def close(self) -> None:
        """Release the connection and the replica, and count the call."""
        self._deadline.cancel()
        self._connection = None
        if self._response is not None:
            self._response.close()
        self._release()
        self._metrics.call_ended(self._outcome)

    def _release(self) -> None:
        if self._acquired is not None:
            self._replicas.release(self._acquired)
            self._acquired = None

    def _time_out(self) -> None:
        if self._connection is not None:
            self._connection.time_out()


def _is_uncompressed(headers: Mapping[bytes, bytes], media_type: bytes) -> bool:
    """Return whether a body is of this media type and not compressed.

    The gateway asks for nothing else, and a compressed body exceeds any bound when it is expanded.
    """
    if headers.get(b"content-type") == media_type and b"content-encoding" not in headers:
        return True
    found = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    coding = headers.get(b"content-encoding", b"").strip()
    return found == media_type and coding in (b"", b"identity")


def _whole_seconds(header: bytes) -> int | None:
    """Return the seconds of a `Retry-After` header. A date is ignored, because clocks differ."""
    return int(header) if _SECONDS.fullmatch(header.strip()) else None
