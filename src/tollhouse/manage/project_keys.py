"""Project keys: list, read, create with all options, rotate, suspend, resume, revoke."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from msgspec import UNSET

from tollhouse.api import parameters
from tollhouse.api.admin_database import AdminDatabase, Creation
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.handlers.keys import find_project_key, shown_value
from tollhouse.api.wire import money as money_wire
from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import ProjectId, ProjectKeyId, time_ordered_uuid
from tollhouse.base.permissions import Permission
from tollhouse.contract import keys as keys_wire
from tollhouse.contract.listing import ListQuery, NoQuery
from tollhouse.keys import rules, service
from tollhouse.keys.errors import InsufficientPermissions
from tollhouse.keys.secrets import mint
from tollhouse.keys.types import Admin, KeyKind, ProjectKey
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import CapId, CapScope, Period
from tollhouse.projects import service as projects
from tollhouse.storage.database import Mutation


@dataclass(frozen=True, kw_only=True, slots=True)
class ProjectKeyHandlers:
    """Handlers of the operations on project keys."""

    database: AdminDatabase
    cell: str | None
    project_keys_max: int

    async def page(self, call: OperationCall[Admin, None, ListQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/projects/{project_id}/api_keys"""
        project_id = parameters.project_id(call)
        after = parameters.cursor(call.query.after)
        async with self.database.transaction() as tx:
            await projects.retrieve(tx, call.organization_id, project_id)
            found = await service.page_of_project_keys(
                tx,
                call.organization_id,
                project_id,
                after=None if after is None else ProjectKeyId(after),
                limit=call.query.limit + 1,
            )
        show = partial(wire.managed_project_key, now=call.now)
        return OperationAnswer(
            body=wire.page(keys_wire.ProjectKeyList, found, call.query.limit, show)
        )

    async def retrieve(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/projects/{project_id}/api_keys/{api_key_id}"""
        project_id = parameters.project_id(call)
        async with self.database.transaction() as tx:
            await projects.retrieve(tx, call.organization_id, project_id)
            key = await service.retrieve_project_key(
                tx, call.organization_id, project_id, parameters.project_key_id(call)
            )
        return OperationAnswer(body=wire.managed_project_key(key, now=call.now))

    async def create(
        self,
        call: OperationCall[Admin, keys_wire.CreateManagedProjectKey, NoQuery],
    ) -> OperationAnswer:
        """POST /manage/v1/organization/projects/{project_id}/api_keys"""
        project_id = parameters.project_id(call)
        key_id = ProjectKeyId(time_ordered_uuid())
        secret = mint(KeyKind.PROJECT, cell=self.cell)

        async def make(tx: Mutation) -> ProjectKey:
            project = await projects.require_active(tx, project_id)
            expires_at = wire.future_instant(call.body.expires_at, now=call.now)
            rules.check_expiry(call.caller, expires_at)
            await service.require_room_for_project_key(tx, self.project_keys_max)
            key = await service.create_project_key(
                tx,
                secret,
                key_id=key_id,
                project=(project.id, project.name),
                name=call.body.name,
                permissions=(
                    rules.DEFAULT_CUSTOMER_PERMISSIONS
                    if call.body.permissions is UNSET
                    else tuple(sorted(set(call.body.permissions)))
                ),
                allowed_models=tuple(call.body.allowed_models)
                if call.body.allowed_models
                else None,
                expires_at=expires_at,
            )
            if call.body.spending_limit:
                await self._cap(tx, call, key_id, call.body.spending_limit)
            return key

        return await self._made(
            call,
            Creation(
                resource_id=key_id,
                create=make,
                find=partial(find_project_key, project_id=project_id),
                secret=secret.value,
            ),
        )

    async def _cap(
        self,
        tx: Mutation,
        call: OperationCall[Admin, Any, Any],
        key_id: ProjectKeyId,
        wanted: keys_wire.KeySpendingLimit,
    ) -> None:
        """Cap a new key, if its creator's present permissions allow that."""
        creator = await self.database.require_working(tx, call)
        if not creator.holds(Permission.SPENDING_LIMITS_WRITE):
            raise InsufficientPermissions(missing=Permission.SPENDING_LIMITS_WRITE)
        async with tx.another() as change:
            await ledger.set_cap(
                change,
                CapId(scope=CapScope.KEY, scope_id=key_id, period=Period(wanted.period)),
                limit_pico_usd=money_wire.amount(wanted.limit),
                alert_percent=wanted.alert_percent,
            )

    async def rotate(
        self,
        call: OperationCall[Admin, keys_wire.RotateProjectKey, NoQuery],
    ) -> OperationAnswer:
        """POST /manage/v1/organization/projects/{project_id}/api_keys/{api_key_id}/rotate"""
        project_id, key_id = parameters.project_id(call), parameters.project_key_id(call)
        secret = mint(KeyKind.PROJECT, cell=self.cell)

        async def make(tx: Mutation) -> ProjectKey:
            await projects.require_active(tx, project_id)
            return await service.rotate_project_key(
                tx,
                secret,
                project_id=project_id,
                key_id=key_id,
                overlap=timedelta(seconds=call.body.overlap_seconds),
                rotator=call.caller,
            )

        return await self._made(
            call,
            Creation(
                resource_id=key_id,
                create=make,
                find=partial(find_project_key, project_id=project_id),
                secret=secret.value,
            ),
        )

    async def _made(
        self,
        call: OperationCall[Admin, keys_wire.CreateManagedProjectKey, NoQuery]
        | OperationCall[Admin, keys_wire.RotateProjectKey, NoQuery],
        creation: Creation[ProjectKey],
    ) -> OperationAnswer:
        created = await self.database.create_once(call, creation)
        shown = wire.managed_project_key(
            created.resource, now=call.now, value=shown_value(created, now=call.now)
        )
        return OperationAnswer(body=shown, headers=created.headers)

    async def end_previous_value(
        self, call: OperationCall[Admin, None, NoQuery]
    ) -> OperationAnswer:
        """POST /manage/v1/organization/projects/{project_id}/api_keys/{api_key_id}/end_previous"""
        return await self._changed(call, service.end_previous_value)

    async def suspend(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """POST /manage/v1/organization/projects/{project_id}/api_keys/{api_key_id}/suspend"""
        return await self._changed(call, service.suspend_project_key)

    async def resume(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """POST /manage/v1/organization/projects/{project_id}/api_keys/{api_key_id}/resume"""
        return await self._changed(call, service.resume_project_key)

    async def revoke(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """POST /manage/v1/organization/projects/{project_id}/api_keys/{api_key_id}/revoke"""
        return await self._changed(call, service.revoke_project_key)

    async def _changed(
        self,
        call: OperationCall[Admin, None, NoQuery],
        verb: Callable[[Mutation, ProjectId, ProjectKeyId], Awaitable[ProjectKey]],
    ) -> OperationAnswer:
        project_id, key_id = parameters.project_id(call), parameters.project_key_id(call)
        async with self.database.mutation_by(call) as tx:
            await projects.retrieve(tx, call.organization_id, project_id)
            key = await verb(tx, project_id, key_id)
        return OperationAnswer(body=wire.managed_project_key(key, now=call.now))
