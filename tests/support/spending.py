"""Somebody who spends: reserves and settles through the real ledger, with a real key."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import (
    GrantId,
    InstanceId,
    ProjectId,
    ProjectKeyId,
    ReservationId,
    time_ordered_uuid,
)
from tollhouse.base.money import PicoUsd
from tollhouse.base.tasks import Tasks
from tollhouse.ledger import service
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.types import (
    CapId,
    CapScope,
    CapUse,
    Charge,
    Credit,
    Grant,
    GrantKind,
    Hold,
    Period,
    Resolution,
    ResolutionKind,
)

WAIT_MAX = timedelta(seconds=60)
DEADLINE = timedelta(minutes=10)


@dataclass(frozen=True)
class Spender:
    """An organization with a project and a key."""

    org: OrganizationFixture
    batcher: Batcher
    project_id: ProjectId
    api_key_id: ProjectKeyId

    def place(self, scope: CapScope, period: Period) -> CapId:
        ids = {
            CapScope.ORGANIZATION: self.org.organization_id,
            CapScope.PROJECT: self.project_id,
            CapScope.KEY: self.api_key_id,
        }
        return CapId(scope=scope, scope_id=ids[scope], period=period)

    async def grant(self, amount: int, kind: GrantKind = GrantKind.PROMOTIONAL) -> Grant:
        async with self.org.database.mutation(self.org.authority()) as tx:
            return await service.grant(
                tx,
                grant_id=GrantId(time_ordered_uuid()),
                kind=kind,
                amount=PicoUsd(amount),
                reason="a test",
            )

    async def credit(self) -> Credit:
        async with self.org.database.transaction() as tx:
            return await service.credit(tx, self.org.organization_id)

    async def set_cap(
        self, place: CapId, limit: int, alert_percent: int = 80, *, now: datetime | None = None
    ) -> CapUse:
        async with self.org.database.mutation(self.org.authority(now)) as tx:
            return await service.set_cap(
                tx, place, limit_pico_usd=PicoUsd(limit), alert_percent=alert_percent
            )

    async def clear_cap(self, place: CapId) -> None:
        async with self.org.database.mutation(self.org.authority()) as tx:
            await service.clear_cap(tx, place)

    async def caps(self, now: datetime | None = None) -> list[CapUse]:
        async with self.org.database.transaction() as tx:
            return await service.caps(
                tx,
                self.org.organization_id,
                now or datetime.now(UTC),
                after=None,
                limit=100,
            )

    async def reserve(self, amount: int) -> Hold:
        now = datetime.now(UTC)
        hold = Hold(
            organization_id=self.org.organization_id,
            reservation_id=ReservationId(time_ordered_uuid()),
            project_id=self.project_id,
            api_key_id=self.api_key_id,
            model="a-model",
            price_revision=0,
            amount_pico_usd=PicoUsd(amount),
            admitted_at=now,
            deadline_at=now + DEADLINE,
            bills_without_answer=False,
        )
        await self.batcher.admit(hold, wait_max=WAIT_MAX)
        return hold

    async def settle(self, hold: Hold, amount: int) -> None:
        await self.batcher.resolve(
            Resolution(
                organization_id=hold.organization_id,
                reservation_id=hold.reservation_id,
                admitted_day=hold.admitted_day,
                kind=ResolutionKind.POST,
                charge=Charge(input_tokens=1, input_pico_usd=PicoUsd(amount)),
            )
        )

    async def spend(self, amount: int) -> None:
        await self.settle(await self.reserve(amount), amount)


@asynccontextmanager
async def spender_of(org: OrganizationFixture) -> AsyncGenerator[Spender]:
    project = await org.project()
    held = await org.project_key(project)
    tasks = Tasks()
    batcher = Batcher(org.database, tasks, InstanceId(time_ordered_uuid()), own_batches_max=6)
    yield Spender(org, batcher, project.id, held.key.id)
    await tasks.drain(deadline_seconds=WAIT_MAX.total_seconds())
