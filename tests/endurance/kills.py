"""Random `kill -9` of workers under load, in rounds that are recorded one by one.

Each round has organizations of its own. After it, every hold is resolved, the ledger is verified,
and the upstream's log is joined with it. A run that was interrupted goes on with its next round.
"""

import asyncio
import os
import signal
import statistics
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final
from uuid import UUID

import msgspec

from tests.endurance.generations import Comparison, compare
from tests.endurance.numbered import NumberedCallers
from tests.endurance.observed_holds import HoldObserver
from tests.endurance.stage import UNRESOLVED, EnduranceStage, running_stage
from tests.endurance.stolen import stolen_share, ticks
from tests.hostile.customers import Customer, new_customer
from tests.identity.waiting import until
from tests.ledger.invariants import assert_conserved
from tests.support.processes import Service
from tollhouse.base.policies import Mode
from tollhouse.ledger.rules import UNANSWERED_GRACE
from tollhouse.storage.database import Database
from tools import long_runs

WORKERS: Final = 4
CALLERS: Final = 12
KILLS_PER_ROUND: Final = 100
ANSWERS_BETWEEN: Final = 40
PHASE_SECONDS: Final = 0.05
"""A kill comes up to so much later than an answer, so that it meets every phase of a request."""
IN_FLIGHT: Final = timedelta(seconds=0.25)
"""What a worker sent before its death may be carried out by the database so much later."""
LOOK_EVERY_SECONDS: Final = 0.5
RESOLVED_SECONDS_MAX: Final = 240.0
UNSETTLED_SECONDS_MAX: Final = 60.0

_UNSETTLED = "SELECT reservation_id, unsettled_at FROM unsettled_holds"
_HOLDS = """
    SELECT e.instance_id, e.reservation_id, e.deadline_at, end_.recorded_at AS resolved_at,
           (SELECT max(last.recorded_at) FROM ledger_entries last
             WHERE last.instance_id = e.instance_id AND last.kind <> 'write_off') AS last_at
      FROM ledger_entries e
      JOIN ledger_entries end_ USING (organization_id, admitted_day, reservation_id)
     WHERE e.phase = 0 AND end_.phase = 1 AND end_.kind = 'write_off'
       AND e.organization_id = ANY($1)
"""


@dataclass(frozen=True, kw_only=True)
class KillRound:
    """The figures of one round. `run` is when its run began, `wanted` how many kills it has."""

    run: str
    wanted: int
    commit: str
    ended_at: str
    kills: int
    orphaned: int
    """Holds that a killed worker left open."""
    unsettled_seconds: list[float]
    """From the kill until each of them was marked as unsettled."""
    resolved_seconds: list[float]
    """From the deadline of each of them until it was resolved."""
    statuses: dict[str, int]
    comparison: Comparison
    looks: int = 0
    """How often all holds were read at a random moment; rounds before had no such reader."""
    astray: list[str] = field(default_factory=list[str])
    """Which of these found a hold without a live worker that was not unsettled in time."""
    stolen_share: float | None = None
    """The processor time that the host gave to others; earlier rounds did not record it."""

    @property
    def faults(self) -> list[str]:
        late = [s for s in self.unsettled_seconds if s > UNSETTLED_SECONDS_MAX]
        wrong = self.astray + [f"unsettled only {seconds} s after the kill" for seconds in late]
        if self.comparison.difference_pico_usd:
            wrong.append(f"difference of {self.comparison.difference_pico_usd} pico-USD")
        return wrong + self.comparison.faults


async def killed_instances(database: Database, living: int) -> set[UUID]:
    """Return the instances that are gone; those that live have the newest heartbeats."""
    rows = await database.fetch_all("SELECT id FROM instances ORDER BY heartbeat_at DESC")
    return {row["id"] for row in rows[living:]}


class KillLoad:
    """One round: callers, kills between their answers, and what is left of it."""

    def __init__(self, stage: EnduranceStage, chance: Random) -> None:
        self._stage = stage
        self._chance = chance
        self._kills: list[datetime] = []
        self._unsettled: dict[UUID, datetime] = {}
        self._customers: dict[Mode | None, Customer] = {}
        self._instances = 0
        self.observer = HoldObserver(stage.database, chance)
        self.callers: NumberedCallers

    @property
    def organizations(self) -> list[UUID]:
        return [customer.org.organization_id for customer in self._customers.values()]

    async def run(self, kills: int) -> None:
        """Kill so many workers under load, each while all others serve, until all callers end."""
        stage = self._stage
        stage.log.generations.clear()
        for mode in (None, Mode.MONITORING, Mode.ENFORCING):
            self._customers[mode] = await new_customer(stage.database, stage.settings, mode=mode)
        self.observer.organizations = self.organizations
        self.callers = NumberedCallers(stage.service.base_url, self._customers)
        await until(self._are_all_there)
        self._instances = await self._count_instances()
        calling = asyncio.create_task(self.callers.run(CALLERS))
        looking = asyncio.gather(self._look(), self.observer.run())
        for _ in range(kills):
            await self.callers.has_answers(self._chance.randrange(1, ANSWERS_BETWEEN))
            # Not a wait for anything: the phase of a request at which the kill comes.
            await asyncio.sleep(self._chance.uniform(0, PHASE_SECONDS))
            await until(self._kill)
            await until(self._is_replaced)
        self.callers.stop()
        await calling
        self._looking = looking

    async def _kill(self) -> bool:
        living = self._stage.workers()
        if living:
            with suppress(ProcessLookupError):
                os.kill(self._chance.choice(living), signal.SIGKILL)
                self._kills.append(datetime.now(UTC))
                return True
        return False

    async def _is_replaced(self) -> bool:
        """Return whether a new worker has said that it lives: the dead are not forgotten."""
        return await self._count_instances() == self._instances + len(self._kills)

    async def _are_all_there(self) -> bool:
        return await self._count_instances() >= self._stage.settings.server.workers

    async def _count_instances(self) -> int:
        rows = await self._stage.database.fetch_all("SELECT count(*) FROM instances")
        return rows[0][0]

    async def _look(self) -> None:
        """Note when holds are marked as unsettled: the marks are gone once they are resolved."""
        while True:
            for row in await self._stage.database.fetch_all(_UNSETTLED):
                self._unsettled.setdefault(row["reservation_id"], row["unsettled_at"])
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def is_resolved(self) -> bool:
        """Return whether every hold of the round has its end."""
        rows = await self._stage.database.fetch_all(UNRESOLVED, self.organizations)
        return rows[0][0] == 0

    async def resolved(self) -> None:
        """Wait until every hold has its end."""
        async with asyncio.timeout(RESOLVED_SECONDS_MAX):
            while not await self.is_resolved():  # noqa: ASYNC110 - nothing announces it
                await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def stop_looking(self) -> None:
        """Read no holds any more."""
        self._looking.cancel()
        with suppress(asyncio.CancelledError):
            await self._looking

    async def compared(self, killed: Collection[UUID]) -> Comparison:
        """Verify the ledger, and join it with the upstream's log."""
        await self.stop_looking()
        await assert_conserved(self._stage.database)
        return await compare(
            self._stage.database,
            self.organizations,
            self._stage.log,
            self.callers.answers,
            killed=killed,
        )

    async def seconds(self) -> tuple[list[float], list[float]]:
        """Return how long after the kill each hold was unsettled, and resolved after its deadline.

        The kill of a worker is the first one after the last entry that it wrote.
        """
        rows = await self._stage.database.fetch_all(_HOLDS, self.organizations)
        unsettled, resolved = list[float](), list[float]()
        for row in rows:
            killed_at = self._kills[bisect_left(self._kills, row["last_at"] - IN_FLIGHT)]
            resolved_at: datetime = row["resolved_at"]
            marked_at = self._unsettled.get(row["reservation_id"], resolved_at)
            unsettled.append(_seconds(marked_at - killed_at))
            resolved.append(_seconds(resolved_at - row["deadline_at"]))
        return sorted(unsettled), sorted(resolved)

    def statuses(self) -> dict[str, int]:
        """Count the callers by what they were told; `None` is a connection that broke before."""
        found = [
            f"{answer.status}{'' if answer.is_whole or answer.status != 200 else ' cut'}"
            for answer in self.callers.answers
        ]
        return {status: found.count(status) for status in sorted(set(found))}


async def run(
    path: Path, *, kills: int, chance: Random, kills_per_round: int = KILLS_PER_ROUND
) -> list[KillRound]:
    """Run the rounds that are left of the last run in the file, or all of a new one."""
    rounds = [each for each in read(path) if each.run == read(path)[-1].run]
    if not rounds or sum(each.kills for each in rounds) >= kills or rounds[-1].wanted != kills:
        rounds = []
    name = rounds[0].run if rounds else _now()
    with TemporaryDirectory(prefix="tollhouse-kills-") as folder:
        async with running_stage(Path(folder), workers=WORKERS) as stage:
            while (left := kills - sum(each.kills for each in rounds)) > 0:
                load, ticks_before = KillLoad(stage, chance), ticks()
                await load.run(min(left, kills_per_round))
                await load.resolved()
                killed = await killed_instances(stage.database, len(stage.workers()))
                comparison = await load.compared(killed)
                unsettled, resolved = await load.seconds()
                rounds.append(
                    KillRound(
                        run=name,
                        wanted=kills,
                        commit=long_runs.current_commit(),
                        ended_at=_now(),
                        kills=min(left, kills_per_round),
                        orphaned=len(unsettled),
                        unsettled_seconds=unsettled,
                        resolved_seconds=resolved,
                        statuses=load.statuses(),
                        comparison=comparison,
                        looks=load.observer.looks,
                        astray=load.observer.faults,
                        stolen_share=stolen_share(ticks_before, ticks()),
                    )
                )
                with path.open("ab") as kept:
                    kept.write(msgspec.json.encode(rounds[-1]) + b"\n")
            assert_only_kills(stage.service)
    return rounds


def assert_only_kills(service: Service) -> None:
    """No worker died by itself."""
    lines = [msgspec.json.decode(line) for line in service.log().splitlines()]
    codes = {line["exit_code"] for line in lines if line["event"] == "worker_died"}
    assert codes <= {-signal.SIGKILL}, codes


def read(path: Path) -> list[KillRound]:
    """Return all rounds that were recorded."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=KillRound) for line in lines]


def summary(rounds: Sequence[KillRound]) -> Mapping[str, object]:
    """Return the figures of a whole run."""
    unsettled = sorted(s for each in rounds for s in each.unsettled_seconds)
    resolved = sorted(s for each in rounds for s in each.resolved_seconds)
    money = [each.comparison for each in rounds]
    return {
        "kills": sum(each.kills for each in rounds),
        "rounds": len(rounds),
        "generations": sum(each.generations for each in money),
        "orphaned": len(unsettled),
        "unsettled_seconds": _distribution(unsettled),
        "resolved_seconds_after_deadline": _distribution(resolved),
        "grace_seconds": UNANSWERED_GRACE.total_seconds(),
        "answered": sum(each.answered for each in money),
        "answered_written_off": sum(each.answered_written_off for each in money),
        "difference_pico_usd": sum(each.difference_pico_usd for each in money),
        "faults": [fault for each in rounds for fault in each.faults],
    }


def _distribution(ordered: Sequence[float]) -> dict[str, float]:
    if not ordered:
        return {}
    percentile = ordered[round(0.99 * (len(ordered) - 1))]
    return {"p50": statistics.median(ordered), "p99": percentile, "max": ordered[-1]}


def _seconds(interval: timedelta) -> float:
    return round(interval.total_seconds(), 1)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
