"""What only the operator may do, as handlers that the operator's own process calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar
from uuid import UUID

from tollhouse.alerts import service as alerts
from tollhouse.api.admin_database import AdminDatabase, Creation
from tollhouse.api.call import Handler, OperationAnswer, OperationCall
from tollhouse.api.parameters import cursor
from tollhouse.api.wire import alerts as alerts_wire
from tollhouse.api.wire import money as money_wire
from tollhouse.api.wire import resources as wire
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import (
    GrantId,
    OrganizationId,
    SessionId,
    parse_uuid,
    time_ordered_uuid,
)
from tollhouse.base.money import from_decimal_string
from tollhouse.contract import operator_operations as operations
from tollhouse.keys.types import Admin
from tollhouse.ledger import overview
from tollhouse.ledger import service as ledger
from tollhouse.ledger.overview import OrganizationMoney
from tollhouse.ledger.types import Grant, GrantKind
from tollhouse.limits.types import LimitOwner
from tollhouse.manage.alerts import subscription_of
from tollhouse.manage.rate_limits import RateLimitHandlers
from tollhouse.organizations import service
from tollhouse.organizations import types as nouns
from tollhouse.organizations.types import OrganizationStatus
from tollhouse.sessions import service as sessions
from tollhouse.sessions.errors import SessionEnded
from tollhouse.sessions.types import ConsoleSession
from tollhouse.storage.database import OPERATOR, Mutation, Transaction

T = TypeVar("T")
Call = OperationCall[Admin, Any, Any]
SESSIONS_LISTED_MAX: Final = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorHandlers:
    """Handlers of the operations that only the operator has."""

    database: AdminDatabase

    async def create_organization(self, call: Call) -> OperationAnswer:
        """Create the organization whose ID the caller has."""
        async with self.database.mutation_by(call) as tx:
            created = await service.create(tx, name=call.body.name)
        return OperationAnswer(body=shown(created))

    async def list_organizations(self, call: Call) -> OperationAnswer:
        """Return a page of all organizations with their money."""
        after = cursor(call.query.after)
        async with self.database.transaction() as tx:
            last = None if after is None else OrganizationId(after)
            found = await service.page(tx, after=last, limit=call.query.limit + 1)
            rows = await _with_money(tx, found, call)
        page = wire.page(operations.OrganizationList, rows, call.query.limit, lambda one: one)
        return OperationAnswer(body=page)

    async def retrieve_organization(self, call: Call) -> OperationAnswer:
        """Return one organization with its money."""
        async with self.database.transaction() as tx:
            found = await service.retrieve(tx, call.organization_id)
            (row,) = await _with_money(tx, [found], call)
        return OperationAnswer(body=row)

    async def suspend(self, call: Call) -> OperationAnswer:
        """Stop all keys of an organization."""
        return await self._set_status(call, OrganizationStatus.SUSPENDED)

    async def resume(self, call: Call) -> OperationAnswer:
        """End a suspension."""
        return await self._set_status(call, OrganizationStatus.ACTIVE)

    async def close(self, call: Call) -> OperationAnswer:
        """Close an organization for good."""
        return await self._set_status(call, OrganizationStatus.CLOSED)

    async def _set_status(self, call: Call, status: OrganizationStatus) -> OperationAnswer:
        async with self.database.mutation_by(call) as tx:
            return OperationAnswer(body=shown(await service.set_status(tx, status)))

    async def grant_check(self, call: Call) -> OperationAnswer:
        """Grant a check that models can require."""
        async with self.database.mutation_by(call) as tx:
            return OperationAnswer(body=_check(await service.grant_check(tx, call.body.check)))

    async def revoke_check(self, call: Call) -> OperationAnswer:
        """Revoke a check."""
        name = call.path["check"]
        async with self.database.mutation_by(call) as tx:
            await service.revoke_check(tx, name)
        return OperationAnswer(body=operations.CheckDeleted(id=name, deleted=True))

    async def list_checks(self, call: Call) -> OperationAnswer:
        """Return all checks of an organization."""
        async with self.database.transaction() as tx:
            found = await service.checks(tx, call.organization_id)
        return OperationAnswer(
            body=wire.page(operations.CheckList, found, service.CHECKS_MAX, _check)
        )

    async def grant_credit(self, call: Call) -> OperationAnswer:
        """Grant credit, or take some back by a correction."""
        grant_id = GrantId(time_ordered_uuid())
        amount = from_decimal_string(call.body.amount.value)
        assert amount is not None, "the contract's pattern is the rule of base.money"

        async def make(tx: Mutation) -> Grant:
            return await ledger.grant(
                tx,
                grant_id=grant_id,
                kind=GrantKind(call.body.kind),
                amount=amount,
                reason=call.body.reason,
            )

        async def find(tx: Mutation, made_id: UUID) -> Grant:
            return await ledger.retrieve_grant(tx, tx.organization_id, GrantId(made_id))

        creation = Creation(resource_id=grant_id, create=make, find=find, is_for_closed=True)
        created = await self.database.create_once(call, creation)
        body = money_wire.credit_entry(created.resource)
        return OperationAnswer(body=body, headers=created.headers)

    async def set_backend_alert(self, call: Call) -> OperationAnswer:
        """Choose whether a subscription is told about backends."""
        async with self.database.mutation_by(call) as tx:
            found = await alerts.retrieve(tx, tx.organization_id, subscription_of(call))
            thresholds = replace(found.thresholds, backend_down=call.body.backend_down)
            edited = replace(found, thresholds=thresholds)
            changed = await alerts.edit(tx, edited, by_operator=True)
        return OperationAnswer(body=alerts_wire.subscription(changed))

    async def list_sessions(self, call: Call) -> OperationAnswer:
        """Return the newest sessions of all organizations."""
        async with self.database.transaction() as tx:
            found = await sessions.newest(tx, now=call.now, limit=SESSIONS_LISTED_MAX + 1)
        page = wire.page(operations.ConsoleSessionList, found, SESSIONS_LISTED_MAX, _session)
        return OperationAnswer(body=page)

    async def end_session(self, call: Call) -> OperationAnswer:
        """End a session at once."""
        session_id = parse_uuid(call.path["session_id"])
        if session_id is None:
            raise SessionEnded
        async with self.database.transaction() as tx:
            found = await sessions.find(tx, SessionId(session_id), now=call.now)
        await sessions.end(self.database.pool, found, now=call.now, actor=OPERATOR)
        return OperationAnswer(body=_session(found))


def handlers(database: AdminDatabase) -> Mapping[str, Handler]:
    """Return the handler of each operation that only the operator has, by its ID."""
    own = OperatorHandlers(database=database)
    limits = RateLimitHandlers(database=database, owner=LimitOwner.OPERATOR)
    return {
        operations.CREATE_ORGANIZATION.id: own.create_organization,
        operations.LIST_ORGANIZATIONS.id: own.list_organizations,
        operations.RETRIEVE_ORGANIZATION.id: own.retrieve_organization,
        operations.SUSPEND_ORGANIZATION.id: own.suspend,
        operations.RESUME_ORGANIZATION.id: own.resume,
        operations.CLOSE_ORGANIZATION.id: own.close,
        operations.GRANT_CHECK.id: own.grant_check,
        operations.REVOKE_CHECK.id: own.revoke_check,
        operations.LIST_CHECKS.id: own.list_checks,
        operations.SET_OPERATOR_LIMIT.id: limits.set_,
        operations.CLEAR_OPERATOR_LIMIT.id: limits.clear,
        operations.GRANT_CREDIT.id: own.grant_credit,
        operations.SET_BACKEND_ALERT.id: own.set_backend_alert,
        operations.LIST_SESSIONS.id: own.list_sessions,
        operations.END_SESSION.id: own.end_session,
    }


def shown(organization: nouns.Organization) -> operations.OperatorsOrganization:
    """Return an organization as the operator sees it."""
    return operations.OperatorsOrganization(
        id=str(organization.id),
        name=organization.name,
        status=organization.status.value,
        created_at=unix_seconds(organization.created_at),
    )


async def _with_money(
    tx: Transaction, found: Sequence[nouns.Organization], call: Call
) -> list[operations.OrganizationWithMoney]:
    ids = [organization.id for organization in found]
    money = await overview.money_of(tx, ids, now=call.now)
    return [_money_row(organization, money[organization.id]) for organization in found]


def _money_row(
    found: nouns.Organization, money: OrganizationMoney
) -> operations.OrganizationWithMoney:
    credit, last = money.credit, money.last_charged_at
    return operations.OrganizationWithMoney(
        id=str(found.id),
        name=found.name,
        status=found.status.value,
        created_at=unix_seconds(found.created_at),
        available=money_wire.money(credit.available_pico_usd),
        granted=money_wire.money(credit.granted_pico_usd),
        spent=money_wire.money(credit.settled_pico_usd),
        spent_this_month=money_wire.money(money.month_pico_usd),
        held=money_wire.money(credit.reserved_pico_usd),
        unsettled=money_wire.money(credit.unsettled_pico_usd),
        unsettled_requests=credit.unsettled_requests,
        written_off=money_wire.money(credit.written_off_pico_usd),
        written_off_excess=money_wire.money(credit.written_off_excess_pico_usd),
        written_off_unknown=money_wire.money(credit.written_off_unknown_pico_usd),
        last_charged_at=None if last is None else unix_seconds(last),
    )


def _check(check: nouns.GrantedCheck) -> operations.GrantedCheck:
    return operations.GrantedCheck(id=check.name, granted_at=unix_seconds(check.granted_at))


def _session(found: ConsoleSession) -> operations.ConsoleSession:
    return operations.ConsoleSession(
        id=str(found.id),
        owner_id=str(found.owner_id),
        person_name=found.person_name,
        organizations=[str(each) for each in found.organization_ids],
        created_at=unix_seconds(found.created_at),
        expires_at=unix_seconds(found.expires_at),
    )
