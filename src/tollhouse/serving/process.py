"""A worker as its supervisor sees it: a process, its last word, and the ways to end it."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks
from tollhouse.serving.worker import STATUS_SECONDS, Status
from tollhouse.settings import Settings

STATUS_SECONDS_MAX: Final = 5 * STATUS_SECONDS
"""A worker that was silent for so long is not ready, whatever it said last."""

STARTUP_SECONDS_MAX: Final = 120.0
"""What a worker gets until its first status line, to read settings and start its application."""

EXIT_MARGIN_SECONDS: Final = 15.0
"""What a worker gets beyond its drain to close its application, before it is killed."""

LARGE_ALLOCATION_BYTES: Final = 1_048_576
"""A worker's allocator gives larger blocks back to the system as soon as they are free. Left alone,
it raises this bound to 32 MB and keeps the memory of large bodies: 65 MB for each worker, measured.
An operator's own value in the environment wins."""

ENDED_WELL: Final = (0, -signal.SIGTERM)
"""The signal ends a worker that has not begun to serve; one that serves catches it and drains."""


class WorkerProcess:
    """One started worker. `early_deaths` counts those before it that did not live long."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        *,
        settings: Settings,
        clock: Clock,
        early_deaths: int,
        on_ready: Callable[[], None],
    ) -> None:
        self.settings = settings
        self.early_deaths = early_deaths
        self.is_retired = False
        self._became_ready = asyncio.Event()
        self._process = process
        self._clock = clock
        self._on_ready = on_ready
        self._started_seconds = clock.monotonic_seconds()
        self._has_reported = False
        self._reported_ready = False
        self._silent_seconds = 0.0

    @property
    def process_id(self) -> int:
        """The operating system's number."""
        return self._process.pid

    @property
    def is_ready(self) -> bool:
        """Whether its last status line says that it is ready, and came lately."""
        is_heard = self._silent_seconds < STATUS_SECONDS_MAX
        return self._reported_ready and is_heard and not self.is_retired

    @property
    def is_stuck(self) -> bool:
        """Whether it was silent for so long that it must be replaced."""
        if not self._has_reported:
            return self._silent_seconds > STARTUP_SECONDS_MAX
        return self._silent_seconds > self.settings.server.worker_silence_seconds

    @property
    def silent_seconds(self) -> float:
        """How long the supervisor has listened since its last status line."""
        return self._silent_seconds

    @property
    def age_seconds(self) -> float:
        """How long ago it was started."""
        return self._clock.monotonic_seconds() - self._started_seconds

    async def follow(self, reader: asyncio.StreamReader) -> None:
        """Listen to its status lines until it ends."""
        while line := await reader.readline():
            self._has_reported = True
            self._silent_seconds = 0.0
            self._reported_ready = msgspec.json.decode(line, type=Status).ready
            if self._reported_ready:
                self._became_ready.set()
                self._on_ready()
        self._reported_ready = False

    def add_silence(self, seconds: float) -> None:
        """Count time in which the supervisor would have heard a status line."""
        self._silent_seconds += seconds

    async def wait_until_ready(self, *, timeout_seconds: float, tasks: Tasks) -> bool:
        """False when it ends or the time is over before it says that it is ready."""
        ready = tasks.start("worker_ready", self._became_ready.wait())
        ended = tasks.start("worker_ended", self._process.wait())
        await asyncio.wait(
            {ready, ended}, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        ready.cancel()
        ended.cancel()
        return self.is_ready

    async def exited(self) -> int:
        """Wait for its end; the exit code, or minus the number of the signal that killed it."""
        return await self._process.wait()

    async def retire(self) -> bool:
        """Let it finish what it has begun; False when it had to be killed or failed."""
        self.is_retired = True
        self._signal_terminate()
        allowed_seconds = self.settings.server.drain_seconds + EXIT_MARGIN_SECONDS
        try:
            exit_code = await asyncio.wait_for(self._process.wait(), allowed_seconds)
        except TimeoutError:
            self.kill()
            exit_code = await self._process.wait()
        return exit_code in ENDED_WELL

    def kill(self) -> None:
        """End it now, with everything that it has begun."""
        self.is_retired = True
        self.kill_to_replace()

    def kill_to_replace(self) -> None:
        """End it now, by the signal that also ends a stopped process; it gets a successor."""
        if self._process.returncode is None:
            self._process.kill()

    def _signal_terminate(self) -> None:
        if self._process.returncode is None:
            self._process.terminate()


async def start_worker(
    settings: Settings,
    *,
    application: str,
    listener: socket.socket,
    metrics_directory: Path,
    clock: Clock,
    tasks: Tasks,
    early_deaths: int,
    on_ready: Callable[[], None],
) -> WorkerProcess:
    """Start a worker with exactly these settings: it never reads the file, which may be broken."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "tollhouse.serving.worker"),
            *("--listener", str(listener.fileno())),
            *("--control", str(theirs.fileno())),
            *("--application", application),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            pass_fds=(listener.fileno(), theirs.fileno()),
            env={
                "MALLOC_MMAP_THRESHOLD_": str(LARGE_ALLOCATION_BYTES),
                **os.environ,  # noqa: TID251 - handed on, not read
                "PROMETHEUS_MULTIPROC_DIR": str(metrics_directory),
            },
            # Signals of the terminal are for the supervisor alone; it tells its workers.
            start_new_session=True,
        )
    reader, writer = await asyncio.open_connection(sock=ours)
    writer.write(msgspec.json.encode(settings) + b"\n")
    worker = WorkerProcess(
        process, settings=settings, clock=clock, early_deaths=early_deaths, on_ready=on_ready
    )
    tasks.start("worker_status", _follow(worker, reader, writer))
    return worker


async def _follow(
    worker: WorkerProcess, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Holds the writer as well: were it collected, the worker would believe us dead."""
    try:
        await worker.follow(reader)
    except ConnectionError:
        pass  # killed with our settings unread
    finally:
        writer.close()
