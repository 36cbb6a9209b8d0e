"""The HTTP server of workers and probes: uvicorn with bounds and without signal handlers."""

import asyncio
import contextlib
import errno
import math
import os
import socket
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from functools import partial
from typing import Any, Final, Literal, cast

import uvicorn

from tollhouse.base.clock import SystemClock
from tollhouse.base.errors import DeploymentError
from tollhouse.serving.acceptor import Acceptor
from tollhouse.serving.connections import ClientConnections, ConnectionBounds
from tollhouse.serving.load_shedder import LoadShedder
from tollhouse.serving.protocol import BoundedHttpProtocol
from tollhouse.serving.refusals import OverloadRefusals
from tollhouse.settings import ServerSettings

BACKLOG_MAX: Final = 2048
ENDING_SECONDS_MAX: Final = 3.0
"""How long streams may take to end with an event after the drain, before peers are cut off."""
DISCONNECT_SECONDS_MAX: Final = 5.0
"""How long an application may take to end a request after its peer was cut off."""

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]


class HttpServer(uvicorn.Server):
    """A server that installs no signal handlers. `accepting` is set when it accepts connections."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        connections: ClientConnections,
        shedder: LoadShedder,
        drain_seconds: float,
        at_deadline: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._acceptors: list[Acceptor] = []
        self._connections = connections
        self._shedder = shedder
        self.accepting = asyncio.Event()
        self._drain_seconds = drain_seconds
        self._at_deadline = at_deadline

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept from `sockets`, one connection at a time."""
        self._acceptors = [
            Acceptor(listener, self._new_connection, self._connections, self._shedder)
            for listener in sockets or []
        ]
        self.servers = cast("list[asyncio.Server]", self._acceptors)
        self.started = True
        self.accepting.set()

    @property
    def is_accepting(self) -> bool:
        """Whether new connections are accepted: no bound is reached, and descriptors are left."""
        return all(acceptor.is_accepting for acceptor in self._acceptors)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain. At the deadline call `at_deadline`, and cut off the peers that are left later.

        Applications see that as a disconnect.
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
        """Install no handlers: the process that runs the server does."""
        yield

    def stop(self) -> None:
        """Stop accepting. `serve` returns when all requests have ended, or at the deadline."""
        self.should_exit = True
        for acceptor in self._acceptors:
            acceptor.close()


def http_server(
    application: AsgiApplication,
    settings: ServerSettings,
    *,
    at_deadline: Callable[[], None] = lambda: None,
    documentation_url: str | None = None,
) -> HttpServer:
    """Return a server for `application` with the bounds of `settings`.

    It calls `at_deadline` when it has drained for `drain_seconds`. Messages of refused requests
    link to pages below `documentation_url`.
    """
    bounds = ConnectionBounds(
        header_bytes_max=settings.header_bytes_max,
        header_seconds=settings.header_seconds,
        write_seconds=settings.write_seconds,
    )
    clock = SystemClock()
    connections = ClientConnections(connections_max=settings.connections_max, clock=clock)
    shedder = LoadShedder(clock, OverloadRefusals(documentation_url=documentation_url))
    protocol = partial(
        BoundedHttpProtocol,
        bounds=bounds,
        open_connections=connections,
        shedder=shedder,
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
        shedder=shedder,
        drain_seconds=settings.drain_seconds,
        at_deadline=at_deadline,
    )


class CannotListen(DeploymentError):
    """The gateway cannot listen on an address of the configuration."""

    code = "cannot_listen"

    def __init__(self, host: str, port: int, setting: str, error: OSError) -> None:
        remedy = f"Change server.{setting}host or server.{setting}port."
        if error.errno == errno.EADDRINUSE:
            remedy = f"Stop the program that uses the port, or change server.{setting}port."
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        super().__init__(f"Cannot listen on {host}, port {port}: {reason}. {remedy}")


def listen(host: str, port: int, *, setting: Literal["", "probe_"] = "") -> socket.socket:
    """Return the listening socket that all workers accept from, also after they are replaced.

    Raises `CannotListen`, which names the settings that begin with `setting`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG_MAX)
    except OSError as error:
        raise CannotListen(host, port, setting, error) from error
    # Connections inherit the option. An answer is written as head and body: without the option,
    # the body would wait for the peer's delayed acknowledgement of the head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
