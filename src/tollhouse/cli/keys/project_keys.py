"""`tollhouse key`: project keys."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, TypedDict, Unpack
from uuid import UUID

import click

from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    IDENTIFIER,
    LISTED_MAX,
    MODEL,
    NAME,
    USD,
    example,
    expiry,
    expiry_option,
    json_option,
    organization_option,
    yes_option,
)
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import (
    ALERT_PERCENT_DEFAULT,
    ALLOWED_MODELS_MAX,
    CUSTOMER_PERMISSION_NAMES,
    OVERLAP_SECONDS_MAX,
)
from tollhouse.contract.keys import ProjectKeyList
from tollhouse.keys import rules, service
from tollhouse.keys.types import KeyKind, NewSecret, ProjectKey
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import CapId, CapScope, Period
from tollhouse.projects import service as projects
from tollhouse.storage.database import Mutation

COLUMNS: Final = (
    *("id", "name", "status", "redacted_value", "last_used_at", "expires_at"),
    "previous_value_expires_at",
)

Change = Callable[[Mutation, ProjectId, ProjectKeyId], Awaitable[ProjectKey]]


class KeyOptions(TypedDict, total=False):
    """What a new key may do and spend, and for how long."""

    expires_in_days: int | None
    permissions: tuple[str, ...]
    models: tuple[str, ...]
    cap: PicoUsd | None
    cap_period: str


async def create_project_key(
    operator: Session,
    organization_id: OrganizationId,
    project_id: ProjectId,
    name: str,
    **options: Unpack[KeyOptions],
) -> tuple[ProjectKey, NewSecret]:
    """Create a key of a project, with its cap if there is one. Without models it may use all."""
    secret = operator.mint(KeyKind.PROJECT)
    async with operator.creation(organization_id) as tx:
        project = await projects.require_active(tx, project_id)
        key = await service.create_project_key(
            tx,
            secret,
            key_id=ProjectKeyId(time_ordered_uuid()),
            project=(project.id, project.name),
            name=name,
            permissions=tuple(
                sorted(set(options.get("permissions", rules.DEFAULT_CUSTOMER_PERMISSIONS)))
            ),
            allowed_models=options.get("models") or None,
            expires_at=expiry(options.get("expires_in_days"), now=tx.now),
        )
        cap = options.get("cap")
        if cap is not None:
            period = Period(options.get("cap_period", Period.MONTH))
            async with tx.another() as change:
                await ledger.set_cap(
                    change,
                    CapId(scope=CapScope.KEY, scope_id=key.id, period=period),
                    limit_pico_usd=cap,
                    alert_percent=ALERT_PERCENT_DEFAULT,
                )
    return key, secret


@click.group("key", epilog=example("tollhouse key list --project PROJECT_ID"))
def command() -> None:
    """Create, list, rotate and revoke project keys."""


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
@click.option("--cap", type=USD, help="The most that the key may spend, in US dollars.")
@click.option(
    "--cap-period",
    type=click.Choice([period.value for period in Period]),
    default=Period.MONTH.value,
    help="What --cap counts: a UTC day, week (from Monday) or month, or all time.",
)
@json_option
@click.pass_obj
def create(
    settings_path: Path,
    *,
    name: str,
    organization: UUID | None,
    project: UUID,
    as_json: bool,
    **options: Unpack[KeyOptions],
) -> None:
    """Create a key for a project, and cap what it may spend. Its value is shown only here."""
    count = len(options.get("models", ()))
    if count > ALLOWED_MODELS_MAX:
        message = f"{count} models are too many. A key can be limited to at most "
        raise click.UsageError(f"{message}{ALLOWED_MODELS_MAX}.")

    async def work(operator: Session) -> tuple[ProjectKey, datetime, NewSecret]:
        owner = await operator.organization(organization)
        key, secret = await create_project_key(
            operator,
            owner.id,
            ProjectId(project),
            name,
            **options,
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
    help="How long the old value keeps working; 0 if it has leaked.",
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
    """Give a key a new value. Its ID, permissions, caps and history stay.

    If the old value has leaked, end it at once with --overlap-seconds 0.
    """

    async def work(operator: Session) -> tuple[ProjectKey, datetime, NewSecret]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            found = await service.find_project_key(tx, owner.id, ProjectKeyId(key))
        secret = operator.mint(KeyKind.PROJECT)
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


@command.command("end-previous", epilog=example("tollhouse key end-previous KEY_ID"))
@click.argument("key", type=IDENTIFIER)
@organization_option
@json_option
@click.pass_obj
def end_previous_value(
    settings_path: Path, *, key: UUID, organization: UUID | None, as_json: bool
) -> None:
    """End the value before the last rotation, before its overlap is over."""
    _change(settings_path, organization, key, service.end_previous_value, as_json=as_json)


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
