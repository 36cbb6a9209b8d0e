"""`tollhouse org`: organizations, which only the operator opens and ends."""

from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.api import wire
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import OrganizationId, time_ordered_uuid
from tollhouse.cli import org_checks, output, session
from tollhouse.cli.arguments import (
    IDENTIFIER,
    LISTED_MAX,
    NAME,
    example,
    json_option,
    yes_option,
)
from tollhouse.cli.session import Session
from tollhouse.contract.listing import ListPage
from tollhouse.organizations import service
from tollhouse.organizations import types as nouns
from tollhouse.organizations.types import OrganizationStatus

COLUMNS: Final = ("id", "name", "status", "created_at")


class Organization(Struct, frozen=True, kw_only=True):
    """As this command shows it; the API has no such object."""

    id: str
    object: Literal["organization"] = "organization"
    name: str
    status: str
    created_at: int


class OrganizationList(ListPage, frozen=True, kw_only=True):
    """All organizations of the deployment."""

    data: list[Organization]


def shown(organization: nouns.Organization) -> Organization:
    """In the form of the API's other objects."""
    return Organization(
        id=str(organization.id),
        name=organization.name,
        status=organization.status.value,
        created_at=unix_seconds(organization.created_at),
    )


async def create_organization(operator: Session, name: str) -> nouns.Organization:
    """Open an organization under a new ID."""
    organization_id = OrganizationId(time_ordered_uuid())
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        return await service.create(tx, name=name)


@click.group("org", epilog=example("tollhouse org list"))
def command() -> None:
    """Open, list, suspend and close organizations."""


command.add_command(org_checks.command)


@command.command(epilog=example('tollhouse org create "Example Ltd"'))
@click.argument("name", type=NAME)
@json_option
@click.pass_obj
def create(settings_path: Path, *, name: str, as_json: bool) -> None:
    """Open an organization. Names need not be unique."""
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
    """End an organization and all its keys for good."""
    question = f"Close organization {organization} for good, with all its keys?"
    output.confirm(question, yes=yes, as_json=as_json)
    _set_status(settings_path, organization, OrganizationStatus.CLOSED, as_json=as_json)


def _set_status(
    settings_path: Path, organization: UUID, status: OrganizationStatus, *, as_json: bool
) -> None:
    async def change(operator: Session) -> nouns.Organization:
        authority = operator.authority(OrganizationId(organization))
        async with operator.database.mutation(authority) as tx:
            return await service.set_status(tx, status)

    output.show(shown(session.run(settings_path, change)), as_json=as_json)
