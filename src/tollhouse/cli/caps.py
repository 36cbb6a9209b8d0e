"""`tollhouse caps`: how much an organization, a project or a key may spend."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import UUID

import click

from tollhouse.api import money_wire, wire
from tollhouse.base.ids import OrganizationId
from tollhouse.base.money import PicoUsd
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    IDENTIFIER,
    LISTED_MAX,
    USD,
    example,
    json_option,
    organization_option,
)
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import ALERT_PERCENT_DEFAULT, ALERT_PERCENT_MAX
from tollhouse.contract.spending_limits import SpendingLimitDeleted, SpendingLimitList
from tollhouse.ledger import service
from tollhouse.ledger.types import CapPlace, CapUse, Period, Scope

COLUMNS: Final = ("id", "limit", "used", "held", "remaining", "alert_percent", "is_alerting")

F = TypeVar("F", bound=Callable[..., Any])


def place_options(verb: F) -> F:
    """Give the verb `project`, `key` and `period`, which together name a cap."""
    options = (
        click.option("--project", type=IDENTIFIER, help="Cap a project, not the organization."),
        click.option("--key", type=IDENTIFIER, help="Cap a project key, not the organization."),
        click.option(
            "--period",
            type=click.Choice([period.value for period in Period]),
            required=True,
            help="A calendar month of UTC, or all time.",
        ),
    )
    for option in reversed(options):
        verb = option(verb)
    return verb


@click.group("caps", epilog=example("tollhouse caps show"))
def command() -> None:
    """Cap what may be spent: by organization, project or key, per month or for all time."""


@command.command("set", epilog=example("tollhouse caps set 100 --period month"))
@click.argument("limit", type=USD)
@organization_option
@place_options
@click.option(
    "--alert-percent",
    type=click.IntRange(1, ALERT_PERCENT_MAX),
    default=ALERT_PERCENT_DEFAULT,
    help="Ring when this share is spent.",
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
    """Set or change a cap in US dollars; what was spent in its window before counts."""
    _refuse_both(project, key)

    async def work(operator: Session) -> CapUse:
        owner = await operator.organization(organization)
        async with operator.database.mutation(operator.authority(owner.id)) as tx:
            return await service.set_cap(
                tx,
                _place(owner.id, project, key, Period(period)),
                limit_pico_usd=limit,
                alert_percent=alert_percent,
            )

    output.show(money_wire.spending_limit(session.run(settings_path, work)), as_json=as_json)


@command.command(epilog=example("tollhouse caps show --json"))
@organization_option
@json_option
@click.pass_obj
def show(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List the caps, with what is used of them now."""

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
@place_options
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
    """Remove a cap; spending is counted on, for a later one."""
    _refuse_both(project, key)

    async def work(operator: Session) -> CapPlace:
        owner = await operator.organization(organization)
        place = _place(owner.id, project, key, Period(period))
        async with operator.database.mutation(operator.authority(owner.id)) as tx:
            await service.clear_cap(tx, place)
        return place

    place = session.run(settings_path, work)
    output.show(SpendingLimitDeleted(id=place.text, deleted=True), as_json=as_json)


def _refuse_both(project: UUID | None, key: UUID | None) -> None:
    if project is not None and key is not None:
        message = "A cap is of a project or of a key: give --project or --key, not both."
        raise click.UsageError(message)


def _place(
    organization_id: OrganizationId, project: UUID | None, key: UUID | None, period: Period
) -> CapPlace:
    if project is not None:
        return CapPlace(scope=Scope.PROJECT, scope_id=project, period=period)
    if key is not None:
        return CapPlace(scope=Scope.KEY, scope_id=key, period=period)
    return CapPlace(scope=Scope.ORGANIZATION, scope_id=organization_id, period=period)
