"""Spending limits: list with their use, set, clear."""

from msgspec import UnsetType

from tollhouse.api import money_wire, wire
from tollhouse.api.call import Answer, Call
from tollhouse.api.mutations import mutation
from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import OrganizationId, parse_uuid
from tollhouse.contract import spending_limits as limits_wire
from tollhouse.contract.listing import ListQuery, NoQuery
from tollhouse.keys.types import Admin
from tollhouse.ledger import service
from tollhouse.ledger.errors import CappedKeyNotFound, CappedProjectNotFound
from tollhouse.ledger.types import CapPlace, Period, Scope, parse_cap_place


async def page(call: Call[Admin, None, ListQuery]) -> Answer:
    """GET /manage/v1/organization/spending_limits"""
    after = _cursor(call.query.after)
    limit = call.query.limit
    async with call.house.database.transaction() as tx:
        found = await service.caps(tx, call.organization_id, call.now, after=after, limit=limit + 1)
    show = money_wire.spending_limit
    return Answer(body=wire.page(limits_wire.SpendingLimitList, found, limit, show))


async def set_(call: Call[Admin, limits_wire.SetSpendingLimit, NoQuery]) -> Answer:
    """PUT /manage/v1/organization/spending_limits"""
    place = _place(call.organization_id, call.body)
    async with mutation(call) as tx:
        use = await service.set_cap(
            tx,
            place,
            limit_pico_usd=money_wire.amount(call.body.limit),
            alert_percent=call.body.alert_percent,
        )
    return Answer(body=money_wire.spending_limit(use))


async def clear(call: Call[Admin, None, limits_wire.ClearSpendingLimitQuery]) -> Answer:
    """DELETE /manage/v1/organization/spending_limits"""
    place = _place(call.organization_id, call.query)
    async with mutation(call) as tx:
        await service.clear_cap(tx, place)
    return Answer(body=limits_wire.SpendingLimitDeleted(id=place.text, deleted=True))


def _place(
    organization_id: OrganizationId,
    named: limits_wire.SetSpendingLimit | limits_wire.ClearSpendingLimitQuery,
) -> CapPlace:
    """Text that cannot be an ID is answered like an unknown one."""
    limits_wire.check(named)
    period = Period(named.period)
    if not isinstance(named.project_id, UnsetType):
        project_id = parse_uuid(named.project_id)
        if project_id is None:
            raise CappedProjectNotFound
        return CapPlace(scope=Scope.PROJECT, scope_id=project_id, period=period)
    if not isinstance(named.api_key_id, UnsetType):
        api_key_id = parse_uuid(named.api_key_id)
        if api_key_id is None:
            raise CappedKeyNotFound
        return CapPlace(scope=Scope.KEY, scope_id=api_key_id, period=period)
    return CapPlace(scope=Scope.ORGANIZATION, scope_id=organization_id, period=period)


def _cursor(after: str | UnsetType) -> CapPlace | None:
    if isinstance(after, UnsetType):
        return None
    place = parse_cap_place(after)
    if place is None:
        raise UnknownCursor
    return place
