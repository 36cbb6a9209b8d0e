"""A worker process in its supervisor: its start, its status lines and its end."""

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
from tollhouse.serving.worker import STATUS_SECONDS, WorkerStatus
from tollhouse.settings import Settings

STATUS_SECONDS_MAX: Final = 5 * STATUS_SECONDS
"""A worker that sent no status line for so long is not ready."""

STARTUP_SECONDS_MAX: Final = 120.0
"""How long a worker may take to start its application and send its first status line."""

EXIT_MARGIN_SECONDS: Final = 15.0
"""How long a worker may take to close its application after its drain, before it is killed."""

LARGE_ALLOCATION_BYTES: Final = 1_048_576
"""A worker's allocator returns blocks above this size to the system as soon as they are free. By
default it raises this bound up to 32 MB, which kept 65 MB for each worker in a measurement. A value
in the operator's environment takes precedence."""

ENDED_WELL: Final = (0, -signal.SIGTERM)
"""SIGTERM ends a worker that does not serve yet; one that serves catches it and drains."""


class WorkerProcess:
    """One started worker. `early_deaths` counts its predecessors in a row that died early."""

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
        self._stopped_accepting = asyncio.Event()
        self._process = process
        self._clock = clock
        self._on_ready = on_ready
        self._started_seconds = clock.monotonic_seconds()
        self._has_reported = False
        self._reported_ready = False
        self._silent_seconds = 0.0

    @property
    def process_id(self) -> int:
        """The process ID."""
        return self._process.pid

    @property
    def is_ready(self) -> bool:
        """Whether its last status line is recent and says that the worker is ready."""
        is_recent = self._silent_seconds < STATUS_SECONDS_MAX
        return self._reported_ready and is_recent and not self.is_retired

    @property
    def is_stuck(self) -> bool:
        """Whether it sent no status line for so long that it must be replaced."""
        if not self._has_reported:
            return self._silent_seconds > STARTUP_SECONDS_MAX
        return self._silent_seconds > self.settings.server.worker_silence_seconds

    @property
    def silent_seconds(self) -> float:
        """How long the supervisor has waited since the last status line."""
        return self._silent_seconds

    @property
    def age_seconds(self) -> float:
        """How long ago it was started."""
        return self._clock.monotonic_seconds() - self._started_seconds

    async def follow(self, reader: asyncio.StreamReader) -> None:
        """Read its status lines until it ends."""
        while line := await reader.readline():
            self._has_reported = True
            self._silent_seconds = 0.0
            self._reported_ready = msgspec.json.decode(line, type=WorkerStatus).ready
            if self._reported_ready:
                self._became_ready.set()
                self._on_ready()
            elif self.is_retired:
                self._stopped_accepting.set()
        self._reported_ready = False
        self._stopped_accepting.set()

    def add_silence(self, seconds: float) -> None:
        """Count time in which the supervisor would have received a status line."""
        self._silent_seconds += seconds

    async def wait_until_ready(self, *, timeout_seconds: float, tasks: Tasks) -> bool:
        """Wait until the worker reports that it is ready. Returns False if it ends or times out."""
        ready = tasks.start("worker_ready", self._became_ready.wait())
        ended = tasks.start("worker_ended", self._process.wait())
        await asyncio.wait(
            {ready, ended}, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        ready.cancel()
        ended.cancel()
        return self.is_ready

    async def stopped_accepting(self) -> None:
        """Wait until it accepts no connections any more, after it was retired."""
        await self._stopped_accepting.wait()

    async def exited(self) -> int:
        """Wait for its end and return the exit code: negative if a signal killed it."""
        return await self._process.wait()

    async def retire(self) -> bool:
        """Stop it after its running requests. Returns False if it failed or had to be killed."""
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
        """Kill it with its running requests; it gets no successor."""
        self.is_retired = True
        self.kill_to_replace()

    def kill_to_replace(self) -> None:
        """Kill it, even if it is stopped; it gets a successor."""
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
    """Start a worker with these settings. It does not read the settings file."""
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
                **os.environ,  # noqa: TID251 - passed on, not read
                "PROMETHEUS_MULTIPROC_DIR": str(metrics_directory),
            },
            # The terminal signals only the supervisor, which signals its workers.
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
    """Read status lines and keep the writer: if it were collected, the worker would end."""
    try:
        await worker.follow(reader)
    except ConnectionError:
        pass  # the worker was killed before it read its settings
    finally:
        writer.close()
