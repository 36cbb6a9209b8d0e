"""Requests that never were, as they would have ended."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from tests.support.organization_fixture import OrganizationFixture
from tollhouse.activity.types import RequestRecord
from tollhouse.base.ids import (
    OrganizationId,
    ProjectId,
    ProjectKeyId,
    RequestId,
    time_ordered_uuid,
)
from tollhouse.base.money import PicoUsd
from tollhouse.storage import partitions
from tollhouse.storage.database import Database
from tollhouse.storage.partitions import DailyTable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS_SHIFT = 80
_REST_MASK = (1 << _MILLISECONDS_SHIFT) - 1


def id_of(at: datetime) -> RequestId:
    """An ID as it would have been minted then."""
    milliseconds = (at - EPOCH) // timedelta(milliseconds=1)
    rest = time_ordered_uuid().int & _REST_MASK
    return RequestId(UUID(int=milliseconds << _MILLISECONDS_SHIFT | rest))


def days_ago(days: int) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


@dataclass(frozen=True)
class Customer:
    """A key, and requests by it."""

    organization_id: OrganizationId
    project_id: ProjectId
    api_key_id: ProjectKeyId

    def record(self, at: datetime | None = None, **facts: object) -> RequestRecord:
        """A chat that went well, unless the facts say otherwise."""
        started_at = at or datetime.now(UTC)
        known: dict[str, object] = {
            "operation": "createChatCompletion",
            "status": 200,
            "model": "example/model",
            "backend": "pool",
            "replica": "pool-1",
            "input_tokens": 12,
            "cached_input_tokens": 3,
            "output_tokens": 45,
            "cost_pico_usd": PicoUsd(1_250_000),
            "queue_ms": 0.5,
            "admission_ms": 2.25,
            "judging_ms": None,
            "first_byte_ms": 120.5,
            "total_ms": 640.75,
        }
        return RequestRecord(
            organization_id=self.organization_id,
            request_id=id_of(started_at),
            project_id=self.project_id,
            api_key_id=self.api_key_id,
            started_at=started_at,
            **(known | facts),  # pyright: ignore[reportArgumentType]
        )


async def customer_of(org: OrganizationFixture) -> Customer:
    project = await org.project()
    held = await org.project_key(project)
    return Customer(org.organization_id, project.id, held.key.id)


def stranger() -> Customer:
    """Of an organization that nobody knows; records have no foreign keys."""
    return Customer(
        OrganizationId(time_ordered_uuid()),
        ProjectId(time_ordered_uuid()),
        ProjectKeyId(time_ordered_uuid()),
    )


async def make_days(database: Database, first: datetime, last: datetime) -> None:
    async with database.transaction() as tx:
        await partitions.make(tx, DailyTable.REQUESTS, first_day=first.date(), last_day=last.date())
