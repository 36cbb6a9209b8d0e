"""The main function of a worker process.

Its arguments are two descriptors: the listening socket, which all workers share, and one end of a
socket pair. The supervisor sends the settings over the pair as one line, and the worker sends
status lines back. If the supervisor dies, the pair closes, and the worker ends as on SIGTERM.
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
from tollhouse.observability import buffered_metrics, log, metrics
from tollhouse.serving.server import AsgiApplication, HttpServer, http_server
from tollhouse.settings import Settings

DEFAULT_APPLICATION: Final = "tollhouse.app:Application"
LOG_LEVEL: Final = "INFO"
STATUS_SECONDS: Final = 1.0
STALL_TICK_SECONDS: Final = 0.05
METRICS_SECONDS: Final = 0.25
"""How often counts are written, so that the supervisor can show them."""
GARBAGE_SECONDS: Final = 300.0
"""How often all garbage is collected. An old connection that has ended is a cycle, and would stay
in memory until 100 million objects more are made than freed, by the thresholds below. A collection
beside 100,000 cached verdicts took 40 ms."""
SETTINGS_BYTES_MAX: Final = 16 * 1024 * 1024


class ServedApplication(Protocol):
    """The application that a worker serves."""

    @property
    def is_ready(self) -> bool:
        """Whether new requests can be answered now."""
        ...

    async def startup(self) -> AsgiApplication:
        """Prepare, and return the application that answers requests. Raising ends the worker."""
        ...

    def end_streams(self) -> None:
        """End running streams with an event, because the drain has reached its deadline."""
        ...

    async def shutdown(self) -> None:
        """Close everything, after the last request has ended."""
        ...


class WorkerStatus(Struct, frozen=True, kw_only=True):
    """A status line from a worker to its supervisor."""

    ready: bool


def main() -> None:
    """Run one worker until a signal or the death of its supervisor ends it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--listener", type=int, required=True)
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--application", default=DEFAULT_APPLICATION)
    arguments = parser.parse_args()
    log.configure(LOG_LEVEL)
    _reduce_stalls()
    try:
        uvloop.run(
            _run(
                listener=socket.socket(fileno=arguments.listener),
                control=socket.socket(fileno=arguments.control),
                application_name=arguments.application,
            )
        )
    finally:
        buffered_metrics.write_all()


async def _run(*, listener: socket.socket, control: socket.socket, application_name: str) -> None:
    tasks = Tasks()
    reader, writer = await asyncio.open_connection(sock=control, limit=SETTINGS_BYTES_MAX)
    settings = msgspec.json.decode(await reader.readline(), type=Settings)
    tasks.start("supervisor_watch", _end_with_supervisor(reader))
    application = _factory(application_name)(settings)
    gc.collect()
    gc.freeze()
    server = http_server(
        await application.startup(),
        settings.server,
        at_deadline=application.end_streams,
        documentation_url=settings.documentation_url,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, server.stop)
    tasks.start("status", _report(application, server, writer))
    tasks.start("stalls", _measure_stalls(SystemClock()))
    tasks.repeat("metrics", _write_metrics, METRICS_SECONDS)
    tasks.repeat("garbage", _collect_garbage, GARBAGE_SECONDS)
    await server.serve(sockets=[listener])
    await application.shutdown()
    await tasks.drain(deadline_seconds=0)
    writer.close()


def _reduce_stalls() -> None:
    """Switch between threads more often and collect garbage less often.

    Large bodies are parsed in a thread. With bodies of 30 MB this cut the longest stall of the
    event loop by more than half.
    """
    sys.setswitchinterval(0.0005)
    gc.set_threshold(50_000, 20, 100)


def _factory(name: str) -> Callable[[Settings], ServedApplication]:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


async def _end_with_supervisor(reader: asyncio.StreamReader) -> None:
    """Raise SIGTERM when the supervisor dies: it drains a server, and kills before there is one.

    The connection is reset if the supervisor was killed before it read the last status line.
    """
    with contextlib.suppress(ConnectionError):
        await reader.read()
    signal.raise_signal(signal.SIGTERM)


async def _report(
    application: ServedApplication, server: HttpServer, writer: asyncio.StreamWriter
) -> None:
    await server.accepting.wait()
    while not writer.is_closing():
        can_serve = server.is_accepting and not server.should_exit
        status = WorkerStatus(ready=application.is_ready and can_serve)
        writer.write(msgspec.json.encode(status) + b"\n")
        await asyncio.sleep(STATUS_SECONDS)


async def _measure_stalls(clock: Clock) -> None:
    """Record the longest stall of the event loop, measured by how late a timer fires."""
    longest_seconds = 0.0
    while True:
        before_seconds = clock.monotonic_seconds()
        await asyncio.sleep(STALL_TICK_SECONDS)
        late_seconds = clock.monotonic_seconds() - before_seconds - STALL_TICK_SECONDS
        if late_seconds > longest_seconds:
            longest_seconds = late_seconds
            metrics.longest_stall(longest_seconds)


async def _collect_garbage() -> None:
    gc.collect()


async def _write_metrics() -> None:
    buffered_metrics.write_all()


if __name__ == "__main__":
    main()
