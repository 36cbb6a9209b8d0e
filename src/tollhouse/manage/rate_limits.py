"""Rate limits: list all, set and clear the organization's own."""

from dataclasses import dataclass

from msgspec import UnsetType

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.wire import resources as wire
from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import OrganizationId, parse_uuid
from tollhouse.base.traffic import TrafficLimits
from tollhouse.contract import rate_limits as contract
from tollhouse.contract.listing import ListQuery, NoQuery
from tollhouse.keys.types import Admin
from tollhouse.limits import service
from tollhouse.limits.errors import LimitedKeyNotFound, LimitedProjectNotFound
from tollhouse.limits.types import LimitId, LimitOwner, LimitScope, parse_limit_place


@dataclass(frozen=True, kw_only=True, slots=True)
class RateLimitHandlers:
    """Handlers of the operations on rate limits. `owner` is whose limits they set and clear."""

    database: AdminDatabase
    owner: LimitOwner = LimitOwner.ORGANIZATION

    async def page(self, call: OperationCall[Admin, None, ListQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/rate_limits"""
        after = _cursor(call.query.after)
        limit = call.query.limit
        async with self.database.transaction() as tx:
            found = await service.limits(tx, call.organization_id, after=after, limit=limit + 1)
        return OperationAnswer(
            body=wire.page(contract.RateLimitList, found, limit, wire.rate_limit)
        )

    async def set_(
        self, call: OperationCall[Admin, contract.SetRateLimit, NoQuery]
    ) -> OperationAnswer:
        """PUT /manage/v1/organization/rate_limits"""
        place = self._place(call.organization_id, call.body)
        traffic = TrafficLimits(
            requests_per_minute=call.body.requests_per_minute,
            tokens_per_minute=call.body.tokens_per_minute,
            concurrent_requests=call.body.concurrent_requests,
        )
        async with self.database.mutation_by(call) as tx:
            limit = await service.set_limit(tx, place, traffic)
        return OperationAnswer(body=wire.rate_limit(limit))

    async def clear(
        self, call: OperationCall[Admin, None, contract.ClearRateLimitQuery]
    ) -> OperationAnswer:
        """DELETE /manage/v1/organization/rate_limits"""
        place = self._place(call.organization_id, call.query)
        async with self.database.mutation_by(call) as tx:
            await service.clear_limit(tx, place)
        return OperationAnswer(body=contract.RateLimitDeleted(id=place.text, deleted=True))

    def _place(
        self,
        organization_id: OrganizationId,
        named: contract.SetRateLimit | contract.ClearRateLimitQuery,
    ) -> LimitId:
        """Return the ID of the named limit. An invalid project or key ID is answered as unknown."""
        contract.check(named)
        if not isinstance(named.project_id, UnsetType):
            project_id = parse_uuid(named.project_id)
            if project_id is None:
                raise LimitedProjectNotFound
            return LimitId(scope=LimitScope.PROJECT, scope_id=project_id, owner=self.owner)
        if not isinstance(named.api_key_id, UnsetType):
            api_key_id = parse_uuid(named.api_key_id)
            if api_key_id is None:
                raise LimitedKeyNotFound
            return LimitId(scope=LimitScope.KEY, scope_id=api_key_id, owner=self.owner)
        return LimitId(scope=LimitScope.ORGANIZATION, scope_id=organization_id, owner=self.owner)


def _cursor(after: str | UnsetType) -> LimitId | None:
    if isinstance(after, UnsetType):
        return None
    place = parse_limit_place(after)
    if place is None:
        raise UnknownCursor
    return place
