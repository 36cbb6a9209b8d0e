"""One worker process. Its supervisor starts it, hands it the settings, and may vanish at any time.

Arguments are descriptors: the listening socket, which all workers share, and one end of a pair of
sockets. Over the pair come the settings, as the first line; back go status lines. When the other
end closes, the supervisor is dead, and the worker ends as it would on SIGTERM.
"""

import argparse
import asyncio
import contextlib
import gc
import importlib
import signal
import socket
import sys
from collections.abc import Callable
from typing import Final, Protocol

import msgspec
import uvloop
from msgspec import Struct

from tollhouse.base.clock import Clock, SystemClock
from tollhouse.base.tasks import Tasks
from tollhouse.observability import log, metrics
from tollhouse.serving.server import HttpServer, Receive, Scope, Send, http_server
from tollhouse.settings import Settings

DEFAULT_APPLICATION: Final = "tollhouse.app:Application"
LOG_LEVEL: Final = "INFO"
STATUS_SECONDS: Final = 1.0
STALL_TICK_SECONDS: Final = 0.05
SETTINGS_BYTES_MAX: Final = 16 * 1024 * 1024


class Application(Protocol):
    """What a worker serves."""

    @property
    def is_ready(self) -> bool:
        """Whether new requests can be answered now."""
        ...

    async def startup(self) -> None:
        """Runs before the first connection is accepted; raising ends the worker."""
        ...

    def end_streams(self) -> None:
        """A stop has waited long enough: end by an event what is still being streamed."""
        ...

    async def shutdown(self) -> None:
        """Runs after the last request has ended."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        ...


class Status(Struct, frozen=True, kw_only=True):
    """A line from the worker to its supervisor."""

    ready: bool


def main() -> None:
    """Run one worker until it is told to drain or its supervisor dies."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--listener", type=int, required=True)
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--application", default=DEFAULT_APPLICATION)
    arguments = parser.parse_args()
    log.configure(LOG_LEVEL)
    _favour_the_loop()
    uvloop.run(
        _run(
            listener=socket.socket(fileno=arguments.listener),
            control=socket.socket(fileno=arguments.control),
            application_name=arguments.application,
        )
    )


async def _run(*, listener: socket.socket, control: socket.socket, application_name: str) -> None:
    tasks = Tasks()
    reader, writer = await asyncio.open_connection(sock=control, limit=SETTINGS_BYTES_MAX)
    settings = msgspec.json.decode(await reader.readline(), type=Settings)
    tasks.start("supervisor_watch", _end_with_supervisor(reader))
    application = _factory(application_name)(settings)
    await application.startup()
    server = http_server(
        application,
        settings.server,
        at_deadline=application.end_streams,
        documentation_url=settings.documentation_url,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, server.stop)
    tasks.start("status", _report(application, server, writer))
    tasks.start("stalls", _measure_stalls(SystemClock()))
    await server.serve(sockets=[listener])
    await application.shutdown()
    await tasks.drain(deadline_seconds=0)
    writer.close()


def _favour_the_loop() -> None:
    """Large bodies are parsed in a thread; the loop should get its turn soon, and garbage wait.

    Measured with bodies of 30 MB: the longest stall of the loop fell by half and more.
    """
    sys.setswitchinterval(0.0005)
    gc.set_threshold(50_000, 20, 100)
    gc.freeze()


def _factory(name: str) -> Callable[[Settings], Application]:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


async def _end_with_supervisor(reader: asyncio.StreamReader) -> None:
    """Before the server runs the signal kills, afterwards it drains: both are right.

    A supervisor that was killed before it read our last line resets the connection.
    """
    with contextlib.suppress(ConnectionError):
        await reader.read()
    signal.raise_signal(signal.SIGTERM)


async def _report(
    application: Application, server: HttpServer, writer: asyncio.StreamWriter
) -> None:
    await server.accepting.wait()
    while not writer.is_closing():
        can_serve = server.is_accepting and not server.should_exit
        status = Status(ready=application.is_ready and can_serve)
        writer.write(msgspec.json.encode(status) + b"\n")
        await asyncio.sleep(STATUS_SECONDS)


async def _measure_stalls(clock: Clock) -> None:
    """Late ticks show how long something kept the loop from running what was due."""
    longest_seconds = 0.0
    while True:
        before_seconds = clock.monotonic_seconds()
        await asyncio.sleep(STALL_TICK_SECONDS)
        late_seconds = clock.monotonic_seconds() - before_seconds - STALL_TICK_SECONDS
        if late_seconds > longest_seconds:
            longest_seconds = late_seconds
            metrics.longest_stall(longest_seconds)


if __name__ == "__main__":
    main()
