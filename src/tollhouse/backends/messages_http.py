"""A backend that speaks Anthropic's Messages API over HTTP."""

from collections.abc import Coroutine
from typing import Any, Final

from tollhouse.backends.call import UpstreamCall
from tollhouse.backends.errors import (
    BackendBroke,
    BackendBusy,
    BackendError,
    BackendMalformed,
    BackendUnauthorized,
)
from tollhouse.backends.http1 import Headers
from tollhouse.backends.message_events import ErrorEvent, MessageStreamDecoder, decode_message
from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.backends.openai_json import Undecodable
from tollhouse.backends.sse import RecordTooLong
from tollhouse.backends.streaming import OpenAiStream
from tollhouse.backends.types import (
    BackendConfig,
    UpstreamChunk,
    UpstreamCompletion,
    UpstreamRequest,
)

_BUSY: Final = ("overloaded_error", "rate_limit_error")
_DENIED: Final = ("authentication_error", "permission_error", "billing_error", "not_found_error")


class MessagesBackend(OpenAiBackend):
    """All replicas of one backend, called as `OpenAiBackend` calls them. Only answers differ."""

    def complete(
        self, request: UpstreamRequest
    ) -> Coroutine[Any, Any, tuple[UpstreamCompletion, str]]:
        """Return the whole answer and the name of the replica that gave it."""
        return self._answer(request, decode_message)

    def stream(self, request: UpstreamRequest) -> "MessagesStream":
        """Return a stream. Entering it sends the request and waits for the first event."""
        call = UpstreamCall(self._config, self._transport, self.replicas, self._metrics)
        return MessagesStream(self._config, call, request, self._event_headers)


class MessagesStream(OpenAiStream):
    """Chunks as they arrive. Chunks that precede a failure are returned before it is raised."""

    __slots__ = ("_decoder", "_has_event")

    def __init__(
        self,
        config: BackendConfig,
        call: UpstreamCall,
        request: UpstreamRequest,
        headers: Headers,
    ) -> None:
        super().__init__(config, call, request, headers)
        self._has_event = False

    def _restart(self) -> None:
        super()._restart()
        self._decoder = MessageStreamDecoder()

    def _extended(self, until_seconds: float) -> float:
        """Let every event count, also a ping: hidden thinking has no chunks, and takes long."""
        if not (self._has_event and self._has_begun):
            return until_seconds
        return min(self._loop.time() + self._config.idle_seconds, self._call.until_seconds)

    def _read(self, data: bytes) -> list[UpstreamChunk]:
        chunks: list[UpstreamChunk] = []
        self._has_event = False
        try:
            for payload in self._events.feed(data):
                if payload:
                    chunks += self._decoded(payload)
                if self._decoder.has_stopped:
                    self._end(is_whole=self._has_begun)
                    break
        except Undecodable:
            self._failure = BackendMalformed(replica=self.replica)
        except ErrorEvent as error:
            self._failure = self._reported(error.kind)
        except RecordTooLong:
            self._failure = BackendBroke(replica=self.replica)
        return chunks

    def _decoded(self, payload: bytes) -> list[UpstreamChunk]:
        chunks = self._decoder.decode(payload)
        self._has_event = True
        self._has_begun = self._has_begun or bool(chunks)
        return chunks

    def _reported(self, kind: str) -> BackendError:
        """Return the failure that an error event means. One in mid-stream may have been billed."""
        if self._has_begun:
            return BackendBroke(replica=self.replica)
        if kind in _BUSY:
            return BackendBusy(replica=self.replica)
        # The status was 200, so that it may be billed.
        failure = BackendUnauthorized if kind in _DENIED else BackendMalformed
        return failure(replica=self.replica)

    def _read_end(self) -> list[UpstreamChunk]:
        """End a stream without its last event: it is complete if the message has its end."""
        self._end(is_whole=self._decoder.has_ended)
        return []
