"""The test upstream: an HTTP server on loopback that answers by scripts.

Every word is a token, so that a test can compute the usage of a request.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

import msgspec

from tests.upstream.connection import Request, ScriptedConnection
from tests.upstream.exchanges import ExchangeOutcome, Journal, RecordedExchange, Seen
from tests.upstream.planning import plan
from tests.upstream.playing import JSON, Player
from tests.upstream.scripts import Queued, Scripts, UpstreamScript
from tollhouse.base.tasks import Tasks
from tollhouse.contract.bounds import FreeObject

HOST: Final = "127.0.0.1"
BACKLOG_MAX: Final = 2_048
TOKENS_DEFAULT: Final = 16


@dataclass(frozen=True, slots=True)
class _UnderWay:
    exchange: RecordedExchange
    task: asyncio.Task[None]


class ScriptedUpstream:
    """Answers with `tokens` words and `chunk_delay_ms` between records, unless a script differs."""

    def __init__(self, *, tokens: int = TOKENS_DEFAULT, chunk_delay_ms: int = 0) -> None:
        self.scripts = Scripts()
        self.seen = Journal()
        self.port = 0
        self._tokens = tokens
        self._chunk_delay_ms = chunk_delay_ms
        self._tasks = Tasks()
        self._open: dict[ScriptedConnection, _UnderWay | None] = {}
        self._server: asyncio.Server | None = None

    async def start(self, port: int = 0) -> None:
        """Listen, by default on a free port. May be called again after `stop`."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, HOST, port, backlog=BACKLOG_MAX)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Reset all connections and refuse new ones."""
        assert self._server is not None
        self._server.close()
        for connection in tuple(self._open):
            connection.reset()
        await self._server.wait_closed()
        await self._tasks.drain(deadline_seconds=0)

    @property
    def origin(self) -> str:
        """The URL of the host."""
        return f"http://{HOST}:{self.port}"

    @property
    def base_url(self) -> str:
        """The base URL, as a backend's list of replicas contains it."""
        return f"{self.origin}/v1"

    @property
    def connections_open(self) -> int:
        """The number of open connections, with idle ones."""
        return len(self._open)

    def queue(
        self,
        script: UpstreamScript,
        *,
        match: str = "",
        path: str | None = None,
        times: int | None = 1,
    ) -> None:
        """Use the script for later requests; for GET requests only if `path` is given."""
        self.scripts.add(Queued(script=script, match=match, path=path, times=times))

    def _accept(self) -> ScriptedConnection:
        connection = ScriptedConnection(self._serve, self._left)
        self._open[connection] = None
        return connection

    def _left(self, connection: ScriptedConnection) -> None:
        if (under_way := self._open.pop(connection)) is not None:
            under_way.exchange.finish(ExchangeOutcome.CALLER_LEFT)
            under_way.task.cancel()

    def _serve(self, request: Request, connection: ScriptedConnection) -> None:
        try:
            if request.path in ("/seen", "/script"):
                _respond(connection, 200, self._controlled(request))
            else:
                self._answer(request, connection)
        except msgspec.MsgspecError as error:
            _respond(connection, 400, {"error": {"message": str(error), "type": "BadRequest"}})

    def _answer(self, request: Request, connection: ScriptedConnection) -> None:
        exchange = self._exchange(request)
        queued = self.scripts.use(request.method, request.path, request.body)
        planned = plan(request, queued, tokens_default=self._tokens)
        player = Player(
            connection=connection,
            exchange=exchange,
            script=planned.script,
            pause_ms=self._chunk_delay_ms,
            names_events=planned.names_events,
        )
        match planned.content:
            case bytes(body) if planned.script.is_immediate:
                player.now(body)
                return
            case bytes(body):
                work = player.whole(body)
            case answer:
                work = player.stream(planned.records(answer))
        task = self._tasks.start("answer", work)
        self._open[connection] = _UnderWay(exchange, task)

    def _exchange(self, request: Request) -> RecordedExchange:
        """Record a request. Only POST requests are kept, which probes would displace."""
        open_exchange = self.seen.open if request.method == "POST" else RecordedExchange
        return open_exchange(
            method=request.method,
            path=request.path,
            headers=request.headers,
            body=request.body,
        )

    def _controlled(self, request: Request) -> FreeObject:
        match request.method, request.path:
            case "GET", "/seen":
                shown = [exchange.shown() for exchange in self.seen]
                return msgspec.to_builtins(
                    Seen(connections_open=self.connections_open, requests=shown)
                )
            case "POST", "/script":
                self.scripts.add(msgspec.json.decode(request.body, type=Queued))
            case "DELETE", "/script":
                self.scripts.clear()
            case _:
                message = f"{request.method} is not allowed here."
                raise msgspec.ValidationError(message)
        return {"queued": len(self.scripts)}


def _respond(connection: ScriptedConnection, status: int, tree: FreeObject) -> None:
    body = msgspec.json.encode(tree)
    connection.head(status, [("content-type", JSON)], len(body))
    connection.write(body)
    connection.finish()
