"""Gates with patience, and entrants of organizations that nobody else has."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from tollhouse.base.clock import HeldClock
from tollhouse.base.ids import (
    OrganizationId,
    ProjectId,
    ProjectKeyId,
    RequestId,
    time_ordered_uuid,
)
from tollhouse.base.tasks import Tasks
from tollhouse.base.traffic import UNLIMITED, TrafficLimits
from tollhouse.limits import rules
from tollhouse.limits.limiter import Limiter
from tollhouse.limits.types import BucketCost, LimitScope, LimitSubject

TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Gate:
    """A worker's limiter. Its clock stands still, so that by itself nothing refills."""

    limiter: Limiter
    clock: HeldClock
    tasks: Tasks = field(default_factory=Tasks)

    async def settle(self) -> None:
        """Wait for what nobody waits for."""
        await self.limiter.drain()
        assert await self.tasks.drain(deadline_seconds=TIMEOUT_SECONDS) == 0


@asynccontextmanager
async def gate(
    redis_url: str | None,
    *,
    answer_seconds: float = TIMEOUT_SECONDS,
    lease_seconds: float = 10 * TIMEOUT_SECONDS,
) -> AsyncGenerator[Gate]:
    clock, tasks = HeldClock(datetime(2026, 1, 1, tzinfo=UTC)), Tasks()
    limiter = Limiter(
        clock,
        tasks,
        redis_url=redis_url,
        answer_seconds=answer_seconds,
        lease_seconds=lease_seconds,
    )
    opened = Gate(limiter, clock, tasks)
    yield opened
    await opened.settle()
    await limiter.close()


@dataclass(frozen=True)
class Caller:
    """A key with its project and organization, which sends one request after the other."""

    organization: TrafficLimits = UNLIMITED
    project: TrafficLimits = UNLIMITED
    key: TrafficLimits = UNLIMITED
    organization_id: UUID = field(default_factory=time_ordered_uuid)
    project_id: UUID = field(default_factory=time_ordered_uuid)
    key_id: UUID = field(default_factory=time_ordered_uuid)

    def request(self, declared_tokens: int | None = None) -> LimitSubject:
        return LimitSubject(
            organization_id=OrganizationId(self.organization_id),
            project_id=ProjectId(self.project_id),
            api_key_id=ProjectKeyId(self.key_id),
            limits=(self.organization, self.project, self.key),
            request_id=RequestId(time_ordered_uuid()),
            declared_tokens=declared_tokens,
        )

    def with_other_key(self, limits: TrafficLimits = UNLIMITED) -> "Caller":
        return replace(self, key=limits, key_id=time_ordered_uuid())


def requests(limit: int) -> TrafficLimits:
    return TrafficLimits(requests_per_minute=limit)


def tokens(limit: int) -> TrafficLimits:
    return TrafficLimits(tokens_per_minute=limit)


def token_cost(scope: LimitScope, key: str, limit: int, tokens: int) -> BucketCost:
    (cost,) = rules.token_costs([(scope, key, limit)], tokens)
    return cost


def at_once(limit: int) -> TrafficLimits:
    return TrafficLimits(concurrent_requests=limit)
