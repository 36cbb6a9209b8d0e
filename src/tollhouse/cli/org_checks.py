"""`tollhouse org checks`: what an organization was found to fulfil."""

from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.api import wire
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import OrganizationId
from tollhouse.cli import output, session
from tollhouse.cli.arguments import CHECK, IDENTIFIER, example, json_option
from tollhouse.cli.session import Session
from tollhouse.contract.listing import ListPage
from tollhouse.organizations import service
from tollhouse.organizations import types as nouns

COLUMNS: Final = ("id", "granted_at")


class Check(Struct, frozen=True, kw_only=True):
    """As this command shows it; its name is its ID."""

    id: str
    object: Literal["organization.check"] = "organization.check"
    granted_at: int


class CheckList(ListPage, frozen=True, kw_only=True):
    """All checks of an organization."""

    data: list[Check]


class CheckDeleted(Struct, frozen=True, kw_only=True):
    """A check that the organization no longer has."""

    id: str
    object: Literal["organization.check.deleted"] = "organization.check.deleted"
    deleted: bool


def _shown(check: nouns.GrantedCheck) -> Check:
    return Check(id=check.name, granted_at=unix_seconds(check.granted_at))


@click.group("checks", epilog=example("tollhouse org checks list ORGANIZATION_ID"))
def command() -> None:
    """Grant and revoke what models may require of an organization."""


@command.command(epilog=example("tollhouse org checks grant ORGANIZATION_ID identity"))
@click.argument("organization", type=IDENTIFIER)
@click.argument("check", type=CHECK)
@json_option
@click.pass_obj
def grant(settings_path: Path, *, organization: UUID, check: str, as_json: bool) -> None:
    """Grant a check: models that require it are unlocked within a second."""

    async def change(operator: Session) -> nouns.GrantedCheck:
        authority = operator.authority(OrganizationId(organization))
        async with operator.database.mutation(authority) as tx:
            return await service.grant_check(tx, check)

    output.show(_shown(session.run(settings_path, change)), as_json=as_json)


@command.command(epilog=example("tollhouse org checks revoke ORGANIZATION_ID identity"))
@click.argument("organization", type=IDENTIFIER)
@click.argument("check", type=CHECK)
@json_option
@click.pass_obj
def revoke(settings_path: Path, *, organization: UUID, check: str, as_json: bool) -> None:
    """Take a check back: models that require it are locked within a second."""

    async def change(operator: Session) -> None:
        authority = operator.authority(OrganizationId(organization))
        async with operator.database.mutation(authority) as tx:
            await service.revoke_check(tx, check)

    session.run(settings_path, change)
    output.show(CheckDeleted(id=check, deleted=True), as_json=as_json)


@command.command("list", epilog=example("tollhouse org checks list ORGANIZATION_ID --json"))
@click.argument("organization", type=IDENTIFIER)
@json_option
@click.pass_obj
def list_(settings_path: Path, *, organization: UUID, as_json: bool) -> None:
    """List the checks of an organization by name."""

    async def read(operator: Session) -> list[nouns.GrantedCheck]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            return await service.checks(tx, owner.id)

    page = wire.page(CheckList, session.run(settings_path, read), service.CHECKS_MAX, _shown)
    output.show_list(page, COLUMNS, as_json=as_json)
