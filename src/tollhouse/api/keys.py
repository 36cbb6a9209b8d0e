"""The given operations on keys."""

from datetime import datetime
from functools import partial
from uuid import UUID

from tollhouse.api import parameters, wire
from tollhouse.api.call import Answer, Call
from tollhouse.api.idempotency import Created, Creation, create_once
from tollhouse.api.mutations import mutation
from tollhouse.base.ids import AdminKeyId, ProjectId, ProjectKeyId, time_ordered_uuid
from tollhouse.contract import keys as keys_wire
from tollhouse.contract.listing import AdminKeysQuery, NoQuery
from tollhouse.keys import rules, service
from tollhouse.keys.secrets import redact
from tollhouse.keys.types import Admin, KeyKind, KeyStatus, ProjectKey
from tollhouse.projects import service as projects
from tollhouse.storage.database import Mutation


async def create_project_key(
    call: Call[Admin, keys_wire.CreateProjectKey, NoQuery],
) -> Answer:
    """POST /v1/organization/projects/{project_id}/api_keys"""
    project_id = parameters.project_id(call)
    key_id = ProjectKeyId(time_ordered_uuid())
    secret = await service.mint(call.house.database, call.house.peppers, KeyKind.PROJECT)

    async def create(tx: Mutation) -> ProjectKey:
        project = await projects.require_active(tx, project_id)
        rules.check_expiry(call.caller, None)
        await service.require_room_for_project_key(tx, call.house.quotas.project_keys)
        return await service.create_project_key(
            tx, secret, key_id=key_id, project=(project.id, project.name), name=call.body.name
        )

    created = await create_once(
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
    return Answer(body=shown, headers=created.headers)


async def find_project_key(tx: Mutation, key_id: UUID, *, project_id: ProjectId) -> ProjectKey:
    """What an earlier creation or rotation made."""
    return await service.retrieve_project_key(
        tx, tx.organization_id, project_id, ProjectKeyId(key_id)
    )


def shown_value(created: Created[ProjectKey], *, now: datetime) -> str | None:
    """The secret, while the key is active and this is still its latest one."""
    key, secret = created.resource, created.secret
    is_current = secret is not None and redact(secret) == key.redacted_value
    return secret if is_current and rules.status(key, now=now) is KeyStatus.ACTIVE else None


async def list_admin_keys(call: Call[Admin, None, AdminKeysQuery]) -> Answer:
    """GET /v1/organization/admin_api_keys"""
    after = parameters.cursor(call.query.after)
    async with call.house.database.transaction() as tx:
        found = await service.page_of_admin_keys(
            tx,
            call.organization_id,
            after=None if after is None else AdminKeyId(after),
            limit=call.query.limit + 1,
            newest_first=call.query.order == "desc",
        )
    return Answer(body=wire.page(keys_wire.AdminKeyList, found, call.query.limit, wire.admin_key))


async def revoke_admin_key(call: Call[Admin, None, NoQuery]) -> Answer:
    """DELETE /v1/organization/admin_api_keys/{api_key_id}"""
    async with mutation(call) as tx:
        key = await service.revoke_admin_key(tx, parameters.admin_key_id(call))
    return Answer(body=keys_wire.AdminKeyDeleted(id=str(key.id), deleted=True))
