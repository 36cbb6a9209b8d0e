"""Organizations with credit, and holds to reserve in them."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from tollhouse.base.ids import (
    InstanceId,
    OrganizationId,
    ProjectId,
    ProjectKeyId,
    ReservationId,
    time_ordered_uuid,
)
from tollhouse.base.money import PicoUsd
from tollhouse.base.tasks import Tasks
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.types import Charge, Hold, Resolution, ResolutionKind
from tollhouse.storage.database import Database

EXCESS = 'tollhouse_operator_pays_pico_usd_total{account="excess"}'
WAIT_MAX = timedelta(seconds=60)
DEADLINE = timedelta(minutes=10)


@dataclass(frozen=True)
class Payer:
    """An organization with one project and one key, as the ledger sees them."""

    organization_id: OrganizationId
    project_id: ProjectId
    api_key_id: ProjectKeyId

    def hold(
        self,
        amount: int,
        *,
        admitted_at: datetime | None = None,
        deadline: timedelta = DEADLINE,
        bills_without_answer: bool = False,
    ) -> Hold:
        begun = admitted_at or datetime.now(UTC)
        return Hold(
            organization_id=self.organization_id,
            reservation_id=ReservationId(time_ordered_uuid()),
            project_id=self.project_id,
            api_key_id=self.api_key_id,
            model="a-model",
            price_revision=0,
            amount_pico_usd=PicoUsd(amount),
            admitted_at=begun,
            deadline_at=begun + deadline,
            bills_without_answer=bills_without_answer,
        )

    def with_other_key(self) -> "Payer":
        return replace(self, api_key_id=ProjectKeyId(time_ordered_uuid()))

    def with_other_project(self) -> "Payer":
        return replace(
            self,
            project_id=ProjectId(time_ordered_uuid()),
            api_key_id=ProjectKeyId(time_ordered_uuid()),
        )


async def new_payer(database: Database, *, credit: int = 0) -> Payer:
    """A funded organization. Its credit is a grant, as all credit is."""
    payer = Payer(
        OrganizationId(time_ordered_uuid()),
        ProjectId(time_ordered_uuid()),
        ProjectKeyId(time_ordered_uuid()),
    )
    async with database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO organizations (id, name, status, created_at)
            VALUES ($1, 'a payer', 'active', now())
            """,
            payer.organization_id,
        )
    if credit:
        await give(database, payer, credit)
    return payer


async def give(database: Database, payer: Payer, amount: int) -> None:
    async with database.transaction() as tx:
        await tx.execute(
            "SELECT 1 FROM accounts WHERE organization_id = $1 FOR UPDATE", payer.organization_id
        )
        await tx.execute(
            """
            INSERT INTO credit_grants (organization_id, id, kind, amount_pico, reason, actor_type,
                                       created_at)
            VALUES ($1, $2, CASE WHEN $3::numeric > 0 THEN 'promotional' ELSE 'correction' END,
                    $3, 'a test', 'operator', now())
            """,
            payer.organization_id,
            time_ordered_uuid(),
            amount,
        )
        await tx.execute(
            """
            UPDATE accounts
               SET credit_pico = credit_pico + $2,
                   ceiling_pico = greatest(credit_pico + $2, settled_pico + reserved_pico)
             WHERE organization_id = $1
            """,
            payer.organization_id,
            amount,
        )


def new_batcher(database: Database, tasks: Tasks) -> Batcher:
    return Batcher(database, tasks, InstanceId(time_ordered_uuid()), own_batches_max=6)


def posted(hold: Hold, amount: int) -> Resolution:
    """The hold's end at a charge for its input."""
    return Resolution(
        organization_id=hold.organization_id,
        reservation_id=hold.reservation_id,
        admitted_day=hold.admitted_day,
        kind=ResolutionKind.POST,
        charge=Charge(input_tokens=1, input_pico_usd=PicoUsd(amount)),
    )


def voided(hold: Hold) -> Resolution:
    return Resolution(
        organization_id=hold.organization_id,
        reservation_id=hold.reservation_id,
        admitted_day=hold.admitted_day,
        kind=ResolutionKind.VOID,
    )
