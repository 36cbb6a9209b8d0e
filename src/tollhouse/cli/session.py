"""A verb's session: settings, one connection, and the operator's authority."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import click

from tollhouse import settings as configuration
from tollhouse.base.clock import Clock, SystemClock
from tollhouse.base.errors import GatewayError, Kind
from tollhouse.base.ids import OrganizationId
from tollhouse.catalog import rules
from tollhouse.cli.connecting import connected
from tollhouse.inference.courts import judge_config
from tollhouse.judging.fitting import objection_of
from tollhouse.keys import service as keys
from tollhouse.keys.secrets import Peppers
from tollhouse.keys.types import KeyKind, NewSecret
from tollhouse.organizations import service as organizations
from tollhouse.organizations.types import Organization
from tollhouse.policies.sets import Objection
from tollhouse.settings import Settings
from tollhouse.storage.database import OPERATOR, Authority, Database, Mutation
from tollhouse.storage.master_secrets import MasterSecrets
from tollhouse.storage.revisions import refuse_other_schema

T = TypeVar("T")


class NoOrganization(GatewayError):
    """There is nothing to act on yet."""

    kind = Kind.NOT_FOUND
    code = "organization_not_found"

    def __init__(self) -> None:
        super().__init__("There is no organization yet. `tollhouse org create NAME` makes one.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """What a verb acts with."""

    settings: Settings
    database: Database
    peppers: Peppers
    masters: MasterSecrets
    clock: Clock

    def authority(self, organization_id: OrganizationId) -> Authority:
        """Act on one organization in the operator's name, now."""
        return Authority(
            organization_id=organization_id,
            actor=OPERATOR,
            request_id=None,
            now=self.clock.now(),
        )

    async def organization(self, organization_id: UUID | None) -> Organization:
        """The one that was named, or the only one."""
        async with self.database.transaction() as tx:
            if organization_id is not None:
                return await organizations.retrieve(tx, OrganizationId(organization_id))
            found = await organizations.page(tx, after=None, limit=2)
        if not found:
            raise NoOrganization
        if len(found) > 1:
            message = (
                "There are several organizations, so this needs --org. See `tollhouse org list`."
            )
            raise click.UsageError(message)
        return found[0]

    @asynccontextmanager
    async def creation(self, organization_id: OrganizationId) -> AsyncGenerator[Mutation]:
        """Add something to an organization, unless it is closed."""
        async with self.database.mutation(self.authority(organization_id)) as tx:
            await organizations.require_open(tx)
            yield tx

    def objection(self) -> Objection:
        """What the judge of the configuration has to say against policies."""
        settings = self.settings
        catalog = rules.parse(settings.backends, settings.models, settings.judge)
        return objection_of(judge_config(catalog))

    async def mint(self, kind: KeyKind) -> NewSecret:
        """A secret that the workers will know, or `PepperMismatch` when theirs are others."""
        return await keys.mint_for_operator(self.database, self.peppers, kind)


def run(settings_path: Path, work: Callable[[Session], Awaitable[T]]) -> T:
    """Do a verb's work in a session on the database that the configuration names."""

    async def in_session() -> T:
        async with opened(configuration.load(settings_path)) as session:
            await refuse_other_schema(session.database)
            return await work(session)

    return asyncio.run(in_session())


@asynccontextmanager
async def opened(settings: Settings) -> AsyncGenerator[Session, None]:
    """A session on whatever schema the database has."""
    async with connected(settings.database) as database:
        yield Session(
            settings=settings,
            database=database,
            peppers=Peppers(settings.secrets.pepper_bytes()),
            masters=MasterSecrets(settings.secrets.master_bytes()),
            clock=SystemClock(),
        )
