"""A real ledger to be walked beside its model, by tests that cannot be coroutines."""

import asyncio
from collections.abc import Collection, Coroutine, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar
from uuid import UUID

from tests.ledger.direct_ledger import DirectLedger
from tests.ledger.invariants import assert_conserved
from tests.ledger.model import ORDER, Charged, Refusal, Window, is_kept
from tests.ledger.sending import send
from tests.support import databases
from tests.support.gateway import settings_for
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tests.support.spending import WAIT_MAX, Spender
from tollhouse.app import connect
from tollhouse.base.ids import InstanceId, ReservationId, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.base.tasks import Tasks
from tollhouse.ledger import operations, reaper
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.errors import CAP_ERRORS, HoldNotFound, ResolutionSetAside, Uncovered
from tollhouse.ledger.rules import FIRST_CAP_CODE
from tollhouse.ledger.types import (
    AdmissionVerdict,
    CapId,
    CapScope,
    Charge,
    Hold,
    Period,
    Resolution,
    ResolutionResult,
)
from tollhouse.storage.database import Database

T = TypeVar("T")
IMPATIENT = "?options=-csynchronous_commit%3Doff"
KEYS_OF_PROJECTS = (2, 1)
SCOPES = {error: scope for scope, error in CAP_ERRORS.items()}


@dataclass(frozen=True)
class Books:
    """One organization with three keys in two projects; the first ledger is its own."""

    org: OrganizationFixture
    tills: Sequence[DirectLedger]
    tasks: Tasks

    def worker(self) -> tuple[InstanceId, Batcher]:
        """A new one, which lives until it is said to be dead."""
        instance_id = InstanceId(time_ordered_uuid())
        return instance_id, Batcher(self.org.database, self.tasks, instance_id, own_batches_max=6)

    def spender(self, batcher: Batcher) -> Spender:
        ledger = self.tills[0]
        return Spender(self.org, batcher, ledger.project_id, ledger.key_id)

    def places(self) -> list[CapId]:
        """Wherever a cap can stand."""
        projects = {ledger.project_id: None for ledger in self.tills}
        scopes = [
            (CapScope.ORGANIZATION, self.org.organization_id),
            *((CapScope.PROJECT, project_id) for project_id in projects),
            *((CapScope.KEY, ledger.key_id) for ledger in self.tills),
        ]
        return [
            CapId(scope=scope, scope_id=scope_id, period=period)
            for scope, scope_id in scopes
            for period in Period
        ]

    async def at_once(
        self, batcher: Batcher, ends: Sequence[Resolution], holds: Sequence[Hold]
    ) -> tuple[list[ResolutionResult | None], list[Refusal | None]]:
        """All handed over before any is answered; nothing stands for an end that was set aside."""
        outcomes = asyncio.gather(*(_outcome(batcher, end) for end in ends))
        refusals = asyncio.gather(*(_refusal(batcher, hold) for hold in holds))
        return await outcomes, await refusals

    async def admit_again(self, instance_id: InstanceId, hold: Hold) -> Refusal | None:
        """As a worker does that does not know what became of its batch."""
        result = await send(self.org.database, [], [hold], instance_id=instance_id, is_retry=True)
        (decision,) = result.decisions
        assert decision is not None, "nobody else locks the account"
        if decision.code == AdmissionVerdict.ADMITTED:
            return None
        is_cap = decision.code >= FIRST_CAP_CODE
        scope = ORDER[decision.code - FIRST_CAP_CODE][0] if is_cap else None
        return Refusal(scope, decision.available_pico_usd, decision.held_pico_usd)

    async def operator_settles(self, reservation_id: ReservationId, amount: int) -> bool:
        """Whether there was anything to decide."""
        try:
            async with self.org.database.mutation(self.org.authority()) as tx:
                await operations.settle(
                    tx,
                    reservation_id,
                    used=Charge(output_tokens=9),
                    amount=PicoUsd(amount),
                    reason="a test",
                )
        except HoldNotFound:
            return False
        return True

    async def operator_releases(self, reservation_id: ReservationId) -> bool:
        """Whether there was anything to decide."""
        try:
            async with self.org.database.mutation(self.org.authority()) as tx:
                await operations.release(tx, reservation_id, reason="a test")
        except HoldNotFound:
            return False
        return True

    async def let_decision_come(self, reservation_id: ReservationId) -> None:
        await self.tills[0].tamper(
            "UPDATE unsettled_holds SET decide_at = clock_timestamp() WHERE reservation_id = $1",
            reservation_id,
        )
        await reaper.run(self.org.database)

    async def accounts(self) -> tuple[int, ...]:
        rows = await self.org.database.fetch_all(
            """
            SELECT credit_pico, settled_pico, reserved_pico, written_off_excess_pico,
                   written_off_unknown_pico
              FROM accounts
             WHERE organization_id = $1
            """,
            self.org.organization_id,
        )
        return tuple(int(amount) for amount in rows[0])

    async def counters(self, today: date) -> dict[Window, tuple[int, int]]:
        """Settled and reserved in every window that has either, as far as the model keeps it."""
        rows = await self.org.database.fetch_all(
            """
            SELECT c.scope, c.scope_id, w.period, w.start, w.settled, w.reserved
              FROM spending_counters c
             CROSS JOIN LATERAL (
                    SELECT c.window_start = '-infinity' AS is_lifetime) row
             CROSS JOIN LATERAL (VALUES
                    (CASE WHEN is_lifetime THEN 'lifetime' ELSE 'month' END, c.window_start,
                     c.settled_pico, c.reserved_pico),
                    (CASE WHEN is_lifetime THEN 'week' ELSE 'day' END, c.short_start,
                     c.short_settled_pico, c.short_reserved_pico),
                    (CASE WHEN is_lifetime THEN 'week' ELSE 'day' END,
                     c.short_start - CASE WHEN is_lifetime THEN 7 ELSE 1 END,
                     c.previous_settled_pico, c.previous_reserved_pico)
                  ) w (period, start, settled, reserved)
             WHERE c.organization_id = $1
               AND (w.settled <> 0 OR w.reserved <> 0)
            """,
            self.org.organization_id,
        )
        found: dict[Window, tuple[int, int]] = {
            (CapScope(row["scope"]), row["scope_id"], Period(row["period"]), row["start"]): (
                int(row["settled"]),
                int(row["reserved"]),
            )
            for row in rows
        }
        return {window: used for window, used in found.items() if is_kept(window, today)}

    async def unsettled(self) -> dict[ReservationId, int]:
        """What is held by every hold that is marked now."""
        rows = await self.org.database.fetch_all(
            "SELECT reservation_id, held_pico FROM unsettled_holds WHERE organization_id = $1",
            self.org.organization_id,
        )
        return {ReservationId(row["reservation_id"]): row["held_pico"] for row in rows}

    async def charges(self, holds: Collection[UUID]) -> dict[UUID, Charged]:
        """Return what was charged for those of the holds that cost or might have cost something."""
        rows = await self.org.database.fetch_all(
            """
            SELECT reservation_id, model, cache_write_tokens, cache_write_pico
              FROM ledger_entries
             WHERE organization_id = $1
               AND reservation_id = ANY($2)
               AND phase = 1
               AND kind <> 'void'
            """,
            self.org.organization_id,
            list(holds),
        )
        return {
            row["reservation_id"]: Charged(
                row["model"], row["cache_write_tokens"], row["cache_write_pico"]
            )
            for row in rows
        }


async def _outcome(batcher: Batcher, end: Resolution) -> ResolutionResult | None:
    try:
        return await batcher.resolve(end)
    except ResolutionSetAside:
        return None


async def _refusal(batcher: Batcher, hold: Hold) -> Refusal | None:
    try:
        await batcher.admit(hold, wait_max=WAIT_MAX)
    except Uncovered as refused:
        return Refusal(SCOPES.get(type(refused)), refused.available, refused.held)
    return None


@dataclass(frozen=True)
class Library:
    """A database for many books, and the loop on which it is used."""

    runner: asyncio.Runner
    database: Database
    url: str

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def new_books(self) -> Books:
        return self.do(self._new_books())

    async def _new_books(self) -> Books:
        org = await new_organization_fixture(self.database)
        tills: list[DirectLedger] = []
        for keys in KEYS_OF_PROJECTS:
            project = await org.project()
            for _ in range(keys):
                key_id = (await org.project_key(project)).key.id
                no_worker = InstanceId(time_ordered_uuid())
                tills.append(DirectLedger(org, self.url, project.id, key_id, no_worker))
        return Books(org, tills, Tasks())

    def assert_conserved(self, *, fallbacks: Collection[str] = ()) -> None:
        """After a last look of the reaper: a long test leaves holds behind that are overdue."""
        self.do(reaper.run(self.database))
        self.do(assert_conserved(self.database, fallbacks=fallbacks))


@contextmanager
def library(template: str) -> Generator[Library]:
    """Open until the block is left."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            yield runner.run(_open(runner, stack, template))
        finally:
            runner.run(stack.aclose())


async def _open(runner: asyncio.Runner, stack: AsyncExitStack, template: str) -> Library:
    url = await stack.enter_async_context(databases.temporary(template=template)) + IMPATIENT
    settings = settings_for(url)
    database = await connect(settings)
    stack.push_async_callback(database.close)
    return Library(runner, database, url)
