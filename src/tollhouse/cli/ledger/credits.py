"""`tollhouse credits`: the prepaid credit of an organization."""

from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.api.wire import money as money_wire
from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import GrantId, OrganizationId, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    LISTED_MAX,
    NAME,
    SIGNED_USD,
    example,
    json_option,
    organization_option,
)
from tollhouse.cli.session import Session
from tollhouse.contract.credits import CreditEntryList, Credits
from tollhouse.contract.money import Money
from tollhouse.ledger import service
from tollhouse.ledger.types import Credit, Grant, GrantKind

COLUMNS: Final = ("created_at", "kind", "amount", "actor", "reason", "id")
# `tollhouse ledger backfill` grants the credit of past usage.
KINDS: Final = [kind.value for kind in GrantKind if kind is not GrantKind.BACKFILL]


class Account(Credits, frozen=True, kw_only=True):
    """An organization's credit, with the sums and the written-off amounts for the operator."""

    granted: Money
    used: Money
    unsettled_requests: int
    written_off_excess: Money
    written_off_unknown: Money


async def grant_credit(
    operator: Session,
    organization_id: OrganizationId,
    *,
    kind: GrantKind,
    amount: PicoUsd,
    reason: str,
) -> Grant:
    """Grant credit under a new ID."""
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        return await service.grant(
            tx, grant_id=GrantId(time_ordered_uuid()), kind=kind, amount=amount, reason=reason
        )


@click.group("credits", epilog=example("tollhouse credits show"))
def command() -> None:
    """Grant credit and show the balance."""


@command.command(
    epilog=example(
        'tollhouse credits grant 25 --reason "pilot project"',
        'tollhouse credits grant --kind correction --reason "granted twice" -- -5',
    )
)
@click.argument("amount", type=SIGNED_USD)
@organization_option
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default=GrantKind.PROMOTIONAL.value,
    help="Only a correction may be negative: it takes credit back.",
)
@click.option("--reason", type=NAME, required=True, help="Stored with the entry.")
@json_option
@click.pass_obj
def grant(
    settings_path: Path,
    *,
    amount: PicoUsd,
    organization: UUID | None,
    kind: str,
    reason: str,
    as_json: bool,
) -> None:
    """Grant an organization credit in US dollars.

    Write a negative amount last, after `--`, so that it is not read as an option.
    """

    async def work(operator: Session) -> Grant:
        owner = await operator.organization(organization)
        return await grant_credit(
            operator, owner.id, kind=GrantKind(kind), amount=amount, reason=reason
        )

    output.show(money_wire.credit_entry(session.run(settings_path, work)), as_json=as_json)


@command.command(epilog=example("tollhouse credits show --json"))
@organization_option
@json_option
@click.pass_obj
def show(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """Show the balance, the held amount and the amounts that you wrote off."""
    found = session.read(settings_path, organization, service.credit)
    output.show(_account(found), as_json=as_json)


@command.command(epilog=example("tollhouse credits history"))
@organization_option
@json_option
@click.pass_obj
def history(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List every grant and correction, newest first."""
    found = session.read(
        settings_path,
        organization,
        lambda tx, owner: service.page_grants(tx, owner, after=None, limit=LISTED_MAX + 1),
    )
    page = wire.page(CreditEntryList, found, LISTED_MAX, money_wire.credit_entry)
    output.show_list(page, COLUMNS, as_json=as_json)


def _account(credit: Credit) -> Account:
    shown = money_wire.credits_(credit)
    return Account(
        balance=shown.balance,
        available=shown.available,
        held=shown.held,
        unsettled=shown.unsettled,
        is_alerting=shown.is_alerting,
        granted=money_wire.money(credit.granted_pico_usd),
        used=money_wire.money(credit.settled_pico_usd),
        unsettled_requests=credit.unsettled_requests,
        written_off_excess=money_wire.money(credit.written_off_excess_pico_usd),
        written_off_unknown=money_wire.money(credit.written_off_unknown_pico_usd),
    )
