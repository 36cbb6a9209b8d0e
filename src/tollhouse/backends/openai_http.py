"""Any server that speaks OpenAI's dialect over HTTP, as a backend."""

from collections.abc import Callable
from typing import Final, TypeVar

from tollhouse.backends.calling import Caller
from tollhouse.backends.decoding import Undecodable, decode_completion, decode_to
from tollhouse.backends.errors import BackendNonsense
from tollhouse.backends.exchange import Exchange
from tollhouse.backends.routing import Replicas
from tollhouse.backends.streaming import EVENTS, OpenAiStream
from tollhouse.backends.transport import Transport
from tollhouse.backends.types import Ask, BackendConfig, UpstreamCompletion
from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks
from tollhouse.observability.metrics import BackendMetrics

T = TypeVar("T")

ANSWER_BYTES_MAX = 64 * 1024 * 1024
_JSON: Final = "application/json"


class OpenAiBackend:
    """All replicas of one backend, as one worker sees them. Nothing of a caller is in a header."""

    def __init__(self, config: BackendConfig, transport: Transport, clock: Clock) -> None:
        self._config = config
        self._metrics = BackendMetrics(config.name)
        self._replicas = Replicas(config, transport, clock, self._metrics)
        self._caller = Caller(config, transport, self._replicas, self._metrics)
        self._json_headers = _headers(config.api_key, accept=_JSON)
        self._event_headers = _headers(config.api_key, accept=EVENTS)

    def start(self, tasks: Tasks) -> None:
        """Begin to watch the replicas' health."""
        self._replicas.start(tasks)

    async def stop(self) -> None:
        """Watch no more; calls under way go on."""
        await self._replicas.stop()

    @property
    def is_ready(self) -> bool:
        """Whether any replica is believed to answer."""
        return self._replicas.is_ready

    async def complete(self, ask: Ask) -> tuple[UpstreamCompletion, str]:
        """The whole answer and the replica that gave it."""
        return await self._whole(ask, decode_completion)

    async def fetch(self, ask: Ask, kind: type[T]) -> tuple[T, str]:
        """Ask something that is no completion, such as a count of tokens."""
        return await self._whole(ask, lambda body: decode_to(kind, body))

    async def _whole(self, ask: Ask, decode: Callable[[bytes], T]) -> tuple[T, str]:
        exchange = Exchange(self._caller, self._metrics)
        seconds = self._config.total_seconds
        try:
            await exchange.open(ask, self._json_headers, media_type=_JSON, seconds=seconds)
            body = await exchange.read(bytes_max=ANSWER_BYTES_MAX, seconds=seconds)
            try:
                answer = decode(body)
            except Undecodable:
                raise exchange.failed(BackendNonsense(replica=exchange.replica)) from None
            exchange.began()
            exchange.completed()
            return answer, exchange.replica
        finally:
            exchange.close()

    def stream(self, ask: Ask) -> OpenAiStream:
        """Open a stream; entering waits for the answer's head."""
        exchange = Exchange(self._caller, self._metrics)
        return OpenAiStream(self._config, exchange, ask, self._event_headers)


def _headers(api_key: str | None, *, accept: str) -> dict[str, str]:
    headers = {
        "accept": accept,
        "accept-encoding": "identity",
        "content-type": _JSON,
        "user-agent": "tollhouse",
    }
    if api_key is not None:
        headers["authorization"] = f"Bearer {api_key}"
    return headers
