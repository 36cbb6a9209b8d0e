"""`tollhouse credits`: the prepaid credit of an organization."""

from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.api import money_wire, wire
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
# Past usage enters with its credit, by a verb of its own.
KINDS: Final = [kind.value for kind in GrantKind if kind is not GrantKind.BACKFILL]


class Account(Credits, frozen=True, kw_only=True):
    """With what only the operator sees: the sums behind the balance, and what the house paid."""

    granted: Money
    used: Money
    unsettled_requests: int
    absorbed_excess: Money
    absorbed_unknown: Money


async def grant_credit(
    operator: Session,
    organization_id: OrganizationId,
    *,
    kind: GrantKind,
    amount: PicoUsd,
    reason: str,
) -> Grant:
    """Give credit under a new ID."""
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        return await service.grant(
            tx, grant_id=GrantId(time_ordered_uuid()), kind=kind, amount=amount, reason=reason
        )


@click.group("credits", epilog=example("tollhouse credits show"))
def command() -> None:
    """Grant credit, and see what is left of it."""


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
    help="Only a correction may be negative, and so take credit back.",
)
@click.option("--reason", type=NAME, required=True, help="Kept with the entry for good.")
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
    """Give an organization credit in US dollars.

    A negative amount stands last, behind `--`, so that it is not taken for an option.
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
    """Show the balance, what is held, and what the house paid."""

    async def read(operator: Session) -> Credit:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            return await service.credit(tx, owner.id)

    output.show(_account(session.run(settings_path, read)), as_json=as_json)


@command.command(epilog=example("tollhouse credits history"))
@organization_option
@json_option
@click.pass_obj
def history(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List every grant and correction, newest first."""

    async def read(operator: Session) -> list[Grant]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            return await service.page_grants(tx, owner.id, after=None, limit=LISTED_MAX + 1)

    found = session.run(settings_path, read)
    page = wire.page(CreditEntryList, found, LISTED_MAX, money_wire.credit_entry)
    output.show_list(page, COLUMNS, as_json=as_json)


def _account(credit: Credit) -> Account:
    seen = money_wire.credits_(credit)
    return Account(
        balance=seen.balance,
        available=seen.available,
        held=seen.held,
        unsettled=seen.unsettled,
        is_alerting=seen.is_alerting,
        granted=money_wire.money(credit.granted_pico_usd),
        used=money_wire.money(credit.settled_pico_usd),
        unsettled_requests=credit.unsettled_requests,
        absorbed_excess=money_wire.money(credit.absorbed_excess_pico_usd),
        absorbed_unknown=money_wire.money(credit.absorbed_unknown_pico_usd),
    )
