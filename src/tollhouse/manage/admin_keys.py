"""Admin keys: create one with at most the creator's permissions, read one, and narrow one."""

from dataclasses import dataclass
from uuid import UUID

from msgspec import UNSET

from tollhouse.api import parameters
from tollhouse.api.admin_database import AdminDatabase, Creation
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import AdminKeyId, time_ordered_uuid
from tollhouse.contract import keys as keys_wire
from tollhouse.contract.listing import NoQuery
from tollhouse.keys import rules, service
from tollhouse.keys.secrets import mint
from tollhouse.keys.types import Admin, AdminKey, KeyKind
from tollhouse.storage.database import Mutation


@dataclass(frozen=True, kw_only=True, slots=True)
class AdminKeyHandlers:
    """Handlers of the operations on Admin keys."""

    database: AdminDatabase
    cell: str | None
    admin_keys_max: int

    async def create(
        self, call: OperationCall[Admin, keys_wire.CreateAdminKey, NoQuery]
    ) -> OperationAnswer:
        """POST /manage/v1/organization/admin_api_keys"""
        asked = call.body.permissions
        wanted = None if asked is UNSET else tuple(sorted(set(asked)))
        rules.granted(call.caller, wanted)
        key_id = AdminKeyId(time_ordered_uuid())
        secret = mint(KeyKind.ADMIN, cell=self.cell)

        async def make(tx: Mutation) -> AdminKey:
            expires_at = wire.future_instant(call.body.expires_at, now=call.now)
            rules.check_expiry(call.caller, expires_at)
            # The caller may have been narrowed since its head was authenticated.
            creator = await self.database.require_working(tx, call)
            await service.require_room_for_admin_key(tx, self.admin_keys_max)
            return await service.create_admin_key(
                tx,
                secret,
                key_id=key_id,
                name=call.body.name,
                permissions=rules.granted(creator, wanted),
                expires_at=expires_at,
            )

        async def find(tx: Mutation, made_id: UUID) -> AdminKey:
            return await service.retrieve_admin_key(tx, tx.organization_id, AdminKeyId(made_id))

        created = await self.database.create_once(
            call, Creation(resource_id=key_id, create=make, find=find, secret=secret.value)
        )
        value = created.secret if rules.is_alive(created.resource, now=call.now) else None
        shown = wire.created_admin_key(created.resource, value=value)
        return OperationAnswer(body=shown, headers=created.headers)

    async def retrieve(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/admin_api_keys/{api_key_id}"""
        async with self.database.transaction() as tx:
            key = await service.retrieve_unrevoked_admin_key(
                tx, call.organization_id, parameters.admin_key_id(call)
            )
        return OperationAnswer(body=wire.admin_key(key))

    async def narrow(
        self, call: OperationCall[Admin, keys_wire.NarrowAdminKey, NoQuery]
    ) -> OperationAnswer:
        """POST /manage/v1/organization/admin_api_keys/{api_key_id}/narrow"""
        kept = tuple(sorted(set(call.body.permissions)))
        async with self.database.mutation_by(call) as tx:
            key = await service.narrow_admin_key(tx, parameters.admin_key_id(call), kept)
        return OperationAnswer(body=wire.admin_key(key))
