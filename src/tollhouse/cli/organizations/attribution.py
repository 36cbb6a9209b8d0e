"""`tollhouse attribution`: store what requests are for, and show costs by it."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.attribution import service
from tollhouse.attribution.types import AttributedCost, AttributionSetting
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import OrganizationId
from tollhouse.cli import output, session
from tollhouse.cli.arguments import INSTANT, example, json_option, organization_option
from tollhouse.cli.ledger.costs import midnight, utc
from tollhouse.cli.session import Session
from tollhouse.contract.attribution import (
    DIMENSIONS_MAX,
    RETENTION_DAYS_MAX,
    AttributedValueDeleted,
    AttributionSettings,
)
from tollhouse.contract.bounds import ATTRIBUTION_PATTERN
from tollhouse.manage.attribution import shown_costs, shown_erasure, shown_setting
from tollhouse.observability.log import bounded_text
from tollhouse.storage.database import Database, Mutation, Transaction

DEFAULT_DAYS: Final = 30
COLUMNS: Final = ("value", "amount", "requests", "input_tokens", "output_tokens")


@click.group("attribution", epilog=example("tollhouse attribution costs user"))
def command() -> None:
    """Store what requests are for, and show costs by it."""


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
@click.argument("dimensions", nargs=-1)
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
    if len(dimensions) > DIMENSIONS_MAX or not all(map(_is_dimension, dimensions)):
        message = f"At most {DIMENSIONS_MAX} of user, safety_identifier and metadata.KEY."
        raise click.UsageError(message)
    chosen = AttributionSetting(
        dimensions=tuple(dict.fromkeys(dimensions)), retention_days=retention_days
    )

    async def change(tx: Mutation) -> AttributionSettings:
        return shown_setting(tx.organization_id, await service.change(tx, chosen))

    output.show(session.change(settings_path, organization, change), as_json=as_json)


@command.command(epilog=example("tollhouse attribution delete user alice@example.com"))
@click.argument("dimension")
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


@command.command(epilog=example("tollhouse attribution costs user --from 2026-08-01"))
@click.argument("dimension")
@organization_option
@click.option("--from", "since", type=INSTANT, help="Start, in UTC. When left out, 30 days ago.")
@click.option("--to", "until", type=INSTANT, help="End, in UTC. When left out, the end of today.")
@json_option
@click.pass_obj
def costs(
    settings_path: Path,
    *,
    dimension: str,
    organization: UUID | None,
    since: datetime | None,
    until: datetime | None,
    as_json: bool,
) -> None:
    """Show settled costs by the values of a dimension, the dearest first, for at most 31 days.

    `(unrecorded)` are requests without a stored value. The sum is that of `tollhouse costs`.
    """

    async def read(operator: Session) -> list[AttributedCost]:
        owner = await operator.organization(organization)
        today = midnight(operator.clock.now())
        start = unix_seconds(utc(since or today - timedelta(days=DEFAULT_DAYS)))
        end = unix_seconds(utc(until or today + timedelta(days=1)))

        async def report(database: Database) -> list[AttributedCost]:
            async with database.transaction() as tx:
                return await service.costs(tx, owner.id, dimension, start=start, end=end)

        return await operator.read(report)

    body = shown_costs(dimension, session.run(settings_path, read))
    output.show_list(body, COLUMNS, as_json=as_json)
    if not as_json:
        click.echo(f"\nTotal: {body.total.value} USD")


def _is_dimension(text: str) -> bool:
    return re.search(ATTRIBUTION_PATTERN, text) is not None
