"""Spending limits: list with their use, set, clear."""

from dataclasses import dataclass

from msgspec import UnsetType

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.wire import money as money_wire
from tollhouse.api.wire import resources as wire
from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import OrganizationId, parse_uuid
from tollhouse.contract import spending_limits as limits_wire
from tollhouse.contract.listing import ListQuery, NoQuery
from tollhouse.keys.types import Admin
from tollhouse.ledger import service
from tollhouse.ledger.errors import CappedKeyNotFound, CappedProjectNotFound
from tollhouse.ledger.types import CapId, CapScope, Period, parse_cap_place


@dataclass(frozen=True, kw_only=True, slots=True)
class SpendingLimitHandlers:
    """Handlers of the operations on spending limits."""

    database: AdminDatabase

    async def page(self, call: OperationCall[Admin, None, ListQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/spending_limits"""
        after = _cursor(call.query.after)
        limit = call.query.limit
        async with self.database.transaction() as tx:
            found = await service.caps(
                tx, call.organization_id, call.now, after=after, limit=limit + 1
            )
        show = money_wire.spending_limit
        return OperationAnswer(body=wire.page(limits_wire.SpendingLimitList, found, limit, show))

    async def set_(
        self,
        call: OperationCall[Admin, limits_wire.SetSpendingLimit, NoQuery],
    ) -> OperationAnswer:
        """PUT /manage/v1/organization/spending_limits"""
        place = _place(call.organization_id, call.body)
        async with self.database.mutation_by(call) as tx:
            use = await service.set_cap(
                tx,
                place,
                limit_pico_usd=money_wire.amount(call.body.limit),
                alert_percent=call.body.alert_percent,
            )
        return OperationAnswer(body=money_wire.spending_limit(use))

    async def clear(
        self,
        call: OperationCall[Admin, None, limits_wire.ClearSpendingLimitQuery],
    ) -> OperationAnswer:
        """DELETE /manage/v1/organization/spending_limits"""
        place = _place(call.organization_id, call.query)
        async with self.database.mutation_by(call) as tx:
            await service.clear_cap(tx, place)
        return OperationAnswer(body=limits_wire.SpendingLimitDeleted(id=place.text, deleted=True))


def _place(
    organization_id: OrganizationId,
    named: limits_wire.SetSpendingLimit | limits_wire.ClearSpendingLimitQuery,
) -> CapId:
    """Return the ID of the named limit. An invalid project or key ID is answered as unknown."""
    limits_wire.check(named)
    period = Period(named.period)
    if not isinstance(named.project_id, UnsetType):
        project_id = parse_uuid(named.project_id)
        if project_id is None:
            raise CappedProjectNotFound
        return CapId(scope=CapScope.PROJECT, scope_id=project_id, period=period)
    if not isinstance(named.api_key_id, UnsetType):
        api_key_id = parse_uuid(named.api_key_id)
        if api_key_id is None:
            raise CappedKeyNotFound
        return CapId(scope=CapScope.KEY, scope_id=api_key_id, period=period)
    return CapId(scope=CapScope.ORGANIZATION, scope_id=organization_id, period=period)


def _cursor(after: str | UnsetType) -> CapId | None:
    if isinstance(after, UnsetType):
        return None
    place = parse_cap_place(after)
    if place is None:
        raise UnknownCursor
    return place
