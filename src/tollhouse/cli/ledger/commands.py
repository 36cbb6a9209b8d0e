"""`tollhouse ledger`: verify balances, resolve unsettled holds, backfill past usage."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.api.wire import resources as wire
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import ProjectKeyId, ReservationId
from tollhouse.base.money import PicoUsd, to_decimal_string
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    DAY,
    IDENTIFIER,
    LISTED_MAX,
    MODEL,
    NAME,
    USD,
    F,
    example,
    json_option,
    organization_option,
    yes_option,
)
from tollhouse.cli.ledger.lost import lost
from tollhouse.cli.ledger.verify import verify
from tollhouse.cli.session import Session
from tollhouse.contract.costs import CostAmount
from tollhouse.contract.listing import ListPage
from tollhouse.keys import service as keys
from tollhouse.ledger import backfill as past
from tollhouse.ledger import operations
from tollhouse.ledger.types import Charge, PastUsage, Resolution, UnsettledHold
from tollhouse.observability import log
from tollhouse.storage.database import Mutation

COLUMNS: Final = ("id", "admitted_at", "held", "project_id", "api_key_id", "model", "decide_at")
LOG_LEVEL: Final = "ERROR"
FIRST_DAY: Final = date(1970, 1, 1)
QUANTITY: Final = click.IntRange(0, 2**53)


class Unsettled(Struct, frozen=True, kw_only=True):
    """A hold whose final cost is not known yet."""

    id: str
    object: Literal["ledger.unsettled"] = "ledger.unsettled"
    held: CostAmount
    project_id: str
    api_key_id: str
    model: str
    admitted_at: int
    unsettled_at: int
    decide_at: int


class UnsettledList(ListPage, frozen=True, kw_only=True):
    """All unsettled holds of an organization."""

    data: list[Unsettled]


class ShownResolution(Struct, frozen=True, kw_only=True):
    """How a hold was resolved. The operator pays `excess`."""

    id: str
    object: Literal["ledger.resolution"] = "ledger.resolution"
    kind: str
    day: str
    posted: CostAmount
    excess: CostAmount


def _charge_options(command: F) -> F:
    """Add the options `amount`, `input_tokens`, `cached_input_tokens` and `output_tokens`."""
    for option in (
        click.option("--output-tokens", type=QUANTITY, default=0),
        click.option("--cached-input-tokens", type=QUANTITY, default=0),
        click.option("--input-tokens", type=QUANTITY, default=0, help="Without cached tokens."),
        click.option("--amount", type=USD, required=True, help="The cost in US dollars."),
    ):
        command = option(command)
    return command


def _reason_option(command: F) -> F:
    """Add the option `reason`."""
    return click.option("--reason", type=NAME, required=True, help="Stored with the entry.")(
        command
    )


def _reportable_day(context: click.Context, parameter: click.Parameter, begin: datetime) -> date:
    """Return the day, or refuse one before 1970, which no report can show."""
    if begin.date() < FIRST_DAY:
        message = f"Reports begin at {FIRST_DAY}. Give that day or a later one."
        raise click.BadParameter(message, context, parameter)
    return begin.date()


@click.group("ledger", epilog=example("tollhouse ledger verify"))
def command() -> None:
    """Verify balances, resolve unsettled holds and backfill past usage."""


command.add_command(verify)
command.add_command(lost)


@command.command(epilog=example("tollhouse ledger unsettled"))
@organization_option
@json_option
@click.pass_obj
def unsettled(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List holds whose final cost is not known yet."""
    found = session.read(
        settings_path,
        organization,
        lambda tx, owner: operations.page_of_unsettled(tx, owner, limit=LISTED_MAX + 1),
    )
    page = wire.page(UnsettledList, found, LISTED_MAX, _shown)
    output.show_list(page, COLUMNS, as_json=as_json)


@command.command(
    epilog=example("tollhouse ledger settle RESERVATION_ID --amount 0.0125 --reason 'invoice 17'")
)
@click.argument("reservation", type=IDENTIFIER)
@organization_option
@_charge_options
@_reason_option
@yes_option
@json_option
@click.pass_obj
def settle(
    settings_path: Path,
    *,
    reservation: UUID,
    organization: UUID | None,
    amount: PicoUsd,
    reason: str,
    yes: bool,
    as_json: bool,
    **quantities: int,
) -> None:
    """Charge an unsettled hold with its actual cost."""
    question = f"Charge hold {reservation} with {to_decimal_string(amount)} USD for good?"
    output.confirm(question, yes=yes, as_json=as_json)

    async def work(tx: Mutation) -> Resolution:
        return await operations.settle(
            tx,
            ReservationId(reservation),
            used=_used(quantities),
            amount=amount,
            reason=reason,
        )

    _resolve(settings_path, organization, work, as_json=as_json)


@command.command(
    epilog=example("tollhouse ledger release RESERVATION_ID --reason 'never reached the backend'")
)
@click.argument("reservation", type=IDENTIFIER)
@organization_option
@_reason_option
@yes_option
@json_option
@click.pass_obj
def release(
    settings_path: Path,
    *,
    reservation: UUID,
    organization: UUID | None,
    reason: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Release an unsettled hold whose request cost nothing."""
    output.confirm(f"Release hold {reservation} for good?", yes=yes, as_json=as_json)

    async def work(tx: Mutation) -> Resolution:
        return await operations.release(tx, ReservationId(reservation), reason=reason)

    _resolve(settings_path, organization, work, as_json=as_json)


@command.command(
    epilog=example(
        "tollhouse ledger backfill --key KEY_ID --model MODEL --day 2026-01-31 --amount 12.5"
        " --reason 'before the gateway'"
    )
)
@organization_option
@click.option("--key", type=IDENTIFIER, required=True, help="A project key's ID, in any state.")
@click.option("--model", type=MODEL, required=True, help="The model's name in reports.")
@click.option(
    "--day",
    type=DAY,
    callback=_reportable_day,
    required=True,
    help="A UTC day.",
)
@_charge_options
@_reason_option
@json_option
@click.pass_obj
def backfill(
    settings_path: Path,
    *,
    organization: UUID | None,
    key: UUID,
    model: str,
    day: date,
    amount: PicoUsd,
    reason: str,
    as_json: bool,
    **quantities: int,
) -> None:
    """Add usage of a past day as one request, with the credit that pays for it."""

    async def work(operator: Session) -> Resolution:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            spender = await keys.find_project_key(tx, owner.id, ProjectKeyId(key))
        usage = PastUsage(
            project_id=spender.project_id,
            api_key_id=spender.id,
            model=model,
            day=day,
            charge=replace(_used(quantities), request_pico_usd=amount),
        )
        await past.prepare(
            operator.database,
            usage,
            now=operator.clock.now(),
            entry_days=operator.settings.ledger.entry_days,
        )
        async with operator.database.mutation(operator.authority(owner.id)) as tx:
            return await past.enter(tx, usage, reason=reason)

    output.show(_shown_resolution(session.run(settings_path, work)), as_json=as_json)


def _resolve(
    settings_path: Path,
    organization: UUID | None,
    resolve: Callable[[Mutation], Awaitable[Resolution]],
    *,
    as_json: bool,
) -> None:
    resolution = session.change(settings_path, organization, resolve)
    log.configure(LOG_LEVEL)
    operations.record_operator_cost(resolution)
    output.show(_shown_resolution(resolution), as_json=as_json)


def _used(quantities: Mapping[str, int]) -> Charge:
    return Charge(
        input_tokens=quantities["input_tokens"],
        cached_input_tokens=quantities["cached_input_tokens"],
        output_tokens=quantities["output_tokens"],
    )


def _shown(hold: UnsettledHold) -> Unsettled:
    return Unsettled(
        id=str(hold.reservation_id),
        held=_usd(hold.amount_pico_usd),
        project_id=str(hold.project_id),
        api_key_id=str(hold.api_key_id),
        model=hold.model,
        admitted_at=unix_seconds(hold.admitted_at),
        unsettled_at=unix_seconds(hold.unsettled_at),
        decide_at=unix_seconds(hold.decide_at),
    )


def _shown_resolution(resolution: Resolution) -> ShownResolution:
    return ShownResolution(
        id=str(resolution.reservation_id),
        kind=resolution.kind,
        day=resolution.admitted_day.isoformat(),
        posted=_usd(resolution.charge.total_pico_usd),
        excess=_usd(resolution.excess_pico_usd),
    )


def _usd(amount: PicoUsd) -> CostAmount:
    return CostAmount(value=to_decimal_string(amount))
