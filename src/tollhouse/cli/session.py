"""A command's session: settings, one database connection and the operator's authority."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import click

from tollhouse import settings as configuration
from tollhouse.base.clock import Clock, DatabaseClock
from tollhouse.base.errors import GatewayError, Kind
from tollhouse.base.ids import ID_CLOCK, OrganizationId
from tollhouse.cli.connecting import connected
from tollhouse.keys import secrets
from tollhouse.keys.types import KeyKind, NewSecret
from tollhouse.organizations import service as organizations
from tollhouse.organizations.types import Organization
from tollhouse.settings import Settings
from tollhouse.storage.database import OPERATOR, Authority, Database, Mutation, Transaction
from tollhouse.storage.master_secrets import MasterSecrets
from tollhouse.storage.revisions import refuse_other_schema

T = TypeVar("T")


class NoOrganization(GatewayError):
    """The deployment has no organization."""

    kind = Kind.NOT_FOUND
    code = "organization_not_found"
    template = "There is no organization yet. `tollhouse org create NAME` creates one."


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """The settings, secrets and database of a running command."""

    settings: Settings
    database: Database
    masters: MasterSecrets
    clock: Clock

    def authority(self, organization_id: OrganizationId) -> Authority:
        """Return the operator's authority over one organization, now."""
        return Authority(
            organization_id=organization_id,
            actor=OPERATOR,
            request_id=None,
            now=self.clock.now(),
        )

    async def organization(self, organization_id: UUID | None) -> Organization:
        """Return the organization of this ID, or without an ID the only one.

        Raises `NoOrganization` if there is none, `UsageError` if there are several.
        """
        async with self.database.transaction() as tx:
            if organization_id is not None:
                return await organizations.retrieve(tx, OrganizationId(organization_id))
            found = await organizations.page(tx, after=None, limit=2)
        if not found:
            raise NoOrganization
        if len(found) > 1:
            message = "There are several organizations. Give --org; `tollhouse org list` lists IDs."
            raise click.UsageError(message)
        return found[0]

    @asynccontextmanager
    async def creation(self, organization_id: OrganizationId) -> AsyncGenerator[Mutation]:
        """Begin a mutation that adds to an organization. Raises if the organization is closed."""
        authority = self.authority(organization_id)
        async with self.database.mutation(authority) as tx:  # caller: the operator
            await organizations.require_open(tx)
            yield tx

    def mint(self, kind: KeyKind) -> NewSecret:
        """Return a new key value."""
        return secrets.mint(kind, cell=self.settings.keys.cell)


def run(settings_path: Path, work: Callable[[Session], Awaitable[T]]) -> T:
    """Run `work` in a session. Raises `SchemaMismatch` if the schema is another version's."""
    return asyncio.run(in_session(settings_path, work))


async def in_session(settings_path: Path, work: Callable[[Session], Awaitable[T]]) -> T:
    """Run `work` in a session. Raises `SchemaMismatch` if the schema is another version's."""
    async with opened(configuration.load(settings_path)) as session:
        await refuse_other_schema(session.database)
        return await work(session)


def read(
    settings_path: Path,
    organization: UUID | None,
    query: Callable[[Transaction, OrganizationId], Awaitable[T]],
) -> T:
    """Run `query` on one organization in a transaction of its own session."""

    async def work(operator: Session) -> T:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            return await query(tx, owner.id)

    return run(settings_path, work)


def change(
    settings_path: Path,
    organization: UUID | None,
    mutate: Callable[[Mutation], Awaitable[T]],
) -> T:
    """Run `mutate` on one organization in a mutation of its own session."""

    async def work(operator: Session) -> T:
        owner = await operator.organization(organization)
        async with operator.database.mutation(operator.authority(owner.id)) as tx:
            return await mutate(tx)

    return run(settings_path, work)


@asynccontextmanager
async def opened(settings: Settings) -> AsyncGenerator[Session, None]:
    """Open a session without checking the schema."""
    async with connected(settings.database) as database:
        clock = await _database_clock(database)
        yield Session(
            settings=settings,
            database=database,
            masters=MasterSecrets(settings.secrets.master_bytes()),
            clock=clock,
        )


async def _database_clock(database: Database) -> DatabaseClock:
    """Return the database's clock, and let new IDs follow it: the operator's may be wrong."""
    clock = DatabaseClock()
    asked_seconds = clock.monotonic_seconds()
    async with database.transaction() as tx:
        database_now = await tx.fetch_value("SELECT clock_timestamp()")
    clock.correct(database_now, asked_seconds=asked_seconds)
    ID_CLOCK.set(clock.now())
    return clock
