"""One call to a backend: a visit to each replica, timeouts, and the failure for each status."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, TypeVar
from urllib.parse import urlsplit

from tollhouse.backends.connection import Deadline, UpstreamConnection
from tollhouse.backends.context_refusals import context_refusal
from tollhouse.backends.errors import (
    BackendBroke,
    BackendBusy,
    BackendError,
    BackendFailed,
    BackendHungUp,
    BackendMalformed,
    BackendRejected,
    BackendSilent,
    BackendTimedOut,
    BackendUnauthorized,
    BackendUnreachable,
    ConnectionBroken,
    NotConnected,
    NotHttp,
    NotTrusted,
    PromptTooLong,
    TookTooLong,
    TransportError,
    UpstreamBodyTooLarge,
)
from tollhouse.backends.http1 import Headers, RequestHead, request_head
from tollhouse.backends.openai_json import refusal_text
from tollhouse.backends.replicas import Replica, Replicas
from tollhouse.backends.transport import Response, Transport
from tollhouse.backends.types import BackendConfig, UpstreamRequest
from tollhouse.base.attempts import ANSWERED, Attempt
from tollhouse.observability.metrics import BackendMetrics

logger = logging.getLogger("tollhouse.backends")

E = TypeVar("E", bound=BackendError)
T = TypeVar("T")

LINGER_SECONDS: Final = 0.05
"""How long to wait for the end of a finished answer, so that its connection can be reused."""
REFUSAL_BYTES_MAX: Final = 65_536
_SECONDS: Final = re.compile(rb"[0-9]{1,9}")
_OK: Final = 200
_BUSY: Final = frozenset({429, 529})
"""529 is how Anthropic says that it is overloaded."""
_REQUEST_REFUSED: Final = frozenset({400, 413, 422})
_NOT_WHOLE: Final = range(200, 300)
_DENIED: Final = range(300, 500)
_LEFT: Final = "left"
_MS: Final = 1_000
_UNANSWERED: Final[Mapping[type[TransportError], type[BackendFailed]]] = {
    NotConnected: BackendUnreachable,
    NotTrusted: BackendUnreachable,
    ConnectionBroken: BackendHungUp,
    NotHttp: BackendMalformed,
}


class UpstreamCall:
    """One call. Its owner must close it; closing early aborts the connection and stops the engine.

    `replica` is the name of the replica that answers, or that was tried last.
    """

    __slots__ = (
        "_acquired",
        "_attempt_began_seconds",
        "_attempt_until_seconds",
        "_began_at_seconds",
        "_config",
        "_connection",
        "_deadline",
        "_has_begun",
        "_loop",
        "_metrics",
        "_model",
        "_outcome",
        "_replicas",
        "_response",
        "_transport",
        "_tried",
        "_until_seconds",
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
        self._until_seconds = self._began_at_seconds + config.total_seconds
        self._deadline = Deadline(self._time_out)
        self._tried: list[Replica] = []
        self._acquired: Replica | None = None
        self._connection: UpstreamConnection | None = None
        self._response: Response | None = None
        self._attempt_began_seconds: float | None = None
        self._has_begun = False
        self._model = ""
        self._outcome = _LEFT
        self.replica = ""

    async def begin(
        self,
        request: UpstreamRequest,
        headers: Headers,
        *,
        media_type: bytes,
        seconds: float | None,
        read: Callable[[float], Awaitable[T]],
    ) -> T:
        """Send the request until a replica answers, and return what `read` reads of its answer.

        `read` receives the instant until which it may wait: `seconds` bounds each attempt, and the
        backend's `total_seconds` all of them. Raises the last failure. No frame keeps a failure
        that it raises: such a cycle would keep the request in memory.
        """
        self._model, is_bounded = request.model, seconds is not None
        try:
            replica = self._replicas.acquire(request, is_bounded=is_bounded)
            while True:
                self._acquired, self.replica = replica, replica.name
                self._tried.append(replica)
                began_seconds = self._attempt_began_seconds = self._loop.time()
                self._attempt_until_seconds = self._until_seconds
                if seconds is not None:
                    self._attempt_until_seconds = min(began_seconds + seconds, self._until_seconds)
                try:
                    answer = await self._attempt(replica, request, headers, media_type, read)
                except BackendError as failure:
                    self._leave(replica, failure)
                    self._note(request, failure.outcome)
                    following = self._replicas.acquire_next(
                        request, failure, is_bounded=is_bounded, tried=self._tried
                    )
                    if following is None:
                        raise
                    replica = following
                else:
                    self._began(replica)
                    if request.attempts:
                        self._note(request, ANSWERED)
                    return answer
        except BackendError as failure:
            self._outcome = failure.outcome
            if not self._tried:
                self._note(request, failure.outcome)
            raise

    async def _attempt(
        self,
        replica: Replica,
        request: UpstreamRequest,
        headers: Headers,
        media_type: bytes,
        read: Callable[[float], Awaitable[T]],
    ) -> T:
        """Send the request to an acquired replica, and read its answer if the status is 200."""
        self._deadline.set(self._attempt_until_seconds)
        url = (replica.host_url if request.is_at_host else replica.url) + request.path
        head = request_head("POST", url, headers)
        if request.traceparent is not None:
            head = head.with_traceparent(request.traceparent)
        try:
            response = self._response = await self._send(head, request.body)
            if response.status != _OK:
                raise await self._refusal(response, request)
        except TookTooLong:
            raise self._late(self._attempt_until_seconds) from None
        except TransportError as error:
            raise _UNANSWERED[type(error)](replica=replica.name) from None
        if not _is_uncompressed(response.headers, media_type):
            raise BackendMalformed(replica=replica.name)
        return await read(self._attempt_until_seconds)

    async def _send(self, head: RequestHead, body: bytes) -> Response:
        """Send a request, once more if its connection was idle and was closed at that moment."""
        idle = self._connection = self._transport.pop_idle(head.origin)
        if idle is not None:
            try:
                return await self._transport.send_on(idle, head, body)
            except ConnectionBroken:
                # It is not known whether the request was read.
                if self._config.bills_without_answer:
                    raise
        self._connection = await self._connect(head)
        return await self._transport.send_on(self._connection, head, body)

    async def _connect(self, head: RequestHead) -> UpstreamConnection:
        left_seconds = self._attempt_until_seconds - self._loop.time()
        try:
            return await self._transport.connect(
                head.origin, min(self._config.connect_seconds, left_seconds)
            )
        except NotConnected:
            if self._loop.time() >= self._attempt_until_seconds:
                raise TookTooLong from None
            raise

    def _late(self, until_seconds: float) -> BackendTimedOut:
        """Return the failure of an answer that was not there at an instant."""
        is_over = until_seconds >= self._until_seconds
        return (BackendTimedOut if is_over else BackendSilent)(replica=self.replica)

    def _note(self, request: UpstreamRequest, outcome: str) -> None:
        """Add an attempt, or the failure to begin one, to those of the request."""
        if request.attempts is None:
            return
        began_seconds = self._attempt_began_seconds
        ms = 0.0 if began_seconds is None else (self._loop.time() - began_seconds) * _MS
        attempt = Attempt(request.candidate, self.replica or None, outcome, round(ms, 3))
        request.attempts.append(attempt)

    def _leave(self, replica: Replica, failure: BackendError) -> None:
        """End an attempt that failed before its answer began."""
        if failure.blames_replica:
            self._replicas.record_failure(replica, self._model, failure)
        elif isinstance(failure, BackendRejected):
            self._replicas.record_success(replica, self._model)
        self._end_attempt()

    def _end_attempt(self) -> None:
        self._connection = None
        if self._response is not None:
            self._response.close()
            self._response = None
        if self._acquired is not None:
            self._replicas.release(self._acquired)
            self._acquired = None

    async def _refusal(self, response: Response, request: UpstreamRequest) -> BackendError:
        """Return the failure that an answer other than 200 means (OQ-48)."""
        status, replica = response.status, self.replica
        if status in _REQUEST_REFUSED:
            return self._rejection(await self._refusal_body(response), request)
        if status in _BUSY:
            wait_seconds = _whole_seconds(response.headers.get(b"retry-after", b""))
            return BackendBusy(replica=replica, cooldown_seconds=wait_seconds)
        logger.warning(
            "backend_refused",
            extra={"backend": self._config.name, "replica": self._tried[-1].url, "status": status},
        )
        if status in _NOT_WHOLE:
            return BackendMalformed(replica=replica)
        if status in _DENIED:
            return BackendUnauthorized(replica=replica)
        return BackendFailed(replica=replica)

    async def _refusal_body(self, response: Response) -> bytes:
        try:
            return await response.read(REFUSAL_BYTES_MAX)
        except TookTooLong:
            raise
        except TransportError:
            return b""

    def _rejection(self, body: bytes, request: UpstreamRequest) -> BackendRejected:
        found = context_refusal(body)
        if found is not None and (found.context_tokens or request.context_tokens):
            return PromptTooLong(
                prompt_tokens=found.prompt_tokens,
                output_tokens=request.output_tokens,
                context_tokens=found.context_tokens or request.context_tokens,
                replica=self.replica,
            )
        parts = urlsplit(self._tried[-1].url)
        hidden = [self._config.api_key, parts.netloc, parts.hostname]
        text = refusal_text(body, hidden=[text for text in hidden if text])
        return BackendRejected(text, replica=self.replica)

    async def next_bytes(self, until_seconds: float) -> bytes:
        """Return the next bytes of the body; empty at its end."""
        assert self._response is not None, "a call is begun before it is read"
        # Without this check, bytes that have already arrived would be returned after the deadline.
        if self._loop.time() >= until_seconds:
            raise self.failed(self._late(until_seconds))
        self._deadline.set(until_seconds)
        try:
            return await self._response.next_bytes()
        except TookTooLong:
            raise self.failed(self._late(until_seconds)) from None
        except TransportError:
            raise self.failed(BackendBroke(replica=self.replica)) from None
        finally:
            self._deadline.suspend()

    async def read(self, until_seconds: float, *, bytes_max: int) -> bytes:
        """Return the whole body."""
        assert self._response is not None, "a call is begun before it is read"
        try:
            return await self._response.read(bytes_max)
        except TookTooLong:
            raise self._late(until_seconds) from None
        except UpstreamBodyTooLarge:
            raise BackendMalformed(replica=self.replica) from None
        except TransportError:
            raise BackendBroke(replica=self.replica) from None

    def extend(self, seconds: float) -> None:
        """Let the whole call take longer: its reader was slow meanwhile."""
        self._until_seconds += seconds

    @property
    def until_seconds(self) -> float:
        """When the whole answer has to be there."""
        return self._until_seconds

    def _began(self, replica: Replica) -> None:
        """Record that a part of the answer was decoded: the replica works."""
        self._has_begun = True
        self._replicas.record_success(replica, self._model)
        self._metrics.answer_began(self._loop.time() - self._began_at_seconds)

    def completed(self) -> None:
        """Record that the answer is complete."""
        self._outcome = ANSWERED

    def failed(self, failure: E) -> E:
        """Record a failure of an answer that has begun, and return it, to be raised."""
        self._outcome = failure.outcome
        if self._has_begun and self._acquired is not None and failure.blames_replica:
            self._replicas.record_failure(self._acquired, self._model, failure)
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
        self._end_attempt()
        self._metrics.call_ended(self._outcome)

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
