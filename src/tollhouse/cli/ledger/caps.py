"""`tollhouse caps`: the most that an organization, a project or a key may spend."""

from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.api.wire import money as money_wire
from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import OrganizationId
from tollhouse.base.money import PicoUsd
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    IDENTIFIER,
    LISTED_MAX,
    USD,
    F,
    example,
    json_option,
    organization_option,
)
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import ALERT_PERCENT_DEFAULT, ALERT_PERCENT_MAX
from tollhouse.contract.spending_limits import SpendingLimitDeleted, SpendingLimitList
from tollhouse.ledger import service
from tollhouse.ledger.types import CapId, CapScope, CapUse, Period
from tollhouse.storage.database import Mutation

COLUMNS: Final = ("id", "limit", "used", "held", "remaining", "alert_percent", "is_alerting")


def cap_options(command: F) -> F:
    """Add the options `project`, `key` and `period`, which together name a cap."""
    options = (
        click.option("--project", type=IDENTIFIER, help="Cap a project, not the organization."),
        click.option("--key", type=IDENTIFIER, help="Cap a project key, not the organization."),
        click.option(
            "--period",
            type=click.Choice([period.value for period in Period]),
            required=True,
            help="A UTC day, week (from Monday) or month, or all time.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group("caps", epilog=example("tollhouse caps show"))
def command() -> None:
    """Cap spending of an organization, project or key, by day, week, month or in all."""


@command.command("set", epilog=example("tollhouse caps set 100 --period month"))
@click.argument("limit", type=USD)
@organization_option
@cap_options
@click.option(
    "--alert-percent",
    type=click.IntRange(1, ALERT_PERCENT_MAX),
    default=ALERT_PERCENT_DEFAULT,
    help="Raise an alert when this share is spent.",
)
@json_option
@click.pass_obj
def set_(
    settings_path: Path,
    *,
    limit: PicoUsd,
    organization: UUID | None,
    project: UUID | None,
    key: UUID | None,
    period: str,
    alert_percent: int,
    as_json: bool,
) -> None:
    """Set or change a cap in US dollars. Earlier spending in its period counts."""
    _refuse_both(project, key)
    cap = session.change(
        settings_path,
        organization,
        lambda tx: service.set_cap(
            tx,
            _cap_id(tx.organization_id, project, key, Period(period)),
            limit_pico_usd=limit,
            alert_percent=alert_percent,
        ),
    )
    output.show(money_wire.spending_limit(cap), as_json=as_json)


@command.command(epilog=example("tollhouse caps show --json"))
@organization_option
@json_option
@click.pass_obj
def show(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List the caps and how much of each is used."""

    async def read(operator: Session) -> list[CapUse]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            return await service.caps(
                tx, owner.id, operator.clock.now(), after=None, limit=LISTED_MAX + 1
            )

    found = session.run(settings_path, read)
    page = wire.page(SpendingLimitList, found, LISTED_MAX, money_wire.spending_limit)
    output.show_list(page, COLUMNS, as_json=as_json)


@command.command(epilog=example("tollhouse caps clear --period month"))
@organization_option
@cap_options
@json_option
@click.pass_obj
def clear(
    settings_path: Path,
    *,
    organization: UUID | None,
    project: UUID | None,
    key: UUID | None,
    period: str,
    as_json: bool,
) -> None:
    """Remove a cap. Spending is still counted, for a later cap."""
    _refuse_both(project, key)

    async def clear_cap(tx: Mutation) -> CapId:
        cap_id = _cap_id(tx.organization_id, project, key, Period(period))
        await service.clear_cap(tx, cap_id)
        return cap_id

    cleared = session.change(settings_path, organization, clear_cap)
    output.show(SpendingLimitDeleted(id=cleared.text, deleted=True), as_json=as_json)


def _refuse_both(project: UUID | None, key: UUID | None) -> None:
    if project is not None and key is not None:
        message = "A cap applies to a project or to a key. Give --project or --key, not both."
        raise click.UsageError(message)


def _cap_id(
    organization_id: OrganizationId, project: UUID | None, key: UUID | None, period: Period
) -> CapId:
    if project is not None:
        return CapId(scope=CapScope.PROJECT, scope_id=project, period=period)
    if key is not None:
        return CapId(scope=CapScope.KEY, scope_id=key, period=period)
    return CapId(scope=CapScope.ORGANIZATION, scope_id=organization_id, period=period)
