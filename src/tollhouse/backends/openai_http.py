"""A backend that speaks OpenAI's chat completions API over HTTP, also in Azure's flavour."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from tollhouse.backends.call import UpstreamCall
from tollhouse.backends.errors import BackendMalformed
from tollhouse.backends.health import HealthChecks, credential_headers
from tollhouse.backends.http1 import Headers
from tollhouse.backends.openai_json import Undecodable, decode_completion, decode_to
from tollhouse.backends.replicas import Replicas
from tollhouse.backends.streaming import EVENTS, OpenAiStream
from tollhouse.backends.transport import Transport
from tollhouse.backends.types import BackendConfig, UpstreamCompletion, UpstreamRequest
from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks
from tollhouse.observability.metrics import BackendMetrics

T = TypeVar("T")

ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
_JSON: Final = b"application/json"


class OpenAiBackend:
    """All replicas of one backend, for one worker. Headers contain nothing about the caller."""

    def __init__(self, config: BackendConfig, transport: Transport, clock: Clock) -> None:
        self._config = config
        self._transport = transport
        self._metrics = BackendMetrics(config.name)
        self.replicas = Replicas(config, clock, self._metrics)
        self._health = HealthChecks(config, transport, self.replicas)
        self._json_headers = _headers(config, accept=_JSON)
        self._event_headers = _headers(config, accept=EVENTS)

    def start(self, tasks: Tasks) -> None:
        """Start the health checks."""
        self._health.start(tasks)

    async def stop(self) -> None:
        """Stop the health checks. Running calls go on."""
        await self._health.stop()

    async def close(self) -> None:
        """Close all connections, also those of unfinished answers."""
        await self._transport.close()

    @property
    def is_healthy(self) -> bool:
        """Whether health checks let calls pass to any replica."""
        return self.replicas.is_healthy

    def is_ready(self, model: str) -> bool:
        """Return whether a call for a model would find a replica now that is not ejected."""
        return self.replicas.is_ready(model)

    def is_in_use(self, model: str) -> bool:
        """Return whether any replica receives more calls for a model than trials."""
        return self.replicas.is_in_use(model)

    def complete(
        self, request: UpstreamRequest
    ) -> Coroutine[Any, Any, tuple[UpstreamCompletion, str]]:
        """Return the whole answer and the name of the replica that gave it."""
        return self._answer(request, decode_completion)

    async def fetch(self, request: UpstreamRequest, kind: type[T]) -> tuple[T, str]:
        """Return an answer other than a completion, such as a token count, and its replica."""
        return await self._answer(request, lambda body: decode_to(kind, body))

    async def _answer(
        self, request: UpstreamRequest, decode: Callable[[bytes], T]
    ) -> tuple[T, str]:
        call = UpstreamCall(self._config, self._transport, self.replicas, self._metrics)

        async def read(until_seconds: float) -> T:
            body = await call.read(until_seconds, bytes_max=ANSWER_BYTES_MAX)
            try:
                return decode(body)
            except Undecodable:
                raise BackendMalformed(replica=call.replica) from None

        try:
            answer = await call.begin(
                request,
                self._json_headers,
                media_type=_JSON,
                seconds=request.answer_seconds,
                read=read,
            )
            call.completed()
            return answer, call.replica
        finally:
            call.close()

    def stream(self, request: UpstreamRequest) -> OpenAiStream:
        """Return a stream. Entering it sends the request and waits for the first event."""
        call = UpstreamCall(self._config, self._transport, self.replicas, self._metrics)
        return OpenAiStream(self._config, call, request, self._event_headers)


def _headers(config: BackendConfig, *, accept: bytes) -> Headers:
    return (
        ("accept", accept.decode()),
        ("accept-encoding", "identity"),
        ("content-type", _JSON.decode()),
        ("user-agent", "tollhouse"),
        *credential_headers(config.dialect, config.api_key),
    )
