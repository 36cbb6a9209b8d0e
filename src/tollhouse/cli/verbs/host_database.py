"""The database of handlers that the operator's own process calls."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar
from uuid import UUID

from tollhouse.api.admin_database import AdminDatabase, Created, Creation
from tollhouse.api.call import OperationCall
from tollhouse.base.clock import Clock
from tollhouse.base.ids import AdminKeyId, OrganizationId
from tollhouse.keys.types import Admin
from tollhouse.organizations import service as organizations
from tollhouse.storage.database import OPERATOR, Authority, Database, Mutation
from tollhouse.storage.sealing import Sealer

T = TypeVar("T")
Call = OperationCall[Admin, Any, Any]
OPERATOR_ID: Final = AdminKeyId(UUID(int=0))
"""Stands for the operator where a record names the key that created something."""


def operator_of(organization_id: OrganizationId) -> Admin:
    """Return the operator as a caller, with every permission in one organization."""
    return Admin(
        organization_id=organization_id,
        key_id=OPERATOR_ID,
        permissions=frozenset(),
        holds_all=True,
        expires_at=None,
    )


class OperatorDatabase(AdminDatabase):
    """Changes organizations in the operator's name. No key authorizes it, so none is read again."""

    def __init__(self, pool: Database, clock: Clock, sealer: Sealer, *, record_days: int) -> None:
        self.pool = pool
        self.sealer = sealer
        self._clock = clock
        self._record_days = record_days

    @asynccontextmanager
    async def mutation_by(self, call: Call) -> AsyncGenerator[Mutation]:
        """Begin a change of an organization."""
        authority = Authority(
            organization_id=call.organization_id, actor=OPERATOR, request_id=None, now=call.now
        )
        async with self.pool.mutation(authority) as tx:  # caller: the operator, on the host
            yield tx

    async def require_working(self, tx: Mutation, call: Call) -> Admin:
        """Return the operator."""
        del tx
        return call.caller

    async def create_once(self, call: Call, creation: Creation[T]) -> Created[T]:
        """Create as for a key, which does not work in a closed organization.

        Raises `OrganizationClosed`, unless the creation is for closed organizations too.
        """

        async def create(tx: Mutation) -> T:
            if not creation.is_for_closed:
                await organizations.require_open(tx)
            return await creation.create(tx)

        return await super().create_once(call, replace(creation, create=create))
