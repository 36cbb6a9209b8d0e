"""`tollhouse project`: the projects of an organization, and the models that they may use."""

from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import click
from msgspec import Struct

from tollhouse import settings as configuration
from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import OrganizationId, ProjectId, time_ordered_uuid
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    IDENTIFIER,
    LISTED_MAX,
    MODEL,
    NAME,
    example,
    json_option,
    organization_option,
    yes_option,
)
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import ALLOWED_MODELS_MAX
from tollhouse.contract.projects import ProjectList
from tollhouse.projects import service
from tollhouse.projects.types import Project

COLUMNS: Final = ("id", "name", "status", "created_at", "archived_at")


class ProjectModels(Struct, frozen=True, kw_only=True):
    """The models of a project; None allows all. The configuration lacks `unknown_models`."""

    id: str
    object: Literal["organization.project.models"] = "organization.project.models"
    allowed_models: list[str] | None
    unknown_models: list[str]


async def create_project(operator: Session, organization_id: OrganizationId, name: str) -> Project:
    """Create a project under a new ID."""
    async with operator.creation(organization_id) as tx:
        return await service.create(tx, project_id=ProjectId(time_ordered_uuid()), name=name)


@click.group("project", epilog=example("tollhouse project list"))
def command() -> None:
    """Create, list, rename and archive projects, and choose their models."""


@command.command(epilog=example("tollhouse project create search"))
@click.argument("name", type=NAME)
@organization_option
@json_option
@click.pass_obj
def create(settings_path: Path, *, name: str, organization: UUID | None, as_json: bool) -> None:
    """Create a project. Names need not be unique."""

    async def work(operator: Session) -> Project:
        owner = await operator.organization(organization)
        return await create_project(operator, owner.id, name)

    output.show(wire.project(session.run(settings_path, work)), as_json=as_json)


@command.command("list", epilog=example("tollhouse project list --json"))
@organization_option
@json_option
@click.pass_obj
def list_(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List the projects of an organization, with archived ones."""
    found = session.read(
        settings_path,
        organization,
        lambda tx, owner: service.page(tx, owner, after=None, limit=LISTED_MAX + 1),
    )
    page = wire.page(ProjectList, found, LISTED_MAX, wire.project)
    output.show_list(page, COLUMNS, as_json=as_json)


@command.command(epilog=example("tollhouse project show PROJECT_ID"))
@click.argument("project", type=IDENTIFIER)
@organization_option
@json_option
@click.pass_obj
def show(settings_path: Path, *, project: UUID, organization: UUID | None, as_json: bool) -> None:
    """Show one project."""
    output.show(wire.project(_retrieve(settings_path, organization, project)), as_json=as_json)


@command.command(epilog=example('tollhouse project rename PROJECT_ID "site search"'))
@click.argument("project", type=IDENTIFIER)
@click.argument("name", type=NAME)
@organization_option
@json_option
@click.pass_obj
def rename(
    settings_path: Path, *, project: UUID, name: str, organization: UUID | None, as_json: bool
) -> None:
    """Give a project another name."""
    renamed = session.change(
        settings_path, organization, lambda tx: service.edit(tx, ProjectId(project), name=name)
    )
    output.show(wire.project(renamed), as_json=as_json)


@command.command(epilog=example("tollhouse project archive PROJECT_ID"))
@click.argument("project", type=IDENTIFIER)
@organization_option
@yes_option
@json_option
@click.pass_obj
def archive(
    settings_path: Path, *, project: UUID, organization: UUID | None, yes: bool, as_json: bool
) -> None:
    """Stop a project's keys for good. Its usage stays readable."""
    question = f"Archive project {project} for good, with all its keys?"
    output.confirm(question, yes=yes, as_json=as_json)
    archived = session.change(
        settings_path, organization, lambda tx: service.archive(tx, ProjectId(project))
    )
    output.show(wire.project(archived), as_json=as_json)


@command.group(epilog=example("tollhouse project models show PROJECT_ID"))
def models() -> None:
    """Limit a project to some models. Its keys can be limited further."""


@models.command(
    "set", epilog=example("tollhouse project models set PROJECT_ID example/model-a example/model-b")
)
@click.argument("project", type=IDENTIFIER)
@click.argument("models", type=MODEL, nargs=-1, required=True)
@organization_option
@json_option
@click.pass_obj
def set_models(
    settings_path: Path,
    *,
    project: UUID,
    models: tuple[str, ...],
    organization: UUID | None,
    as_json: bool,
) -> None:
    """Allow these models and no others. They need not be configured yet."""
    if len(models) > ALLOWED_MODELS_MAX:
        message = f"{len(models)} models are too many. A project can be limited to at most "
        raise click.UsageError(f"{message}{ALLOWED_MODELS_MAX}.")
    _edit_models(settings_path, organization, project, models, as_json=as_json)


@models.command("clear", epilog=example("tollhouse project models clear PROJECT_ID"))
@click.argument("project", type=IDENTIFIER)
@organization_option
@json_option
@click.pass_obj
def clear_models(
    settings_path: Path, *, project: UUID, organization: UUID | None, as_json: bool
) -> None:
    """Allow every model again."""
    _edit_models(settings_path, organization, project, None, as_json=as_json)


@models.command("show", epilog=example("tollhouse project models show PROJECT_ID"))
@click.argument("project", type=IDENTIFIER)
@organization_option
@json_option
@click.pass_obj
def show_models(
    settings_path: Path, *, project: UUID, organization: UUID | None, as_json: bool
) -> None:
    """Show the allowed models, and which of them are not in this configuration."""
    found = _retrieve(settings_path, organization, project)
    _show_models(settings_path, found, as_json=as_json)


def _retrieve(settings_path: Path, organization: UUID | None, project: UUID) -> Project:
    return session.read(
        settings_path,
        organization,
        lambda tx, owner: service.retrieve(tx, owner, ProjectId(project)),
    )


def _edit_models(
    settings_path: Path,
    organization: UUID | None,
    project: UUID,
    models: tuple[str, ...] | None,
    *,
    as_json: bool,
) -> None:
    edited = session.change(
        settings_path,
        organization,
        lambda tx: service.edit(tx, ProjectId(project), allowed_models=models),
    )
    _show_models(settings_path, edited, as_json=as_json)


def _show_models(settings_path: Path, project: Project, *, as_json: bool) -> None:
    configured = configuration.load(settings_path).models
    allowed = project.allowed_models
    shown = ProjectModels(
        id=str(project.id),
        allowed_models=None if allowed is None else list(allowed),
        unknown_models=[model for model in allowed or () if model not in configured],
    )
    output.show(shown, as_json=as_json)
