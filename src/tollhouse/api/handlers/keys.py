"""The operations on keys under `/v1`."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from tollhouse.api import parameters
from tollhouse.api.admin_database import AdminDatabase, Created, Creation
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import AdminKeyId, ProjectId, ProjectKeyId, time_ordered_uuid
from tollhouse.contract import keys as keys_wire
from tollhouse.contract.listing import AdminKeysQuery, NoQuery
from tollhouse.keys import rules, service
from tollhouse.keys.secrets import mint, redact
from tollhouse.keys.types import Admin, KeyKind, KeyStatus, ProjectKey
from tollhouse.projects import service as projects
from tollhouse.storage.database import Mutation


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyHandlers:
    """Handlers of the operations on keys under `/v1`."""

    database: AdminDatabase
    cell: str | None
    project_keys_max: int

    async def create_project_key(
        self,
        call: OperationCall[Admin, keys_wire.CreateProjectKey, NoQuery],
    ) -> OperationAnswer:
        """POST /v1/organization/projects/{project_id}/api_keys"""
        project_id = parameters.project_id(call)
        key_id = ProjectKeyId(time_ordered_uuid())
        secret = mint(KeyKind.PROJECT, cell=self.cell)

        async def create(tx: Mutation) -> ProjectKey:
            project = await projects.require_active(tx, project_id)
            rules.check_expiry(call.caller, None)
            await service.require_room_for_project_key(tx, self.project_keys_max)
            return await service.create_project_key(
                tx, secret, key_id=key_id, project=(project.id, project.name), name=call.body.name
            )

        created = await self.database.create_once(
            call,
            Creation(
                resource_id=key_id,
                create=create,
                find=partial(find_project_key, project_id=project_id),
                secret=secret.value,
            ),
        )
        shown = wire.project_key(
            created.resource, now=call.now, value=shown_value(created, now=call.now)
        )
        return OperationAnswer(body=shown, headers=created.headers)

    async def list_admin_keys(
        self, call: OperationCall[Admin, None, AdminKeysQuery]
    ) -> OperationAnswer:
        """GET /v1/organization/admin_api_keys"""
        after = parameters.cursor(call.query.after)
        async with self.database.transaction() as tx:
            found = await service.page_of_admin_keys(
                tx,
                call.organization_id,
                after=None if after is None else AdminKeyId(after),
                limit=call.query.limit + 1,
                newest_first=call.query.order == "desc",
            )
        return OperationAnswer(
            body=wire.page(keys_wire.AdminKeyList, found, call.query.limit, wire.admin_key)
        )

    async def revoke_admin_key(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """DELETE /v1/organization/admin_api_keys/{api_key_id}"""
        async with self.database.mutation_by(call) as tx:
            key = await service.revoke_admin_key(tx, parameters.admin_key_id(call))
        return OperationAnswer(body=keys_wire.AdminKeyDeleted(id=str(key.id), deleted=True))


async def find_project_key(tx: Mutation, key_id: UUID, *, project_id: ProjectId) -> ProjectKey:
    """Return the key that an earlier creation or rotation made."""
    return await service.retrieve_project_key(
        tx, tx.organization_id, project_id, ProjectKeyId(key_id)
    )


def shown_value(created: Created[ProjectKey], *, now: datetime) -> str | None:
    """Return the secret if the key is active and has no newer secret, else None."""
    key, secret = created.resource, created.secret
    is_current = secret is not None and redact(secret) == key.redacted_value
    return secret if is_current and rules.status(key, now=now) is KeyStatus.ACTIVE else None
