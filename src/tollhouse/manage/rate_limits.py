"""Rate limits: list all, set and clear the organization's own."""

from msgspec import UnsetType

from tollhouse.api import limits_wire, wire
from tollhouse.api.call import Answer, Call
from tollhouse.api.mutations import mutation
from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import OrganizationId, parse_uuid
from tollhouse.base.traffic import TrafficLimits
from tollhouse.contract import rate_limits as contract
from tollhouse.contract.listing import ListQuery, NoQuery
from tollhouse.keys.types import Admin
from tollhouse.limits import service
from tollhouse.limits.errors import LimitedKeyNotFound, LimitedProjectNotFound
from tollhouse.limits.types import LimitPlace, Owner, Scope, parse_limit_place


async def page(call: Call[Admin, None, ListQuery]) -> Answer:
    """GET /manage/v1/organization/rate_limits"""
    after = _cursor(call.query.after)
    limit = call.query.limit
    async with call.house.database.transaction() as tx:
        found = await service.limits(tx, call.organization_id, after=after, limit=limit + 1)
    return Answer(body=wire.page(contract.RateLimitList, found, limit, limits_wire.rate_limit))


async def set_(call: Call[Admin, contract.SetRateLimit, NoQuery]) -> Answer:
    """PUT /manage/v1/organization/rate_limits"""
    place = _place(call.organization_id, call.body)
    traffic = TrafficLimits(
        requests_per_minute=call.body.requests_per_minute,
        tokens_per_minute=call.body.tokens_per_minute,
        concurrent_requests=call.body.concurrent_requests,
    )
    async with mutation(call) as tx:
        limit = await service.set_limit(tx, place, traffic)
    return Answer(body=limits_wire.rate_limit(limit))


async def clear(call: Call[Admin, None, contract.ClearRateLimitQuery]) -> Answer:
    """DELETE /manage/v1/organization/rate_limits"""
    place = _place(call.organization_id, call.query)
    async with mutation(call) as tx:
        await service.clear_limit(tx, place)
    return Answer(body=contract.RateLimitDeleted(id=place.text, deleted=True))


def _place(
    organization_id: OrganizationId, named: contract.SetRateLimit | contract.ClearRateLimitQuery
) -> LimitPlace:
    """Text that cannot be an ID is answered like an unknown one."""
    contract.check(named)
    owner = Owner.ORGANIZATION
    if not isinstance(named.project_id, UnsetType):
        project_id = parse_uuid(named.project_id)
        if project_id is None:
            raise LimitedProjectNotFound
        return LimitPlace(scope=Scope.PROJECT, scope_id=project_id, owner=owner)
    if not isinstance(named.api_key_id, UnsetType):
        api_key_id = parse_uuid(named.api_key_id)
        if api_key_id is None:
            raise LimitedKeyNotFound
        return LimitPlace(scope=Scope.KEY, scope_id=api_key_id, owner=owner)
    return LimitPlace(scope=Scope.ORGANIZATION, scope_id=organization_id, owner=owner)


def _cursor(after: str | UnsetType) -> LimitPlace | None:
    if isinstance(after, UnsetType):
        return None
    place = parse_limit_place(after)
    if place is None:
        raise UnknownCursor
    return place
