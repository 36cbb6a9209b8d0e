"""Mixed traffic at half of what the workers can handle, for long, while servers are restarted.

Inference on all endpoints with and without policies, reads, administration, callers that leave and
readers that stall. At the end the samples of the workers must be flat, and money exact.
"""

import asyncio
import itertools
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import aiohttp
import msgspec

from tests.endurance.administration import Administrator
from tests.endurance.fitting import Slope, medians, slope, thinned
from tests.endurance.generations import Settlement, settlement
from tests.endurance.numbered import (
    CallerAnswer,
    NumberedCallers,
    NumberedRequest,
    ask,
    numbered,
)
from tests.endurance.stage import UNRESOLVED, EnduranceStage
from tests.endurance.stolen import stolen_share, ticks
from tests.endurance.watched import PROBE, Sample
from tests.hostile.customers import Customer, new_customer
from tests.ledger.invariants import assert_conserved
from tests.support.deployment import MODEL
from tests.support.limits import set_limit
from tests.support.raw_streams import CHAT, open_stream
from tollhouse.base.money import PicoUsd
from tollhouse.base.policies import Mode
from tollhouse.base.traffic import TrafficLimits
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable
from tools import long_runs

CREDIT: Final = PicoUsd(10_000 * 10**12)
SATURATE_SECONDS: Final = 20.0
RESTART_SECONDS: Final = 60.0
SATURATING_CALLERS: Final = 150
OFFERED_MIN: Final = 1.0
"""A machine that stands still may answer nothing while its capacity is measured."""
WAITING_MAX: Final = 500
"""Callers at once; one more is not sent, and counted."""
PROBE_EVERY, READ_EVERY, LEAVE_EVERY = 10, 7, 11
LEAVE_BYTES_MAX: Final = 3_000
ADMINISTRATORS: Final = 2
WRITE_SECONDS: Final = 3.0
STALLED_TOKENS: Final = 4_000
STALLED_WORD_CHARACTERS: Final = 1_000
AWAY_SECONDS: Final = 1.0
SERVICE: Final[Mapping[str, Any]] = {
    "application": "tests.endurance.watched:WatchedApplication",
    "workers": 2,
    "write_seconds": WRITE_SECONDS,
}
RESOLVED_SECONDS_MAX: Final = 300.0
WARM_SHARE: Final = 0.2
POINTS_MAX: Final = 200
GROWTH_PER_HOUR_MAX: Final[Mapping[str, float]] = {
    "rss_megabytes": 1.0,
    "malloc_megabytes": 1.0,
    "blocks": 10_000.0,
    "descriptors": 2.0,
    "connections": 2.0,
    "tasks": 2.0,
    "p99_ms": 5.0,
}
AMPLE: Final = TrafficLimits(
    requests_per_minute=10_000_000, tokens_per_minute=2_000_000_000, concurrent_requests=10_000
)


@dataclass(frozen=True, kw_only=True)
class WorkerFigures:
    """How the figures of one worker went, and how much they grow once it is warm."""

    slopes: dict[str, Slope | None]
    series: dict[str, list[tuple[float, float]]]


@dataclass(frozen=True, kw_only=True)
class SoakResult:
    """One run. A run that was interrupted has fewer seconds than `wanted_seconds`."""

    begun_at: str
    commit: str
    wanted_seconds: float
    seconds: float
    capacity_per_second: float
    offered_per_second: float
    statuses: dict[str, int]
    administration: dict[str, int]
    administration_cycles: int
    stalled_readers: int
    not_sent: int
    restarts: dict[str, int]
    workers: list[WorkerFigures]
    settlement: Settlement
    workers_died: int
    stolen_share: float | None = None
    """The processor time that the host gave to others; earlier runs did not record it."""

    @property
    def faults(self) -> list[str]:
        """Say what grows with certainty, what was not asked, and what is wrong with money."""
        growing = self._above_bars(errors=-2)
        died = [f"{self.workers_died} workers died"] if self.workers_died else []
        poor = self.statuses.get("402", 0)
        refused = [f"{poor} requests were refused for lack of credit"] if poor else []
        return growing + died + refused + self.settlement.faults

    @property
    def unclear(self) -> list[str]:
        """Say what may grow by more than its bar: the errors are too large to tell."""
        growing = self._above_bars(errors=-2)
        return [each for each in self._above_bars(errors=2) if each not in growing]

    def _above_bars(self, *, errors: int) -> list[str]:
        """Return the figures that are above their bars with so many standard errors added."""
        return [
            f"worker {number}: {name} grows by {each.per_hour} ± {each.error} an hour"
            for number, worker in enumerate(self.workers)
            for name, each in worker.slopes.items()
            if each is not None and each.per_hour + errors * each.error > GROWTH_PER_HOUR_MAX[name]
        ]


class SoakTraffic:
    """Callers at a constant rate, administrators and stalled readers."""

    def __init__(
        self, stage: EnduranceStage, customers: Mapping[Mode | None, Customer], chance: Random
    ) -> None:
        self._stage = stage
        self._customers = customers
        self._chance = chance
        self._numbers = itertools.count()
        self._waiting: set[asyncio.Task[None]] = set()
        self.answers: list[CallerAnswer] = []
        self.statuses: Counter[str] = Counter()
        self.not_sent = 0
        self.stalled_readers = 0

    async def saturate(self, seconds: float) -> float:
        """Return how many requests are answered in a second if callers do not pause."""
        callers = NumberedCallers(
            self._stage.service.base_url, self._customers, numbers=self._numbers
        )
        calling = asyncio.create_task(callers.run(SATURATING_CALLERS))
        begun = time.monotonic()
        await asyncio.sleep(seconds)
        answered = sum(answer.status == 200 for answer in callers.answers)
        per_second = answered / (time.monotonic() - begun)
        callers.stop()
        await calling
        self.answers += callers.answers
        return per_second

    async def offer(self, session: aiohttp.ClientSession, per_second: float) -> None:
        """Send requests at this rate, whether or not answers come, until cancelled."""
        begun = time.monotonic()
        for sent in itertools.count():
            await asyncio.sleep(max(0.0, begun + sent / per_second - time.monotonic()))
            if len(self._waiting) >= WAITING_MAX:
                self.not_sent += 1
                continue
            task = asyncio.create_task(self._one(session, sent))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def finish(self) -> None:
        """Wait for the last answers."""
        while self._waiting:
            await asyncio.wait(self._waiting)

    async def _one(self, session: aiohttp.ClientSession, sent: int) -> None:
        if sent % READ_EVERY == 0:
            await self._read(session, sent // READ_EVERY)
            return
        number = next(self._numbers)
        asked, headers, leave = numbered(number), dict[str, str](), None
        if sent % PROBE_EVERY == 0:
            asked = NumberedRequest(number=number, mode=None, path=CHAT, is_stream=False)
            headers = {PROBE.decode(): "1"}
        elif sent % LEAVE_EVERY == 0:
            leave = self._chance.randrange(LEAVE_BYTES_MAX)
        key = self._customers[asked.mode].key
        answer = await ask(session, key, asked, leave_after_bytes=leave, headers=headers)
        self.answers.append(answer)
        self.statuses["left" if leave is not None else str(answer.status)] += 1

    async def _read(self, session: aiohttp.ClientSession, turn: int) -> None:
        headers = {"authorization": f"Bearer {self._customers[None].key}"}
        said = {"model": MODEL, "messages": [{"role": "user", "content": "How many?"}]}
        calls: list[tuple[str, str, dict[str, Any] | None]] = [
            ("GET", "/v1/models", None),
            ("GET", f"/v1/models/{MODEL}", None),
            ("POST", "/v1/messages/count_tokens", said),
        ]
        method, path, body = calls[turn % len(calls)]
        with suppress(aiohttp.ClientError):
            async with session.request(method, path, json=body, headers=headers) as answer:
                await answer.read()
                self.statuses[f"{path} {answer.status}"] += 1

    async def stall(self) -> None:
        """Open streams that nobody reads until the gateway cuts them, until cancelled."""
        while True:
            asked = NumberedRequest(
                number=next(self._numbers), mode=None, path=CHAT, is_stream=True
            )
            body = asked.body(tokens=STALLED_TOKENS, word_characters=STALLED_WORD_CHARACTERS)
            with suppress(OSError, EOFError):
                stream = await open_stream(
                    self._stage.service.address, self._customers[None].key, CHAT, body
                )
                try:
                    await asyncio.sleep(2 * WRITE_SECONDS)
                finally:
                    stream.writer.transport.abort()
                self.stalled_readers += 1


class Restarts:
    """Restarts Redis, the engine and PostgreSQL in turn."""

    def __init__(self, stage: EnduranceStage) -> None:
        self._stage = stage
        self._turn: asyncio.Task[None] | None = None
        self.done: Counter[str] = Counter()

    async def finish(self) -> None:
        """Wait for the restart that was under way, so that no server stays away."""
        if self._turn is not None:
            await self._turn

    async def run(self, every_seconds: float) -> None:
        """Restart one after another until cancelled."""
        turns = {"redis": self._redis, "engine": self._engine, "postgresql": self._postgresql}
        for name, restart in itertools.cycle(turns.items()):
            await asyncio.sleep(every_seconds)
            self._turn = asyncio.create_task(restart())
            await asyncio.shield(self._turn)
            self.done[name] += 1

    async def _redis(self) -> None:
        await asyncio.to_thread(self._stage.redis.kill)
        await asyncio.sleep(AWAY_SECONDS)
        await asyncio.to_thread(self._stage.redis.start)

    async def _engine(self) -> None:
        await self._stage.upstream.stop()
        await asyncio.sleep(AWAY_SECONDS)
        await self._stage.upstream.start(self._stage.upstream.port)

    async def _postgresql(self) -> None:
        await self._stage.cluster.kill()
        await self._stage.cluster.start()


async def soak_customers(stage: EnduranceStage) -> dict[Mode | None, Customer]:
    """Return customers with ample credit and limits, so that Redis counts and never refuses."""
    customers: dict[Mode | None, Customer] = {}
    for mode in (None, Mode.MONITORING, Mode.ENFORCING):
        customers[mode] = await new_customer(
            stage.database, stage.settings, credit=CREDIT, mode=mode
        )
        await set_limit(customers[mode].org, AMPLE)
    return customers


@asynccontextmanager
async def beside(*works: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Run these until the block ends; one that fails ends the block at once."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
        yield
        for task in tasks:
            task.cancel()


async def soak(
    stage: EnduranceStage,
    folder: Path,
    chance: Random,
    *,
    seconds: float,
    saturate_seconds: float,
    restart_seconds: float,
) -> SoakResult:
    """Run for so long, or until SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    customers = await soak_customers(stage)
    traffic, restarts = SoakTraffic(stage, customers, chance), Restarts(stage)
    capacity = await traffic.saturate(saturate_seconds)
    offered = max(capacity / 2, OFFERED_MIN)
    begun_at, ticks_before = time.time(), ticks()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(stage.service.base_url, connector=connector) as session:
        administrators = [
            Administrator(session, lambda: insisted_customer(stage)) for _ in range(ADMINISTRATORS)
        ]
        async with beside(
            traffic.offer(session, offered),
            traffic.stall(),
            restarts.run(restart_seconds),
            forgetting(stage),
            *(each.run() for each in administrators),
        ):
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), seconds)
        await restarts.finish()
        await traffic.finish()
    stolen = stolen_share(ticks_before, ticks())
    # Written at once: what follows reads every entry, and may fail.
    workers = worker_figures(folder, since=begun_at, until=begun_at + seconds)
    for worker in workers:
        sys.stdout.write(msgspec.json.encode(worker.slopes).decode() + "\n")
    organizations = [each.org.organization_id for each in customers.values()]
    await resolved(stage.database, organizations)
    await assert_conserved(stage.database)
    administration: Counter[str] = Counter()
    for each in administrators:
        administration.update(each.statuses)
    return SoakResult(
        begun_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun_at)),
        commit=long_runs.current_commit(),
        wanted_seconds=seconds,
        seconds=round(time.time() - begun_at),
        capacity_per_second=round(capacity, 1),
        offered_per_second=round(offered, 1),
        statuses=dict(traffic.statuses),
        administration=dict(administration),
        administration_cycles=sum(each.cycles for each in administrators),
        stalled_readers=traffic.stalled_readers,
        not_sent=traffic.not_sent,
        restarts=dict(restarts.done),
        workers=workers,
        settlement=await settlement(stage.database, organizations, stage.log, traffic.answers),
        workers_died=stage.service.log().count('"worker_died"'),
        stolen_share=stolen,
    )


async def insisted_customer(stage: EnduranceStage) -> Customer:
    """Return a new customer, as soon as the database is there."""
    while True:
        with suppress(DatabaseUnavailable):
            return await new_customer(stage.database, stage.settings)
        await asyncio.sleep(AWAY_SECONDS)


async def forgetting(stage: EnduranceStage) -> None:
    """Keep the judge from remembering every question, until cancelled."""
    while True:
        stage.judge.received.clear()
        await asyncio.sleep(AWAY_SECONDS)


async def resolved(database: Database, organizations: Collection[UUID]) -> None:
    """Wait until every hold has its end."""
    async with asyncio.timeout(RESOLVED_SECONDS_MAX):
        while True:
            with suppress(DatabaseUnavailable):
                rows = await database.fetch_all(UNRESOLVED, list(organizations))
                if rows[0][0] == 0:
                    return
            await asyncio.sleep(AWAY_SECONDS)


def worker_figures(folder: Path, *, since: float, until: float) -> list[WorkerFigures]:
    """Return the figures of every worker between two times, in seconds from the first.

    Slopes are those of the medians of minutes: each minute has one restart, and figures jump there.
    """
    found: list[WorkerFigures] = []
    for path in sorted(folder.glob("samples-*.jsonl")):
        samples = [
            msgspec.json.decode(line, type=Sample) for line in path.read_bytes().splitlines()
        ]
        series: dict[str, list[tuple[float, float]]] = {}
        for name in GROWTH_PER_HOUR_MAX:
            values = [(sample.at - since, getattr(sample, name)) for sample in samples]
            series[name] = [
                (at, value)
                for at, value in values
                if value is not None and 0 <= at <= until - since
            ]
        warm = WARM_SHARE * (until - since)
        found.append(
            WorkerFigures(
                slopes={
                    name: slope(
                        medians(
                            [point for point in points if point[0] >= warm],
                            seconds=RESTART_SECONDS,
                        )
                    )
                    for name, points in series.items()
                },
                series={name: thinned(points, POINTS_MAX) for name, points in series.items()},
            )
        )
    return found


def summary(result: SoakResult) -> dict[str, object]:
    """Return the figures without their series."""
    found: dict[str, object] = msgspec.to_builtins(result)
    found["workers"] = [msgspec.to_builtins(worker.slopes) for worker in result.workers]
    return found | {"faults": result.faults, "unclear": result.unclear}
