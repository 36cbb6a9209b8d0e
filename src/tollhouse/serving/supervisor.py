"""The supervisor: starts workers, replaces dead ones, and drains all of them at the end.

SIGTERM and SIGINT drain; a second one kills. SIGHUP reads the settings again and replaces the
workers side by side; settings that are invalid, or with which workers do not start, change nothing.
"""

import asyncio
import hashlib
import logging
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
from msgspec import structs

from tollhouse.base.clock import SystemClock
from tollhouse.base.tasks import Tasks
from tollhouse.catalog import rules
from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.catalog.types import Catalog
from tollhouse.observability import log, registry, supervisor_metrics
from tollhouse.observability.supervisor_metrics import ReloadOutcome
from tollhouse.serving import descriptors
from tollhouse.serving.probes import Probes
from tollhouse.serving.process import WorkerProcess, start_worker
from tollhouse.serving.server import http_server, listen
from tollhouse.serving.silence import kill_silent_workers
from tollhouse.serving.worker import DEFAULT_APPLICATION, LOG_LEVEL
from tollhouse.settings import InvalidSettings, ReportAbsent, Settings, load

EARLY_DEATH_SECONDS: Final = 5.0
RESTART_DELAY_SECONDS_MIN: Final = 0.1
RESTART_DELAY_SECONDS_MAX: Final = 10.0
READY_SECONDS_MAX: Final = 60.0
"""How long a new worker may take to become ready before a reload is aborted."""
STARTED_TOGETHER_MAX: Final = 4
"""How many workers a reload starts at a time: each takes a core for about a second."""
PROBE_CONNECTIONS_MAX: Final = 256
_MAY_DIFFER: Final = ("server", "database", "redis", "otel")
"""The sections in which the hosts of a deployment may differ."""

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
    settings, _ = load_configuration(settings_path)
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


def load_configuration(
    path: Path | None, *, report_absent: ReportAbsent | None = None
) -> tuple[Settings, Catalog]:
    """Return the settings and their catalog. Raises if workers would not start with them.

    With `report_absent`, a secret that this machine lacks is reported instead.
    """
    settings = load(path, report_absent=report_absent)
    return settings, rules.parse(settings.backends, settings.models, settings.judge)


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
        supervisor_metrics.configured(_digest(settings))
        supervisor_metrics.reload_ended(None)
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
        supervisor_metrics.worker_died()
        await asyncio.sleep(delay_seconds)
        await self._fill(early_deaths=early_deaths)

    # Reloading

    async def _reload_when_asked(self) -> None:
        while await self._reload_wanted.wait():
            # Else one reload after the other would pile up workers that drain.
            await asyncio.gather(*(each.exited() for each in self._workers if each.is_retired))
            self._reload_wanted.clear()
            supervisor_metrics.reload_ended(await self._reload())

    async def _reload(self) -> ReloadOutcome:
        try:
            settings, _ = load_configuration(self._settings_path)
        except (InvalidSettings, InvalidCatalog) as error:
            logger.error("reload_refused", extra={"reason": str(error)})  # noqa: TRY400 - the traceback adds nothing
            return ReloadOutcome.REFUSED
        if _addresses(settings) != _addresses(self._settings):
            logger.warning("listeners_kept", extra={"reason": "addresses need a restart"})
        began_seconds = self._clock.monotonic_seconds()
        old = self._active()
        if not await self._start_anew(settings):
            return ReloadOutcome.ABORTED
        self._settings = settings
        supervisor_metrics.configured(_digest(settings))
        self._retire(old)
        await asyncio.gather(*(each.stopped_accepting() for each in old))
        await self._fill()
        duration_ms = round(1_000 * (self._clock.monotonic_seconds() - began_seconds))
        logger.info("reloaded", extra={"workers": len(self._active()), "duration_ms": duration_ms})
        return ReloadOutcome.DONE

    async def _start_anew(self, settings: Settings) -> bool:
        """Start all workers anew, a few at a time. Returns False if one does not become ready."""
        fresh: list[WorkerProcess] = []
        while (missing := settings.server.workers - len(fresh)) > 0:
            together = [
                await self._start(settings) for _ in range(min(missing, STARTED_TOGETHER_MAX))
            ]
            fresh += together
            ready = await asyncio.gather(*(self._is_ready_in_time(each) for each in together))
            if not all(ready):
                failed = together[ready.index(False)]
                logger.error("reload_aborted", extra={"worker": failed.process_id})
                self._retire(fresh)
                await self._fill()
                return False
        return True

    async def _is_ready_in_time(self, worker: WorkerProcess) -> bool:
        return await worker.wait_until_ready(timeout_seconds=READY_SECONDS_MAX, tasks=self._tasks)

    def _retire(self, workers: Sequence[WorkerProcess]) -> None:
        """Stop workers after their running requests, without waiting for them."""
        for worker in workers:
            worker.is_retired = True
            self._tasks.start("retire", worker.retire())


def _digest(settings: Settings) -> str:
    """Return the beginning of the digest of all that the hosts of a deployment must have alike."""
    alike = structs.asdict(settings)
    for section in _MAY_DIFFER:
        del alike[section]
    return hashlib.sha256(msgspec.json.encode(alike, order="deterministic")).hexdigest()[:16]


def _addresses(settings: Settings) -> tuple[str, int, str, int]:
    server = settings.server
    return server.host, server.port, server.probe_host, server.probe_port


def _url(listener: socket.socket) -> str:
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
