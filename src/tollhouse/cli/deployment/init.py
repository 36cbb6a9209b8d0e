"""`tollhouse init`: set up a deployment with its first organization, project and keys."""

import asyncio
import shlex
from pathlib import Path
from typing import Final, Literal

import click
from msgspec import Struct
from rich.progress import Progress

from tollhouse import settings as configuration
from tollhouse.api.wire import money as money_wire
from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import OrganizationId
from tollhouse.base.money import PICO_USD_PER_USD, PicoUsd
from tollhouse.cli import output
from tollhouse.cli.arguments import LISTED_MAX, NAME, example, json_option
from tollhouse.cli.deployment.configuration_file import (
    ConfigurationExists,
    local_url,
    put_in_place,
    write_draft,
)
from tollhouse.cli.deployment.migrate import progress_listener
from tollhouse.cli.deployment.provisioning import claim, ensure_database, refuse_taken
from tollhouse.cli.seeds import (
    create_admin_key,
    create_organization,
    create_project,
    create_project_key,
    grant_credit,
)
from tollhouse.cli.session import Session, opened
from tollhouse.contract.credits import CreditEntry
from tollhouse.contract.keys import CreatedAdminKey, ManagedProjectKey
from tollhouse.contract.operator_operations import OperatorsOrganization
from tollhouse.contract.projects import Project
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import Grant, GrantKind
from tollhouse.manage.operator import shown as shown_organization
from tollhouse.organizations import service as organizations
from tollhouse.organizations import types as organization_nouns
from tollhouse.organizations.types import OrganizationStatus
from tollhouse.projects import service as projects
from tollhouse.projects import types as project_nouns
from tollhouse.settings import DEFAULT_CONFIG_PATH, ServerSettings, Settings
from tollhouse.storage.migrate import migrate

DEFAULT_DATABASE_URL: Final = "postgresql://127.0.0.1:5432/tollhouse"
DATABASE_URL_VARIABLE: Final = "TOLLHOUSE_DATABASE__URL"
KEY_NAME: Final = "made by tollhouse init"
FIRST_CREDIT_PICO_USD: Final = PicoUsd(10 * PICO_USD_PER_USD)
"""Enough for the first calls."""


NEXT_STEPS: Final = """
Tollhouse is set up. {backup}

These keys are shown only now:

export TOLLHOUSE_URL={steps.base_url}
export TOLLHOUSE_ADMIN_KEY={admin_key}
export TOLLHOUSE_PROJECT_KEY={project_key}

The organization has {credit} USD of sandbox credit. `tollhouse credits grant` adds more.

Start the server:

{steps.serve}

Try it in another terminal, after you pasted the three lines above:

{steps.list_admin_keys}
{steps.list_projects}

With the OpenAI SDK:

OpenAI(base_url="{steps.openai_base_url}", api_key=os.environ["TOLLHOUSE_PROJECT_KEY"])
"""

NEW_CONFIGURATION: Final = (
    "Its configuration is {config}. Back it up: its secrets are stored nowhere else."
)
EXISTING_CONFIGURATION: Final = "Back up the secrets of its configuration: all keys need them."

AUTHORIZED_CURL: Final = (
    'curl --fail-with-body --header "Authorization: Bearer $TOLLHOUSE_ADMIN_KEY" "$TOLLHOUSE_URL{}"'
)


class GettingStarted(Struct, frozen=True, kw_only=True):
    """Commands that read the keys from environment variables."""

    base_url: str
    serve: str
    list_admin_keys: str
    list_projects: str
    openai_base_url: str


class Initialized(Struct, frozen=True, kw_only=True):
    """A new deployment. The values of both keys are shown only here.

    `config` is None if no file was written.
    """

    object: Literal["deployment"] = "deployment"
    config: str | None
    database_created: bool
    revisions_applied: list[str]
    organization: OperatorsOrganization
    project: Project
    admin_key: CreatedAdminKey
    project_key: ManagedProjectKey
    credit: CreditEntry
    first_steps: GettingStarted


class Wanted(Struct, frozen=True, kw_only=True):
    """The options of `tollhouse init`."""

    settings_path: Path
    database_url: str
    public_url: str | None
    organization: str
    project: str
    force: bool
    uses_existing: bool


@click.command("init", epilog=example("tollhouse init --organization Example --project search"))
@click.option(
    "--database-url",
    default=DEFAULT_DATABASE_URL,
    envvar=DATABASE_URL_VARIABLE,
    show_envvar=True,
    help="PostgreSQL. The database is created if it is missing and the role may create it.",
)
@click.option(
    "--public-url",
    metavar="URL",
    help="The address at which clients reach the gateway. This machine's, when left out.",
)
@click.option("--organization", type=NAME, default="default", help="The first organization.")
@click.option("--project", type=NAME, default="default", help="Its first project.")
@click.option("--force", is_flag=True, help="Replace the configuration file, with its secrets.")
@click.option(
    "--existing-config",
    "uses_existing",
    is_flag=True,
    help="Use the configuration that the file and the environment have, and write none.",
)
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
    uses_existing: bool,
    as_json: bool,
) -> None:
    """Set up a new deployment.

    Writes the configuration with new secrets, prepares the database, and creates the first
    organization with 10 USD of sandbox credit, a project and keys. After a failure, run it again
    to continue.
    """
    if uses_existing:
        database_url = configuration.load(settings_path).database.url
    elif settings_path.exists() and not force:
        raise ConfigurationExists(path=settings_path)
    wanted = Wanted(
        settings_path=settings_path,
        database_url=database_url,
        public_url=public_url,
        organization=organization,
        project=project,
        force=force,
        uses_existing=uses_existing,
    )
    with output.progress_bars(as_json=as_json) as bars:
        made = asyncio.run(_initialize(wanted, bars))
    if as_json:
        output.show(made, as_json=True)
    else:
        _print(made)


async def _initialize(wanted: Wanted, bars: Progress) -> Initialized:
    is_created = await ensure_database(wanted.database_url)
    settings = _settings(wanted)
    async with opened(settings) as operator:
        await refuse_taken(operator)
        applied = await migrate(wanted.database_url, show=progress_listener(bars))
        await claim(operator)
        owner = await _ensure_organization(operator, wanted.organization)
        project = await _ensure_project(operator, owner.id, wanted.project)
        credit = await _ensure_credit(operator, owner.id)
        admin_key, admin_secret = await create_admin_key(operator, owner.id, KEY_NAME)
        key, secret = await create_project_key(operator, owner.id, project.id, KEY_NAME)
    if not wanted.uses_existing:
        put_in_place(wanted.settings_path, force=wanted.force)
    return Initialized(
        config=None if wanted.uses_existing else str(wanted.settings_path.absolute()),
        database_created=is_created,
        revisions_applied=applied,
        organization=shown_organization(owner),
        project=wire.project(project),
        admin_key=wire.created_admin_key(admin_key, value=admin_secret.value),
        project_key=wire.managed_project_key(key, now=key.created_at, value=secret.value),
        credit=money_wire.credit_entry(credit),
        first_steps=_first_steps(wanted.settings_path, settings.server),
    )


def _settings(wanted: Wanted) -> Settings:
    """Return the existing settings, or those of a draft with new secrets."""
    if wanted.uses_existing:
        return configuration.load(wanted.settings_path)
    draft = write_draft(
        wanted.settings_path, database_url=wanted.database_url, public_url=wanted.public_url
    )
    settings = configuration.load(draft)
    if settings.database.url != wanted.database_url:
        message = f"{DATABASE_URL_VARIABLE} and --database-url differ. Give only one of them."
        raise click.UsageError(message)
    return settings


async def _ensure_organization(operator: Session, name: str) -> organization_nouns.Organization:
    """Return the one that an interrupted `init` created, or create it."""
    async with operator.database.transaction() as tx:
        found = await organizations.page(tx, after=None, limit=LISTED_MAX)
    for organization in found:
        if organization.name == name and organization.status is OrganizationStatus.ACTIVE:
            return organization
    return await create_organization(operator, name)


async def _ensure_project(
    operator: Session, organization_id: OrganizationId, name: str
) -> project_nouns.Project:
    """Return the one that an interrupted `init` created, or create it."""
    async with operator.database.transaction() as tx:
        found = await projects.page(tx, organization_id, after=None, limit=LISTED_MAX)
    for project in found:
        if project.name == name and project.archived_at is None:
            return project
    return await create_project(operator, organization_id, name)


async def _ensure_credit(operator: Session, organization_id: OrganizationId) -> Grant:
    """Return the grant of an interrupted `init`, or grant the first credit."""
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


def _first_steps(settings_path: Path, server: ServerSettings) -> GettingStarted:
    """Return the commands for this configuration file and server address."""
    base_url = local_url(server)
    is_default = settings_path == DEFAULT_CONFIG_PATH
    config = "" if is_default else f" --config {shlex.quote(str(settings_path))}"
    return GettingStarted(
        base_url=base_url,
        serve=f"tollhouse{config} serve",
        list_admin_keys=AUTHORIZED_CURL.format("/v1/organization/admin_api_keys"),
        list_projects=AUTHORIZED_CURL.format("/manage/v1/organization/projects"),
        openai_base_url=f"{base_url}/v1",
    )


def _print(made: Initialized) -> None:
    backup = NEW_CONFIGURATION if made.config is not None else EXISTING_CONFIGURATION
    output.say(
        NEXT_STEPS.format(
            backup=backup.format(config=made.config),
            steps=made.first_steps,
            admin_key=made.admin_key.value,
            project_key=made.project_key.value,
            credit=made.credit.amount.value,
        ),
        as_json=False,
    )
