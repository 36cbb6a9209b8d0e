"""One project key that spends, and what happens to its holds."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg

from tests.ledger.sending import send
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import (
    InstanceId,
    ProjectId,
    ProjectKeyId,
    ReservationId,
    time_ordered_uuid,
)
from tollhouse.base.money import PicoUsd
from tollhouse.ledger.types import Charge, Hold, Resolution, ResolutionKind, ResolutionResult

CREDIT = 1_000_000
MODEL = "a model"


@dataclass(frozen=True)
class DirectLedger:
    """Holds and settles in the name of one worker, without the batcher in between."""

    org: OrganizationFixture
    url: str
    project_id: ProjectId
    key_id: ProjectKeyId
    instance_id: InstanceId

    async def hold(
        self,
        amount: int = 1_000,
        *,
        bills_without_answer: bool = True,
        instance_id: InstanceId | None = None,
    ) -> Hold:
        """An open hold, admitted now."""
        hold = self.new_hold(amount, bills_without_answer=bills_without_answer)
        await self.admit([hold], instance_id=instance_id)
        return hold

    def new_hold(self, amount: int, *, bills_without_answer: bool = True) -> Hold:
        now = datetime.now(UTC)
        return Hold(
            organization_id=self.org.organization_id,
            reservation_id=ReservationId(time_ordered_uuid()),
            project_id=self.project_id,
            api_key_id=self.key_id,
            model=MODEL,
            price_revision=0,
            amount_pico_usd=PicoUsd(amount),
            admitted_at=now,
            deadline_at=now + timedelta(minutes=10),
            bills_without_answer=bills_without_answer,
        )

    async def admit(self, holds: Sequence[Hold], *, instance_id: InstanceId | None = None) -> None:
        result = await send(
            self.org.database, [], holds, instance_id=instance_id or self.instance_id
        )
        assert {decision and decision.code for decision in result.decisions} == {0}

    async def post(self, hold: Hold, amount: int, *, written: int = 0) -> ResolutionResult | None:
        """Settle at this amount, half of it input, with the writes to a cache, and half output."""
        charge = Charge(
            input_tokens=3,
            cache_write_tokens=2 if written else 0,
            output_tokens=5,
            input_pico_usd=PicoUsd(amount // 2),
            cache_write_pico_usd=PicoUsd(written),
            output_pico_usd=PicoUsd(amount - amount // 2),
        )
        return await self.resolve(hold, ResolutionKind.POST, charge)

    async def void(self, hold: Hold) -> ResolutionResult | None:
        return await self.resolve(hold, ResolutionKind.VOID, Charge())

    async def resolve(
        self, hold: Hold, kind: ResolutionKind, charge: Charge
    ) -> ResolutionResult | None:
        resolution = Resolution(
            organization_id=hold.organization_id,
            reservation_id=hold.reservation_id,
            admitted_day=hold.admitted_day,
            kind=kind,
            charge=charge,
        )
        result = await send(self.org.database, [resolution], [], instance_id=self.instance_id)
        return result.resolved[0]

    async def let_pass(self, hold: Hold, since_deadline: timedelta) -> None:
        """Make the deadline lie so far back, as if that time had passed."""
        await self.tamper(
            "UPDATE ledger_entries SET deadline_at = clock_timestamp() - $2::interval"
            " WHERE reservation_id = $1",
            hold.reservation_id,
            since_deadline,
        )
        await self.tamper(
            "UPDATE reaper_progress SET checked_until ="
            " least(checked_until, clock_timestamp() - $1::interval - interval '1 second')",
            since_deadline,
        )

    async def let_die(self, instance_id: InstanceId, since_heartbeat: timedelta) -> None:
        """Make the last heartbeat lie so far back."""
        await self.tamper(
            """
            INSERT INTO instances (id, started_at, heartbeat_at, newest_revision)
            VALUES ($1, clock_timestamp() - $2::interval, clock_timestamp() - $2::interval, '9999')
            ON CONFLICT (id) DO UPDATE SET heartbeat_at = EXCLUDED.heartbeat_at
            """,
            instance_id,
            since_heartbeat,
        )

    async def tamper(self, statement: str, *arguments: object) -> None:
        """Change rows behind the triggers that guard them."""
        async with self.connection() as connection:
            await connection.execute("SET session_replication_role = replica")
            await connection.execute(statement, *arguments)

    async def value(self, statement: str, *arguments: object) -> object:
        async with self.connection() as connection:
            return await connection.fetchval(statement, *arguments)

    async def unsettled(self) -> set[ReservationId]:
        """The holds that are marked now."""
        rows = await self.org.database.fetch_all("SELECT reservation_id FROM unsettled_holds")
        return {ReservationId(row["reservation_id"]) for row in rows}

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator["asyncpg.Connection[asyncpg.Record]"]:
        opened: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(self.url)
        try:
            yield opened
        finally:
            await opened.close()


async def open_ledger(org: OrganizationFixture, url: str, *, credit: int = CREDIT) -> DirectLedger:
    """A project, a key, and credit."""
    project = await org.project()
    key = await org.project_key(project)
    ledger = DirectLedger(org, url, project.id, key.key.id, InstanceId(time_ordered_uuid()))
    async with ledger.connection() as connection:
        await connection.execute(
            "INSERT INTO credit_grants VALUES ($1, $2, 'sandbox', $3, 'a test', 'operator', NULL,"
            " clock_timestamp())",
            org.organization_id,
            time_ordered_uuid(),
            credit,
        )
        await connection.execute(
            "UPDATE accounts SET credit_pico = $2, ceiling_pico = $2 WHERE organization_id = $1",
            org.organization_id,
            credit,
        )
    return ledger
