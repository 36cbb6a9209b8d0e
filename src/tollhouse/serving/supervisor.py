"""The supervisor: starts workers, replaces dead ones, and drains all of them at the end.

SIGTERM and SIGINT drain; a second one kills. SIGHUP reads the settings again and replaces the
workers one after the other; invalid settings change nothing.
"""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import structs

from tollhouse.base.clock import SystemClock
from tollhouse.base.tasks import Tasks
from tollhouse.catalog import rules as catalog
from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.observability import log, registry
from tollhouse.serving import descriptors
from tollhouse.serving.probes import Probes
from tollhouse.serving.process import WorkerProcess, start_worker
from tollhouse.serving.server import http_server, listen
from tollhouse.serving.silence import kill_silent_workers
from tollhouse.serving.worker import DEFAULT_APPLICATION, LOG_LEVEL
from tollhouse.settings import InvalidSettings, Settings, load

EARLY_DEATH_SECONDS: Final = 5.0
RESTART_DELAY_SECONDS_MIN: Final = 0.1
RESTART_DELAY_SECONDS_MAX: Final = 10.0
READY_SECONDS_MAX: Final = 60.0
"""How long a new worker may take to become ready before a reload is aborted."""
PROBE_CONNECTIONS_MAX: Final = 256

logger = logging.getLogger("tollhouse.supervisor")


def run(
    settings_path: Path | None,
    *,
    check: Callable[[], Awaitable[None]] | None = None,
    application: str = DEFAULT_APPLICATION,
) -> int:
    """Serve until a signal. Returns the exit code, which is 0 if every request was finished.

    `check` precedes the first worker, and its failure ends the process. Probes answer meanwhile.
    """
    settings = _valid_settings(settings_path)
    server = settings.server
    log.configure(LOG_LEVEL)
    logger.info("descriptor_limit", extra={"count": descriptors.raise_limit()})
    with (
        TemporaryDirectory(prefix="tollhouse-") as directory,
        listen(server.host, server.port) as listener,
        listen(server.probe_host, server.probe_port, setting="probe_") as probe_listener,
    ):
        supervisor = Supervisor(
            settings,
            settings_path=settings_path,
            application=application,
            listener=listener,
            metrics_directory=Path(directory),
        )
        return asyncio.run(supervisor.run(probe_listener, check))


def restart_delay_seconds(early_deaths: int) -> float:
    """Return the delay before a worker is restarted: it doubles with each early death in a row."""
    if early_deaths == 0:
        return 0.0
    # The exponent is bounded because a float overflows after a thousand deaths.
    doubled = RESTART_DELAY_SECONDS_MIN * 2.0 ** min(early_deaths - 1, 16)
    return min(doubled, RESTART_DELAY_SECONDS_MAX)


class Supervisor:
    """Owns the listening socket and the workers that accept from it."""

    def __init__(
        self,
        settings: Settings,
        *,
        settings_path: Path | None,
        application: str,
        listener: socket.socket,
        metrics_directory: Path,
    ) -> None:
        self._settings = settings
        self._settings_path = settings_path
        self._application = application
        self._listener = listener
        self._metrics_directory = metrics_directory
        self._clock = SystemClock()
        self._tasks = Tasks()
        self._workers: set[WorkerProcess] = set()
        self._filling = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._reload_wanted = asyncio.Event()
        self._first_ready = asyncio.Event()

    async def run(
        self, probe_listener: socket.socket, check: Callable[[], Awaitable[None]] | None
    ) -> int:
        """Run the workers until a signal. Returns the exit code of the process."""
        probes = http_server(
            Probes(is_ready=self.is_ready, metrics_directory=self._metrics_directory),
            structs.replace(self._settings.server, connections_max=PROBE_CONNECTIONS_MAX),
        )
        probing = self._tasks.start("probes", probes.serve(sockets=[probe_listener]))
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._reload_wanted.set)
        if check is not None and not await self._has_passed(check):
            return 0
        loop.add_signal_handler(signal.SIGTERM, self._stop)
        loop.add_signal_handler(signal.SIGINT, self._stop)
        announcing = self._tasks.start("announce", self._announce(probe_listener))
        reloading = self._tasks.start("reload", self._reload_when_asked())
        self._tasks.start("silence", kill_silent_workers(self._workers, self._clock))
        await self._fill()
        await self._stopping.wait()
        announcing.cancel()
        reloading.cancel()
        await asyncio.wait({announcing, reloading})
        is_clean = await self._drain()
        probes.stop()
        await probing
        await self._tasks.drain(deadline_seconds=0)
        return 0 if is_clean else 1

    async def _has_passed(self, check: Callable[[], Awaitable[None]]) -> bool:
        """Wait for the check, and return False if a signal ends it. Raises what it raises."""
        loop, waiting = asyncio.get_running_loop(), asyncio.current_task()
        assert waiting is not None, "a coroutine runs in a task"
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, waiting.cancel)
        try:
            await check()
        except asyncio.CancelledError:
            return False
        return True

    def is_ready(self) -> bool:
        """Return whether any worker is ready and no stop was requested."""
        return not self._stopping.is_set() and any(worker.is_ready for worker in self._workers)

    def _stop(self) -> None:
        if self._stopping.is_set():
            for worker in self._workers:
                worker.kill()
        self._stopping.set()

    async def _drain(self) -> bool:
        async with self._filling:
            # New connections are now refused at once instead of waiting in the queue.
            self._listener.close()
            logger.info("draining", extra={"workers": len(self._workers)})
            outcomes = await asyncio.gather(*(worker.retire() for worker in self._workers))
        return all(outcomes)

    async def _announce(self, probe_listener: socket.socket) -> None:
        await self._first_ready.wait()
        addresses = _url(self._listener), _url(probe_listener)
        sys.stdout.write("tollhouse is ready on {}, probes on {}\n".format(*addresses))
        sys.stdout.flush()

    # Starting and restarting workers

    async def _fill(self, *, early_deaths: int = 0) -> None:
        async with self._filling:
            while not self._stopping.is_set() and self._is_short_of_workers():
                await self._start(self._settings, early_deaths=early_deaths)

    def _is_short_of_workers(self) -> bool:
        return len(self._active()) < self._settings.server.workers

    def _active(self) -> list[WorkerProcess]:
        return [worker for worker in self._workers if not worker.is_retired]

    async def _start(self, settings: Settings, *, early_deaths: int = 0) -> WorkerProcess:
        worker = await start_worker(
            settings,
            application=self._application,
            listener=self._listener,
            metrics_directory=self._metrics_directory,
            clock=self._clock,
            tasks=self._tasks,
            early_deaths=early_deaths,
            on_ready=self._first_ready.set,
        )
        self._workers.add(worker)
        self._tasks.start("worker_watch", self._watch(worker))
        logger.info("worker_started", extra={"worker": worker.process_id})
        return worker

    async def _watch(self, worker: WorkerProcess) -> None:
        exit_code = await worker.exited()
        self._workers.discard(worker)
        registry.fold_dead_worker(self._metrics_directory, worker.process_id)
        facts = {"worker": worker.process_id, "exit_code": exit_code}
        if worker.is_retired:
            logger.info("worker_retired", extra=facts)
            return
        early_deaths = worker.early_deaths + 1 if worker.age_seconds < EARLY_DEATH_SECONDS else 0
        delay_seconds = restart_delay_seconds(early_deaths)
        logger.error("worker_died", extra={**facts, "delay_seconds": delay_seconds})
        await asyncio.sleep(delay_seconds)
        await self._fill(early_deaths=early_deaths)

    # Reloading

    async def _reload_when_asked(self) -> None:
        while await self._reload_wanted.wait():
            self._reload_wanted.clear()
            try:
                settings = _valid_settings(self._settings_path)
            except (InvalidSettings, InvalidCatalog) as error:
                logger.error("reload_refused", extra={"reason": str(error)})  # noqa: TRY400 - the traceback adds nothing
                continue
            if _addresses(settings) != _addresses(self._settings):
                logger.warning("listeners_kept", extra={"reason": "addresses need a restart"})
            await self._replace_workers(settings)

    async def _replace_workers(self, settings: Settings) -> None:
        """Replace workers one at a time, so that at most one more than configured runs."""
        old = self._active()
        for _ in range(settings.server.workers):
            fresh = await self._start(settings)
            if not await fresh.wait_until_ready(
                timeout_seconds=READY_SECONDS_MAX, tasks=self._tasks
            ):
                logger.error("reload_aborted", extra={"worker": fresh.process_id})
                await fresh.retire()
                await self._fill()
                return
            if old:
                await old.pop().retire()
        self._settings = settings
        for worker in old:
            await worker.retire()
        await self._fill()
        logger.info("reloaded", extra={"workers": len(self._workers)})


def _valid_settings(path: Path | None) -> Settings:
    """Return the settings. Raises if they or their catalog are invalid: workers would not start."""
    settings = load(path)
    catalog.parse(settings.backends, settings.models, settings.judge)
    return settings


def _addresses(settings: Settings) -> tuple[str, int, str, int]:
    server = settings.server
    return server.host, server.port, server.probe_host, server.probe_port


def _url(listener: socket.socket) -> str:
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
