"""`tollhouse project models`: which models the keys of a project may use."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.base.ids import OrganizationId, ProjectId
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    IDENTIFIER,
    MODEL,
    example,
    json_option,
    organization_option,
)
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import ALLOWED_MODELS_MAX
from tollhouse.projects import service
from tollhouse.projects.types import Project


class ProjectModels(Struct, frozen=True, kw_only=True):
    """Nothing as `allowed_models` allows all. Unknown ones do not stand in this configuration."""

    id: str
    object: Literal["organization.project.models"] = "organization.project.models"
    allowed_models: list[str] | None
    unknown_models: list[str]


@click.group("models", epilog=example("tollhouse project models show PROJECT_ID"))
def command() -> None:
    """Narrow a project to some models. A key can be narrower, never wider."""


@command.command(
    "set", epilog=example("tollhouse project models set PROJECT_ID example/model-a example/model-b")
)
@click.argument("project", type=IDENTIFIER)
@click.argument("models", type=MODEL, nargs=-1, required=True)
@organization_option
@json_option
@click.pass_obj
def set_(
    settings_path: Path,
    *,
    project: UUID,
    models: tuple[str, ...],
    organization: UUID | None,
    as_json: bool,
) -> None:
    """Allow these models and no others; they need not be configured yet."""
    if len(models) > ALLOWED_MODELS_MAX:
        message = f"A project can be limited to at most {ALLOWED_MODELS_MAX} models."
        raise click.UsageError(message)
    _edit(settings_path, organization, ProjectId(project), models, as_json=as_json)


@command.command(epilog=example("tollhouse project models clear PROJECT_ID"))
@click.argument("project", type=IDENTIFIER)
@organization_option
@json_option
@click.pass_obj
def clear(settings_path: Path, *, project: UUID, organization: UUID | None, as_json: bool) -> None:
    """Allow every model again."""
    _edit(settings_path, organization, ProjectId(project), None, as_json=as_json)


@command.command(epilog=example("tollhouse project models show PROJECT_ID"))
@click.argument("project", type=IDENTIFIER)
@organization_option
@json_option
@click.pass_obj
def show(settings_path: Path, *, project: UUID, organization: UUID | None, as_json: bool) -> None:
    """Show the models that are allowed, and those of them that are not configured here."""

    async def read(operator: Session, owner: OrganizationId) -> Project:
        async with operator.database.transaction() as tx:
            return await service.retrieve(tx, owner, ProjectId(project))

    _show(settings_path, organization, read, as_json=as_json)


def _edit(
    settings_path: Path,
    organization: UUID | None,
    project_id: ProjectId,
    models: tuple[str, ...] | None,
    *,
    as_json: bool,
) -> None:
    async def change(operator: Session, owner: OrganizationId) -> Project:
        async with operator.database.mutation(operator.authority(owner)) as tx:
            return await service.edit(tx, project_id, allowed_models=models)

    _show(settings_path, organization, change, as_json=as_json)


def _show(
    settings_path: Path,
    organization: UUID | None,
    verb: Callable[[Session, OrganizationId], Awaitable[Project]],
    *,
    as_json: bool,
) -> None:
    async def work(operator: Session) -> ProjectModels:
        owner = await operator.organization(organization)
        project = await verb(operator, owner.id)
        configured = operator.settings.models
        allowed = project.allowed_models
        return ProjectModels(
            id=str(project.id),
            allowed_models=None if allowed is None else list(allowed),
            unknown_models=[model for model in allowed or () if model not in configured],
        )

    output.show(session.run(settings_path, work), as_json=as_json)
