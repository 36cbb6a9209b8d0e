"""Limits of traffic, set as the product sets them."""

from uuid import UUID

from tests.support.world import World
from tollhouse.base.traffic import TrafficLimits
from tollhouse.limits import service
from tollhouse.limits.types import LimitPlace, Owner, RateLimit, Scope


async def set_limit(
    world: World,
    traffic: TrafficLimits,
    *,
    scope: Scope = Scope.ORGANIZATION,
    scope_id: UUID | None = None,
    owner: Owner = Owner.ORGANIZATION,
) -> RateLimit:
    place = LimitPlace(scope=scope, scope_id=scope_id or world.organization_id, owner=owner)
    async with world.database.mutation(world.authority()) as tx:
        return await service.set_limit(tx, place, traffic)
