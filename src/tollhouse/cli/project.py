"""`tollhouse project`: the projects of an organization."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.api import wire
from tollhouse.base.ids import OrganizationId, ProjectId, time_ordered_uuid
from tollhouse.cli import output, project_models, session
from tollhouse.cli.arguments import (
    IDENTIFIER,
    LISTED_MAX,
    NAME,
    example,
    json_option,
    organization_option,
    yes_option,
)
from tollhouse.cli.session import Session
from tollhouse.contract.projects import ProjectList
from tollhouse.projects import service
from tollhouse.projects.types import Project
from tollhouse.storage.database import Mutation

COLUMNS: Final = ("id", "name", "status", "created_at", "archived_at")


async def create_project(operator: Session, organization_id: OrganizationId, name: str) -> Project:
    """Open a project under a new ID."""
    async with operator.creation(organization_id) as tx:
        return await service.create(tx, project_id=ProjectId(time_ordered_uuid()), name=name)


@click.group("project", epilog=example("tollhouse project list"))
def command() -> None:
    """Open, list, rename and archive projects, and choose their models."""


command.add_command(project_models.command)


@command.command(epilog=example("tollhouse project create search"))
@click.argument("name", type=NAME)
@organization_option
@json_option
@click.pass_obj
def create(settings_path: Path, *, name: str, organization: UUID | None, as_json: bool) -> None:
    """Open a project. Names need not be unique."""

    async def work(operator: Session) -> Project:
        owner = await operator.organization(organization)
        return await create_project(operator, owner.id, name)

    output.show(wire.project(session.run(settings_path, work)), as_json=as_json)


@command.command("list", epilog=example("tollhouse project list --json"))
@organization_option
@json_option
@click.pass_obj
def list_(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List the projects of an organization, archived ones included."""

    async def read(operator: Session) -> list[Project]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            return await service.page(tx, owner.id, after=None, limit=LISTED_MAX + 1)

    found = session.run(settings_path, read)
    page = wire.page(ProjectList, found, LISTED_MAX, wire.project)
    output.show_list(page, COLUMNS, as_json=as_json)


@command.command(epilog=example("tollhouse project show PROJECT_ID"))
@click.argument("project", type=IDENTIFIER)
@organization_option
@json_option
@click.pass_obj
def show(settings_path: Path, *, project: UUID, organization: UUID | None, as_json: bool) -> None:
    """Show one project."""

    async def read(operator: Session) -> Project:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            return await service.retrieve(tx, owner.id, ProjectId(project))

    output.show(wire.project(session.run(settings_path, read)), as_json=as_json)


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
    renamed = _changed(
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
    """Stop a project's keys for good; what it has used stays readable."""
    question = f"Archive project {project} for good, with all its keys?"
    output.confirm(question, yes=yes, as_json=as_json)
    archived = _changed(
        settings_path, organization, lambda tx: service.archive(tx, ProjectId(project))
    )
    output.show(wire.project(archived), as_json=as_json)


def _changed(
    settings_path: Path,
    organization: UUID | None,
    verb: Callable[[Mutation], Awaitable[Project]],
) -> Project:
    async def change(operator: Session) -> Project:
        owner = await operator.organization(organization)
        async with operator.database.mutation(operator.authority(owner.id)) as tx:
            return await verb(tx)

    return session.run(settings_path, change)
