"""`tollhouse org`: organizations, and the checks that were granted to them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.api.wire import money as money_wire
from tollhouse.api.wire import resources as wire
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import OrganizationId, time_ordered_uuid
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    CHECK,
    IDENTIFIER,
    LISTED_MAX,
    NAME,
    example,
    json_option,
    yes_option,
)
from tollhouse.cli.moves import commands as moves
from tollhouse.cli.organizations import org_file
from tollhouse.cli.session import Session
from tollhouse.contract.listing import ListPage
from tollhouse.contract.money import Money
from tollhouse.ledger import overview
from tollhouse.ledger.overview import OrganizationMoney
from tollhouse.organizations import service
from tollhouse.organizations import types as nouns
from tollhouse.organizations.types import OrganizationStatus
from tollhouse.storage.database import Transaction

COLUMNS: Final = (
    *("id", "name", "status", "available", "spent", "spent_this_month", "written_off"),
    *("unsettled", "last_charged_at", "created_at"),
)
KEY_COLUMNS: Final = ("type", "project", "name", "value")
PAGE_SIZE: Final = 1_000
CHECK_COLUMNS: Final = ("id", "granted_at")


class ShownOrganization(Struct, frozen=True, kw_only=True):
    """An organization as this command shows it; the API has no such object."""

    id: str
    object: Literal["organization"] = "organization"
    name: str
    status: str
    created_at: int


class OrganizationWithMoney(ShownOrganization, frozen=True, kw_only=True):
    """An organization with its credit and spending.

    `last_charged_at` is the begin of the hour in which its newest charged request was admitted.
    """

    available: Money
    spent: Money
    spent_this_month: Money
    held: Money
    unsettled: Money
    unsettled_requests: int
    written_off: Money
    last_charged_at: int | None


class OrganizationList(ListPage, frozen=True, kw_only=True):
    """A page of the organizations of the deployment."""

    data: list[OrganizationWithMoney]


class ShownCheck(Struct, frozen=True, kw_only=True):
    """A granted check; its name is its ID."""

    id: str
    object: Literal["organization.check"] = "organization.check"
    granted_at: int


class CheckList(ListPage, frozen=True, kw_only=True):
    """All checks of an organization."""

    data: list[ShownCheck]


class CheckDeleted(Struct, frozen=True, kw_only=True):
    """A check that was revoked."""

    id: str
    object: Literal["organization.check.deleted"] = "organization.check.deleted"
    deleted: bool


def shown(organization: nouns.Organization) -> ShownOrganization:
    """Return the organization in the form of the API's other objects."""
    return ShownOrganization(
        id=str(organization.id),
        name=organization.name,
        status=organization.status.value,
        created_at=unix_seconds(organization.created_at),
    )


def _with_money(found: nouns.Organization, money: OrganizationMoney) -> OrganizationWithMoney:
    credit, last = money.credit, money.last_charged_at
    return OrganizationWithMoney(
        id=str(found.id),
        name=found.name,
        status=found.status.value,
        created_at=unix_seconds(found.created_at),
        available=money_wire.money(credit.available_pico_usd),
        spent=money_wire.money(credit.settled_pico_usd),
        spent_this_month=money_wire.money(money.month_pico_usd),
        held=money_wire.money(credit.reserved_pico_usd),
        unsettled=money_wire.money(credit.unsettled_pico_usd),
        unsettled_requests=credit.unsettled_requests,
        written_off=money_wire.money(credit.written_off_pico_usd),
        last_charged_at=None if last is None else unix_seconds(last),
    )


def _shown_check(check: nouns.GrantedCheck) -> ShownCheck:
    return ShownCheck(id=check.name, granted_at=unix_seconds(check.granted_at))


async def create_organization(operator: Session, name: str) -> nouns.Organization:
    """Create an organization under a new ID."""
    organization_id = OrganizationId(time_ordered_uuid())
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        return await service.create(tx, name=name)


@click.group("org", epilog=example("tollhouse org list"))
def command() -> None:
    """Create, list, suspend, close and move organizations."""


@command.command(epilog=example('tollhouse org create "Example Ltd"'))
@click.argument("name", type=NAME, required=False)
@click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A TOML file with the organization, its projects, keys, credit and caps.",
)
@json_option
@click.pass_obj
def create(settings_path: Path, *, name: str | None, path: Path | None, as_json: bool) -> None:
    """Create an organization. Names need not be unique.

    With --file, everything that the file declares is created in one transaction. The values of its
    keys are shown only here.
    """
    if (name is None) == (path is None):
        message = "Give either a name or --file."
        raise click.UsageError(message)
    if path is not None:
        declared = org_file.read(path)
        made = session.run(settings_path, lambda operator: org_file.create(operator, declared))
        output.say(f"Created organization {made.id}.", as_json=as_json)
        if made.data or as_json:
            output.show_list(made, KEY_COLUMNS, as_json=as_json)
        if made.data:
            output.say(output.SHOWN_ONCE, as_json=as_json)
    elif name is not None:
        created = session.run(settings_path, lambda operator: create_organization(operator, name))
        output.show(shown(created), as_json=as_json)


@command.command("list", epilog=example("tollhouse org list --json"))
@click.option("--after", type=IDENTIFIER, help="Go on after this ID: the last one of a page.")
@click.option(
    "--limit",
    type=click.IntRange(1, LISTED_MAX),
    default=PAGE_SIZE,
    help="The most organizations to list.",
)
@json_option
@click.pass_obj
def list_(settings_path: Path, *, after: UUID | None, limit: int, as_json: bool) -> None:
    """List organizations in the order of their creation, with credit and spending."""

    async def read(operator: Session) -> list[OrganizationWithMoney]:
        async with operator.database.transaction() as tx:
            last = None if after is None else OrganizationId(after)
            found = await service.page(tx, after=last, limit=limit + 1)
            return await _with_all_money(operator, tx, found)

    found = session.run(settings_path, read)
    page = wire.page(OrganizationList, found, limit, lambda one: one)
    output.show_list(page, COLUMNS, as_json=as_json)


async def _with_all_money(
    operator: Session, tx: Transaction, found: Sequence[nouns.Organization]
) -> list[OrganizationWithMoney]:
    ids = [organization.id for organization in found]
    money = await overview.money_of(tx, ids, now=operator.clock.now())
    return [_with_money(organization, money[organization.id]) for organization in found]


@command.command(epilog=example("tollhouse org show ORGANIZATION_ID"))
@click.argument("organization", type=IDENTIFIER)
@json_option
@click.pass_obj
def show(settings_path: Path, *, organization: UUID, as_json: bool) -> None:
    """Show one organization with its credit and spending."""

    async def read(operator: Session) -> OrganizationWithMoney:
        found = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            (one,) = await _with_all_money(operator, tx, [found])
        return one

    output.show(session.run(settings_path, read), as_json=as_json)


@command.command(epilog=example("tollhouse org suspend ORGANIZATION_ID"))
@click.argument("organization", type=IDENTIFIER)
@json_option
@click.pass_obj
def suspend(settings_path: Path, *, organization: UUID, as_json: bool) -> None:
    """Stop all keys of an organization until it is resumed."""
    _set_status(settings_path, organization, OrganizationStatus.SUSPENDED, as_json=as_json)


@command.command(epilog=example("tollhouse org resume ORGANIZATION_ID"))
@click.argument("organization", type=IDENTIFIER)
@json_option
@click.pass_obj
def resume(settings_path: Path, *, organization: UUID, as_json: bool) -> None:
    """Let the keys of a suspended organization work again."""
    _set_status(settings_path, organization, OrganizationStatus.ACTIVE, as_json=as_json)


@command.command(epilog=example("tollhouse org close ORGANIZATION_ID"))
@click.argument("organization", type=IDENTIFIER)
@yes_option
@json_option
@click.pass_obj
def close(settings_path: Path, *, organization: UUID, yes: bool, as_json: bool) -> None:
    """Close an organization for good, with all its keys."""
    question = f"Close organization {organization} for good, with all its keys?"
    output.confirm(question, yes=yes, as_json=as_json)
    _set_status(settings_path, organization, OrganizationStatus.CLOSED, as_json=as_json)


@command.group(epilog=example("tollhouse org checks list ORGANIZATION_ID"))
def checks() -> None:
    """Grant and revoke the checks that models can require of an organization."""


@checks.command("grant", epilog=example("tollhouse org checks grant ORGANIZATION_ID identity"))
@click.argument("organization", type=IDENTIFIER)
@click.argument("check", type=CHECK)
@json_option
@click.pass_obj
def grant_check(settings_path: Path, *, organization: UUID, check: str, as_json: bool) -> None:
    """Grant a check. Models that require it are unlocked within a second."""
    granted = session.change(settings_path, organization, lambda tx: service.grant_check(tx, check))
    output.show(_shown_check(granted), as_json=as_json)


@checks.command("revoke", epilog=example("tollhouse org checks revoke ORGANIZATION_ID identity"))
@click.argument("organization", type=IDENTIFIER)
@click.argument("check", type=CHECK)
@json_option
@click.pass_obj
def revoke_check(settings_path: Path, *, organization: UUID, check: str, as_json: bool) -> None:
    """Revoke a check. Models that require it are locked within a second."""
    session.change(settings_path, organization, lambda tx: service.revoke_check(tx, check))
    output.show(CheckDeleted(id=check, deleted=True), as_json=as_json)


@checks.command("list", epilog=example("tollhouse org checks list ORGANIZATION_ID --json"))
@click.argument("organization", type=IDENTIFIER)
@json_option
@click.pass_obj
def list_checks(settings_path: Path, *, organization: UUID, as_json: bool) -> None:
    """List the checks of an organization by name."""
    found = session.read(settings_path, organization, service.checks)
    page = wire.page(CheckList, found, service.CHECKS_MAX, _shown_check)
    output.show_list(page, CHECK_COLUMNS, as_json=as_json)


def _set_status(
    settings_path: Path, organization: UUID, status: OrganizationStatus, *, as_json: bool
) -> None:
    changed = session.change(settings_path, organization, lambda tx: service.set_status(tx, status))
    output.show(shown(changed), as_json=as_json)


for _command in moves.COMMANDS:
    command.add_command(_command)
