"""`tollhouse init`: from nothing to a deployment with its first organization, project and keys."""

import asyncio
from pathlib import Path
from typing import Final, Literal

import click
from msgspec import Struct
from rich.progress import Progress

from tollhouse import settings as configuration
from tollhouse.api import money_wire, wire
from tollhouse.base.ids import OrganizationId
from tollhouse.base.money import PICO_USD_PER_USD, PicoUsd
from tollhouse.cli import getting_started, output, progress
from tollhouse.cli.admin_key import create_admin_key
from tollhouse.cli.arguments import LISTED_MAX, NAME, example, json_option
from tollhouse.cli.configuration import ConfigurationExists, put_in_place, write_draft
from tollhouse.cli.credits import grant_credit
from tollhouse.cli.getting_started import GettingStarted
from tollhouse.cli.key import create_project_key
from tollhouse.cli.migrate import watched
from tollhouse.cli.org import Organization, create_organization
from tollhouse.cli.org import shown as shown_organization
from tollhouse.cli.project import create_project
from tollhouse.cli.provisioning import ensure_database, refuse_taken
from tollhouse.cli.session import Session, opened
from tollhouse.contract.credits import CreditEntry
from tollhouse.contract.keys import CreatedAdminKey, ManagedProjectKey
from tollhouse.contract.projects import Project
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import Grant, GrantKind
from tollhouse.organizations import service as organizations
from tollhouse.organizations import types as organization_nouns
from tollhouse.organizations.types import OrganizationStatus
from tollhouse.projects import service as projects
from tollhouse.projects import types as project_nouns
from tollhouse.settings import Settings
from tollhouse.storage import schema

DEFAULT_DATABASE_URL: Final = "postgresql://127.0.0.1:5432/tollhouse"
DATABASE_URL_VARIABLE: Final = "TOLLHOUSE_DATABASE__URL"
KEY_NAME: Final = "made by tollhouse init"
FIRST_CREDIT_PICO_USD: Final = PicoUsd(10 * PICO_USD_PER_USD)
"""So that the first call is not refused for want of credit."""


class Initialized(Struct, frozen=True, kw_only=True):
    """All that was made. The values of both keys are shown here and nowhere else."""

    object: Literal["deployment"] = "deployment"
    config: str
    database_created: bool
    revisions_applied: list[str]
    organization: Organization
    project: Project
    admin_key: CreatedAdminKey
    project_key: ManagedProjectKey
    credit: CreditEntry
    first_steps: GettingStarted


class Wanted(Struct, frozen=True, kw_only=True):
    """What the operator asked for."""

    settings_path: Path
    database_url: str
    public_url: str | None
    organization: str
    project: str
    force: bool


@click.command("init", epilog=example("tollhouse init --organization Example --project search"))
@click.option(
    "--database-url",
    default=DEFAULT_DATABASE_URL,
    envvar=DATABASE_URL_VARIABLE,
    show_envvar=True,
    help="PostgreSQL. The database is created if the server allows it.",
)
@click.option(
    "--public-url",
    metavar="URL",
    help="The address at which clients reach the gateway, if it is not this machine's own.",
)
@click.option("--organization", type=NAME, default="default", help="The first organization.")
@click.option("--project", type=NAME, default="default", help="Its first project.")
@click.option("--force", is_flag=True, help="Replace the configuration file, with its secrets.")
@json_option
@click.pass_obj
def command(
    settings_path: Path,
    *,
    database_url: str,
    public_url: str | None,
    organization: str,
    project: str,
    force: bool,
    as_json: bool,
) -> None:
    """Set up a new deployment.

    Writes the configuration with new secrets, prepares the database, and makes the first
    organization with a little sandbox credit, its project and keys. After a failure it can be
    run again and goes on.
    """
    if settings_path.exists() and not force:
        raise ConfigurationExists(settings_path)
    wanted = Wanted(
        settings_path=settings_path,
        database_url=database_url,
        public_url=public_url,
        organization=organization,
        project=project,
        force=force,
    )
    with progress.bars(as_json=as_json) as bars:
        made = asyncio.run(_initialize(wanted, bars))
    if as_json:
        output.show(made, as_json=True)
    else:
        _tell(made)


async def _initialize(wanted: Wanted, bars: Progress) -> Initialized:
    is_created = await ensure_database(wanted.database_url)
    draft = write_draft(
        wanted.settings_path, database_url=wanted.database_url, public_url=wanted.public_url
    )
    settings = _load(draft, wanted.database_url)
    async with opened(settings) as operator:
        await refuse_taken(operator)
        applied = await schema.migrate(wanted.database_url, show=watched(bars))
        owner = await _organization(operator, wanted.organization)
        project = await _project(operator, owner.id, wanted.project)
        credit = await _credit(operator, owner.id)
        admin_key, admin_secret = await create_admin_key(operator, owner.id, KEY_NAME)
        key, secret = await create_project_key(operator, owner.id, project.id, KEY_NAME)
    put_in_place(wanted.settings_path, force=wanted.force)
    return Initialized(
        config=str(wanted.settings_path.absolute()),
        database_created=is_created,
        revisions_applied=applied,
        organization=shown_organization(owner),
        project=wire.project(project),
        admin_key=wire.created_admin_key(admin_key, value=admin_secret.value),
        project_key=wire.managed_project_key(key, now=key.created_at, value=secret.value),
        credit=money_wire.credit_entry(credit),
        first_steps=getting_started.first_steps(wanted.settings_path, settings.server),
    )


def _load(draft: Path, database_url: str) -> Settings:
    settings = configuration.load(draft)
    if settings.database.url != database_url:
        message = f"{DATABASE_URL_VARIABLE} names another database than --database-url."
        raise click.UsageError(message)
    return settings


async def _organization(operator: Session, name: str) -> organization_nouns.Organization:
    """The one that an interrupted `init` has made, or a new one."""
    async with operator.database.transaction() as tx:
        found = await organizations.page(tx, after=None, limit=LISTED_MAX)
    for organization in found:
        if organization.name == name and organization.status is OrganizationStatus.ACTIVE:
            return organization
    return await create_organization(operator, name)


async def _project(
    operator: Session, organization_id: OrganizationId, name: str
) -> project_nouns.Project:
    """The one that an interrupted `init` has made, or a new one."""
    async with operator.database.transaction() as tx:
        found = await projects.page(tx, organization_id, after=None, limit=LISTED_MAX)
    for project in found:
        if project.name == name and project.archived_at is None:
            return project
    return await create_project(operator, organization_id, name)


async def _credit(operator: Session, organization_id: OrganizationId) -> Grant:
    """What an interrupted `init` has granted, or a new grant."""
    async with operator.database.transaction() as tx:
        found = await ledger.page_grants(tx, organization_id, after=None, limit=1)
    if found:
        return found[0]
    return await grant_credit(
        operator,
        organization_id,
        kind=GrantKind.SANDBOX,
        amount=FIRST_CREDIT_PICO_USD,
        reason=KEY_NAME,
    )


def _tell(made: Initialized) -> None:
    output.say(
        getting_started.TEXT.format(
            config=made.config,
            steps=made.first_steps,
            admin_key=made.admin_key.value,
            project_key=made.project_key.value,
            credit=made.credit.amount.value,
        ),
        as_json=False,
    )
