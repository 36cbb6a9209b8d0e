"""Limits of traffic, set as the product sets them."""

from uuid import UUID

from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.traffic import TrafficLimits
from tollhouse.limits import service
from tollhouse.limits.types import LimitId, LimitOwner, LimitScope, RateLimit


async def set_limit(
    org: OrganizationFixture,
    traffic: TrafficLimits,
    *,
    scope: LimitScope = LimitScope.ORGANIZATION,
    scope_id: UUID | None = None,
    owner: LimitOwner = LimitOwner.ORGANIZATION,
) -> RateLimit:
    place = LimitId(scope=scope, scope_id=scope_id or org.organization_id, owner=owner)
    async with org.database.mutation(org.authority()) as tx:
        return await service.set_limit(tx, place, traffic)
