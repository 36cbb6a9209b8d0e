"""`tollhouse org`: organizations, and the checks that were granted to them."""

from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import click
from msgspec import Struct

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
from tollhouse.cli.session import Session
from tollhouse.contract.listing import ListPage
from tollhouse.organizations import service
from tollhouse.organizations import types as nouns
from tollhouse.organizations.types import OrganizationStatus

COLUMNS: Final = ("id", "name", "status", "created_at")
CHECK_COLUMNS: Final = ("id", "granted_at")


class ShownOrganization(Struct, frozen=True, kw_only=True):
    """An organization as this command shows it; the API has no such object."""

    id: str
    object: Literal["organization"] = "organization"
    name: str
    status: str
    created_at: int


class OrganizationList(ListPage, frozen=True, kw_only=True):
    """All organizations of the deployment."""

    data: list[ShownOrganization]


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
@click.argument("name", type=NAME)
@json_option
@click.pass_obj
def create(settings_path: Path, *, name: str, as_json: bool) -> None:
    """Create an organization. Names need not be unique."""
    created = session.run(settings_path, lambda operator: create_organization(operator, name))
    output.show(shown(created), as_json=as_json)


@command.command("list", epilog=example("tollhouse org list --json"))
@json_option
@click.pass_obj
def list_(settings_path: Path, *, as_json: bool) -> None:
    """List all organizations in the order of their creation."""

    async def read(operator: Session) -> list[nouns.Organization]:
        async with operator.database.transaction() as tx:
            return await service.page(tx, after=None, limit=LISTED_MAX + 1)

    found = session.run(settings_path, read)
    page = wire.page(OrganizationList, found, LISTED_MAX, shown)
    output.show_list(page, COLUMNS, as_json=as_json)


@command.command(epilog=example("tollhouse org show ORGANIZATION_ID"))
@click.argument("organization", type=IDENTIFIER)
@json_option
@click.pass_obj
def show(settings_path: Path, *, organization: UUID, as_json: bool) -> None:
    """Show one organization."""
    found = session.run(settings_path, lambda operator: operator.organization(organization))
    output.show(shown(found), as_json=as_json)


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
