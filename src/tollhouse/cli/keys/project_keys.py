"""`tollhouse key`: project keys, and the peppers of all keys."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId, time_ordered_uuid
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    IDENTIFIER,
    LISTED_MAX,
    MODEL,
    NAME,
    example,
    expiry,
    expiry_option,
    json_option,
    organization_option,
    yes_option,
)
from tollhouse.cli.keys import peppers
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import (
    ALLOWED_MODELS_MAX,
    CUSTOMER_PERMISSION_NAMES,
    OVERLAP_SECONDS_MAX,
)
from tollhouse.contract.keys import ProjectKeyList
from tollhouse.keys import rules, service
from tollhouse.keys.types import KeyKind, NewSecret, ProjectKey
from tollhouse.projects import service as projects
from tollhouse.storage.database import Mutation

COLUMNS: Final = ("id", "name", "status", "redacted_value", "last_used_at", "expires_at")

Change = Callable[[Mutation, ProjectId, ProjectKeyId], Awaitable[ProjectKey]]


async def create_project_key(
    operator: Session,
    organization_id: OrganizationId,
    project_id: ProjectId,
    name: str,
    *,
    permissions: tuple[str, ...] = rules.DEFAULT_CUSTOMER_PERMISSIONS,
    models: tuple[str, ...] = (),
    expires_in_days: int | None = None,
) -> tuple[ProjectKey, NewSecret]:
    """Create a key of a project. Without models it may use every model."""
    secret = await operator.mint(KeyKind.PROJECT)
    async with operator.creation(organization_id) as tx:
        project = await projects.require_active(tx, project_id)
        key = await service.create_project_key(
            tx,
            secret,
            key_id=ProjectKeyId(time_ordered_uuid()),
            project=(project.id, project.name),
            name=name,
            permissions=tuple(sorted(set(permissions))),
            allowed_models=models or None,
            expires_at=expiry(expires_in_days, now=tx.now),
        )
    return key, secret


@click.group("key", epilog=example("tollhouse key list --project PROJECT_ID"))
def command() -> None:
    """Create, list, rotate and revoke project keys, and manage the peppers of all keys."""


@command.command(epilog=example('tollhouse key create --project PROJECT_ID "batch jobs"'))
@click.argument("name", type=NAME)
@organization_option
@click.option("--project", type=IDENTIFIER, required=True, help="The ID of an active project.")
@expiry_option
@click.option(
    "--permission",
    "permissions",
    type=click.Choice(CUSTOMER_PERMISSION_NAMES),
    multiple=True,
    default=CUSTOMER_PERMISSION_NAMES,
    help="Can be given several times.",
)
@click.option(
    "--model",
    "models",
    type=MODEL,
    multiple=True,
    help="Can be given several times. When left out, every model.",
)
@json_option
@click.pass_obj
def create(
    settings_path: Path,
    *,
    name: str,
    organization: UUID | None,
    project: UUID,
    expires_in_days: int | None,
    permissions: tuple[str, ...],
    models: tuple[str, ...],
    as_json: bool,
) -> None:
    """Create a key for a project. Its value is shown only here."""
    if len(models) > ALLOWED_MODELS_MAX:
        message = f"{len(models)} models are too many. A key can be limited to at most "
        raise click.UsageError(f"{message}{ALLOWED_MODELS_MAX}.")

    async def work(operator: Session) -> tuple[ProjectKey, datetime, NewSecret]:
        owner = await operator.organization(organization)
        key, secret = await create_project_key(
            operator,
            owner.id,
            ProjectId(project),
            name,
            permissions=permissions,
            models=models,
            expires_in_days=expires_in_days,
        )
        return key, operator.clock.now(), secret

    _show_with_value(*session.run(settings_path, work), as_json=as_json)


@command.command("list", epilog=example("tollhouse key list --project PROJECT_ID"))
@organization_option
@click.option("--project", type=IDENTIFIER, required=True, help="The project's ID.")
@json_option
@click.pass_obj
def list_(settings_path: Path, *, organization: UUID | None, project: UUID, as_json: bool) -> None:
    """List a project's keys in every state."""

    async def work(operator: Session) -> tuple[list[ProjectKey], datetime]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            of = await projects.retrieve(tx, owner.id, ProjectId(project))
            found = await service.page_of_project_keys(
                tx, owner.id, of.id, after=None, limit=LISTED_MAX + 1
            )
        return found, operator.clock.now()

    found, now = session.run(settings_path, work)
    show_one = partial(wire.managed_project_key, now=now)
    page = wire.page(ProjectKeyList, found, LISTED_MAX, show_one)
    output.show_list(page, COLUMNS, as_json=as_json)


@command.command(epilog=example("tollhouse key show KEY_ID"))
@click.argument("key", type=IDENTIFIER)
@organization_option
@json_option
@click.pass_obj
def show(settings_path: Path, *, key: UUID, organization: UUID | None, as_json: bool) -> None:
    """Show one key, without its value."""

    async def work(operator: Session) -> tuple[ProjectKey, datetime]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            found = await service.find_project_key(tx, owner.id, ProjectKeyId(key))
        return found, operator.clock.now()

    _show(*session.run(settings_path, work), as_json=as_json)


@command.command(epilog=example("tollhouse key rotate KEY_ID --overlap-seconds 3600"))
@click.argument("key", type=IDENTIFIER)
@organization_option
@click.option(
    "--overlap-seconds",
    type=click.IntRange(0, OVERLAP_SECONDS_MAX),
    required=True,
    help="How long the old value keeps working.",
)
@json_option
@click.pass_obj
def rotate(
    settings_path: Path,
    *,
    key: UUID,
    organization: UUID | None,
    overlap_seconds: int,
    as_json: bool,
) -> None:
    """Give a key a new value. Its ID, permissions and history stay."""

    async def work(operator: Session) -> tuple[ProjectKey, datetime, NewSecret]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            found = await service.find_project_key(tx, owner.id, ProjectKeyId(key))
        secret = await operator.mint(KeyKind.PROJECT)
        async with operator.creation(owner.id) as tx:
            await projects.require_active(tx, found.project_id)
            rotated = await service.rotate_project_key(
                tx,
                secret,
                project_id=found.project_id,
                key_id=found.id,
                overlap=timedelta(seconds=overlap_seconds),
                rotator=None,
            )
        return rotated, operator.clock.now(), secret

    _show_with_value(*session.run(settings_path, work), as_json=as_json)


@command.command(epilog=example("tollhouse key suspend KEY_ID"))
@click.argument("key", type=IDENTIFIER)
@organization_option
@json_option
@click.pass_obj
def suspend(settings_path: Path, *, key: UUID, organization: UUID | None, as_json: bool) -> None:
    """Stop a key until it is resumed."""
    _change(settings_path, organization, key, service.suspend_project_key, as_json=as_json)


@command.command(epilog=example("tollhouse key resume KEY_ID"))
@click.argument("key", type=IDENTIFIER)
@organization_option
@json_option
@click.pass_obj
def resume(settings_path: Path, *, key: UUID, organization: UUID | None, as_json: bool) -> None:
    """Let a suspended key work again."""
    _change(settings_path, organization, key, service.resume_project_key, as_json=as_json)


@command.command(epilog=example("tollhouse key revoke KEY_ID"))
@click.argument("key", type=IDENTIFIER)
@organization_option
@yes_option
@json_option
@click.pass_obj
def revoke(
    settings_path: Path, *, key: UUID, organization: UUID | None, yes: bool, as_json: bool
) -> None:
    """Revoke a key for good."""
    output.confirm(f"Revoke key {key} for good?", yes=yes, as_json=as_json)
    _change(settings_path, organization, key, service.revoke_project_key, as_json=as_json)


command.add_command(peppers.peppers)
command.add_command(peppers.retire)


def _change(
    settings_path: Path, organization: UUID | None, key: UUID, change: Change, *, as_json: bool
) -> None:
    async def mutate(tx: Mutation) -> tuple[ProjectKey, datetime]:
        found = await service.find_project_key(tx, tx.organization_id, ProjectKeyId(key))
        return await change(tx, found.project_id, found.id), tx.now

    _show(*session.change(settings_path, organization, mutate), as_json=as_json)


def _show(key: ProjectKey, now: datetime, *, as_json: bool) -> None:
    output.show(wire.managed_project_key(key, now=now), as_json=as_json)


def _show_with_value(key: ProjectKey, now: datetime, secret: NewSecret, *, as_json: bool) -> None:
    output.show(wire.managed_project_key(key, now=now, value=secret.value), as_json=as_json)
    output.say(output.SHOWN_ONCE, as_json=as_json)
