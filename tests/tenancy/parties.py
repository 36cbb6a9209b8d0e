"""A tenant and a stranger in one database, and copies of it."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

import asyncpg

from tests.ledger.direct_ledger import open_ledger
from tests.support import databases
from tests.support.gateway import settings_for
from tests.support.organization_fixture import new_organization_fixture
from tests.tenancy.arguments import Arguments
from tests.tenancy.observing import Observer, Outcome, tenant_columns
from tests.tenancy.scoped_functions import ScopedFunction
from tests.tenancy.tenant import new_tenant
from tollhouse.app import connect
from tollhouse.base.ids import OrganizationId
from tollhouse.storage.database import OPERATOR, Authority, Database


@dataclass(frozen=True)
class Places:
    """A database with the tenant and the stranger, and one as if the tenant had never been."""

    together: Observer
    alone: Observer


@dataclass(frozen=True, kw_only=True)
class Parties:
    """Whom functions are called for, and where.

    Functions that take a transaction are rolled back; those that take a database have one of their
    own, so that no other function finds what they wrote.
    """

    tenant_id: OrganizationId
    stranger_id: OrganizationId
    arguments: Arguments
    rolled_back: Places
    written: Places

    def places(self, function: ScopedFunction) -> Places:
        return self.written if function.first is Database else self.rolled_back

    async def strangers(self, observer: Observer, function: ScopedFunction) -> list[Outcome]:
        """Call a function in the stranger's name with all that the tenant has."""
        authority = _authority(self.stranger_id)
        return [
            await observer.outcome(function, arguments, authority)
            for arguments in self.arguments.of(function, self.stranger_id)
        ]

    async def is_of_use(self, function: ScopedFunction, strangers: list[Outcome]) -> bool:
        """Whether one of these calls has another outcome in the tenant's own name."""
        observer = self.places(function).together
        authority = _authority(self.tenant_id)
        calls = self.arguments.of(function, self.tenant_id)
        for arguments, theirs in zip(calls, strangers, strict=True):
            own = await observer.outcome(function, arguments, authority)
            if own.touched or own.told != theirs.told:
                return True
        return False


def _authority(organization_id: OrganizationId) -> Authority:
    return Authority(
        organization_id=organization_id, actor=OPERATOR, request_id=None, now=datetime.now(UTC)
    )


@asynccontextmanager
async def meeting(template: str) -> AsyncGenerator[Parties]:
    async with AsyncExitStack() as opened:
        url = await opened.enter_async_context(databases.temporary(template=template))
        tenant_id, stranger_id, arguments, columns = await _populated(url)
        name = urlsplit(url).path.removeprefix("/")
        copies = [
            await opened.enter_async_context(databases.temporary(template=name)) for _ in range(3)
        ]
        together, alone = (url, copies[0]), copies[1:]
        for place in alone:
            await _remove(place, tenant_id, columns)
        observers: list[Observer] = []
        for place in (*together, *alone):
            database = await connect(settings_for(place))
            opened.push_async_callback(database.close)
            observers.append(Observer(database, tenant_id, columns))
        yield Parties(
            tenant_id=tenant_id,
            stranger_id=stranger_id,
            arguments=arguments,
            rolled_back=Places(observers[0], observers[2]),
            written=Places(observers[1], observers[3]),
        )


async def _populated(
    url: str,
) -> tuple[OrganizationId, OrganizationId, Arguments, dict[str, str]]:
    settings = settings_for(url)
    database = await connect(settings)
    try:
        stranger = await new_organization_fixture(database, "a stranger")
        await open_ledger(stranger, url)
        org = await new_organization_fixture(database, "a tenant")
        tenant = await new_tenant(org, url)
    finally:
        await database.close()
    connection = await asyncpg.connect(url)
    try:
        # What `ledger verify` says of the tenant must be something.
        await connection.execute(
            "UPDATE accounts SET written_off_excess_pico = 1 WHERE organization_id = $1",
            org.organization_id,
        )
        columns = await tenant_columns(connection)
    finally:
        await connection.close()
    return org.organization_id, stranger.organization_id, Arguments(tenant), columns


async def _remove(url: str, tenant_id: OrganizationId, columns: dict[str, str]) -> None:
    """Make a database as if the tenant had never been in it."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET session_replication_role = replica")
        for table, column in columns.items():
            await connection.execute(
                f"DELETE FROM {table} WHERE {column} = $1",  # noqa: S608 - names of our tables
                tenant_id,
            )
    finally:
        await connection.close()
