"""`tollhouse attribution`: store what requests are for."""

from pathlib import Path
from uuid import UUID

import click

from tollhouse.attribution import service
from tollhouse.attribution.types import AttributionSetting
from tollhouse.base.ids import OrganizationId
from tollhouse.cli import output, session
from tollhouse.cli.arguments import ATTRIBUTION, example, json_option, organization_option
from tollhouse.contract.attribution import (
    DIMENSIONS_MAX,
    RETENTION_DAYS_MAX,
    AttributedValueDeleted,
    AttributionSettings,
)
from tollhouse.manage.attribution import shown_erasure, shown_setting
from tollhouse.observability.log import bounded_text
from tollhouse.storage.database import Mutation, Transaction


@click.group("attribution", epilog=example("tollhouse attribution show"))
def command() -> None:
    """Store what requests are for. `tollhouse costs --by user` shows costs by it."""


@command.command(epilog=example("tollhouse attribution show"))
@organization_option
@json_option
@click.pass_obj
def show(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """Show which values of requests are stored."""

    async def read(tx: Transaction, organization_id: OrganizationId) -> AttributionSettings:
        return shown_setting(organization_id, await service.retrieve(tx, organization_id))

    output.show(session.read(settings_path, organization, read), as_json=as_json)


@command.command("set", epilog=example("tollhouse attribution set user --retention-days 30"))
@click.argument("dimensions", type=ATTRIBUTION, nargs=-1)
@organization_option
@click.option(
    "--retention-days",
    type=click.IntRange(1, RETENTION_DAYS_MAX),
    default=30,
    help="Days after which values are deleted.",
)
@json_option
@click.pass_obj
def set_(
    settings_path: Path,
    *,
    dimensions: tuple[str, ...],
    organization: UUID | None,
    retention_days: int,
    as_json: bool,
) -> None:
    """Store `user`, `safety_identifier` or `metadata.KEY` of requests; without names, nothing.

    Values may be personal data.
    """
    if len(dimensions) > DIMENSIONS_MAX:
        message = f"At most {DIMENSIONS_MAX} of user, safety_identifier and metadata.KEY."
        raise click.UsageError(message)
    chosen = AttributionSetting(
        dimensions=tuple(dict.fromkeys(dimensions)), retention_days=retention_days
    )

    async def change(tx: Mutation) -> AttributionSettings:
        return shown_setting(tx.organization_id, await service.change(tx, chosen))

    output.show(session.change(settings_path, organization, change), as_json=as_json)


@command.command(epilog=example("tollhouse attribution delete user alice@example.com"))
@click.argument("dimension", type=ATTRIBUTION)
@click.argument("value")
@organization_option
@json_option
@click.pass_obj
def delete(
    settings_path: Path, *, dimension: str, value: str, organization: UUID | None, as_json: bool
) -> None:
    """Delete a stored value on all days. Its costs stay, as `(deleted)`."""
    stored = bounded_text(value) or ""

    async def change(tx: Mutation) -> AttributedValueDeleted:
        erased = await service.erase(tx, dimension=dimension, value=stored)
        return shown_erasure(tx.organization_id, erased)

    output.show(session.change(settings_path, organization, change), as_json=as_json)
