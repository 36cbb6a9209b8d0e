"""The HTTP server of a worker and of the probes: uvicorn without its manners of its own."""

import asyncio
import contextlib
import math
import socket
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from functools import partial
from typing import Any, Final, cast

import uvicorn

from tollhouse.base.clock import SystemClock
from tollhouse.serving.acceptor import Acceptor
from tollhouse.serving.connections import Connections
from tollhouse.serving.protocol import BoundedHttpProtocol, Bounds
from tollhouse.settings import ServerSettings

BACKLOG_MAX: Final = 2048
ENDING_SECONDS_MAX: Final = 3.0
"""What streams get at the deadline to end by an event, before their peers are cut off."""
DISCONNECT_SECONDS_MAX: Final = 5.0
"""What an application gets to end a request whose peer was cut off, before it is cancelled."""

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]


class HttpServer(uvicorn.Server):
    """Leaves signals to the process that runs it, and says when it accepts connections."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        connections: Connections,
        drain_seconds: float,
        at_deadline: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._acceptors: list[Acceptor] = []
        self._connections = connections
        self.accepting = asyncio.Event()
        self._drain_seconds = drain_seconds
        self._at_deadline = at_deadline

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept from `sockets`, without taking more than one connection at a time."""
        self._acceptors = [
            Acceptor(listener, self._new_connection, self._connections)
            for listener in sockets or []
        ]
        self.servers = cast("list[asyncio.Server]", self._acceptors)
        self.started = True
        self.accepting.set()

    @property
    def is_accepting(self) -> bool:
        """Whether new connections are accepted: there is room, and the system has descriptors."""
        return all(acceptor.is_accepting for acceptor in self._acceptors)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """At the deadline the application ends what it can; then peers are cut off.

        Applications hear of a cut as of any disconnect.
        """
        loop = asyncio.get_running_loop()
        ending = loop.call_later(self._drain_seconds, self._at_deadline)
        cutting = loop.call_later(self._drain_seconds + ENDING_SECONDS_MAX, self._cut_off)
        await super().shutdown(sockets)
        ending.cancel()
        cutting.cancel()

    def _cut_off(self) -> None:
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()

    def _new_connection(self) -> asyncio.Protocol:
        build = cast("Callable[..., asyncio.Protocol]", self.config.http_protocol_class)
        return build(config=self.config, server_state=self.server_state, app_state={})

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield

    def stop(self) -> None:
        """Stop accepting; `serve` returns when what is under way has ended, or at its deadline."""
        self.should_exit = True


def http_server(
    application: AsgiApplication,
    settings: ServerSettings,
    *,
    at_deadline: Callable[[], None] = lambda: None,
    documentation_url: str | None = None,
) -> HttpServer:
    """A server for `application` with the bounds of `settings`; it listens once it is served.

    `at_deadline` is called when a stop has waited for `drain_seconds`. Below `documentation_url`
    the codes of refused requests have their pages.
    """
    bounds = Bounds(
        header_bytes_max=settings.header_bytes_max,
        header_seconds=settings.header_seconds,
        write_seconds=settings.write_seconds,
    )
    connections = Connections(connections_max=settings.connections_max, clock=SystemClock())
    protocol = partial(
        BoundedHttpProtocol,
        bounds=bounds,
        open_connections=connections,
        documentation_url=documentation_url,
    )
    config = uvicorn.Config(
        cast("Any", application),
        http=cast("type[asyncio.Protocol]", protocol),
        interface="asgi3",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=math.ceil(settings.keep_alive_seconds),
        timeout_graceful_shutdown=math.ceil(
            settings.drain_seconds + ENDING_SECONDS_MAX + DISCONNECT_SECONDS_MAX
        ),
    )
    return HttpServer(
        config,
        connections=connections,
        drain_seconds=settings.drain_seconds,
        at_deadline=at_deadline,
    )


def listen(host: str, port: int) -> socket.socket:
    """Bind the one socket that all workers accept from, now or when they are replaced."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=BACKLOG_MAX)
    # Connections inherit it. The head and the body of an answer are two writes, and the second
    # would wait for the peer's delayed acknowledgement of the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
