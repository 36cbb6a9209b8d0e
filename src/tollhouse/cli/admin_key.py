"""`tollhouse admin-key`: the keys with which an organization administers itself."""

from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.api import wire
from tollhouse.base.ids import AdminKeyId, OrganizationId, time_ordered_uuid
from tollhouse.base.permissions import Permission
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    IDENTIFIER,
    LISTED_MAX,
    NAME,
    example,
    expiry,
    expiry_option,
    json_option,
    organization_option,
    yes_option,
)
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import ADMIN_PERMISSION_NAMES
from tollhouse.contract.keys import AdminKeyDeleted, AdminKeyList
from tollhouse.keys import rules, service
from tollhouse.keys.types import AdminKey, KeyKind, NewSecret

COLUMNS: Final = ("id", "name", "redacted_value", "last_used_at", "expires_at")
SHOWN_ONCE: Final = "The value is shown only now."
REVOKES_ALL: Final = (
    "This key can revoke every other Admin key of the organization, and itself. "
    "'tollhouse admin-key create' can always make a new one."
)


async def create_admin_key(
    operator: Session,
    organization_id: OrganizationId,
    name: str,
    *,
    permissions: tuple[str, ...] = (),
    expires_in_days: int | None = None,
) -> tuple[AdminKey, NewSecret]:
    """Without permissions the key holds all, also those that come later."""
    secret = await operator.mint(KeyKind.ADMIN)
    async with operator.creation(organization_id) as tx:
        key = await service.create_admin_key(
            tx,
            secret,
            key_id=AdminKeyId(time_ordered_uuid()),
            name=name,
            permissions=rules.granted(None, tuple(sorted(set(permissions))) or None),
            expires_at=expiry(expires_in_days, now=tx.now),
        )
    return key, secret


@click.group("admin-key", epilog=example("tollhouse admin-key list"))
def command() -> None:
    """Create, list and revoke Admin keys."""


@command.command(epilog=example("tollhouse admin-key create --permission billing:read finance"))
@click.argument("name", type=NAME)
@organization_option
@click.option(
    "--permission",
    "permissions",
    type=click.Choice(ADMIN_PERMISSION_NAMES),
    multiple=True,
    help="May be given several times. All, when left out.",
)
@expiry_option
@json_option
@click.pass_obj
def create(
    settings_path: Path,
    *,
    name: str,
    organization: UUID | None,
    permissions: tuple[str, ...],
    expires_in_days: int | None,
    as_json: bool,
) -> None:
    """Create an Admin key. Its value is shown only here.

    A key with the permission admin_api_keys:revoke can revoke every other Admin key.
    """
    if Permission.ADMIN_API_KEYS_REVOKE in permissions:
        output.say(REVOKES_ALL, as_json=as_json)

    async def work(operator: Session) -> tuple[AdminKey, NewSecret]:
        owner = await operator.organization(organization)
        return await create_admin_key(
            operator,
            owner.id,
            name,
            permissions=permissions,
            expires_in_days=expires_in_days,
        )

    key, secret = session.run(settings_path, work)
    output.show(wire.created_admin_key(key, value=secret.value), as_json=as_json)
    output.say(SHOWN_ONCE, as_json=as_json)


@command.command("list", epilog=example("tollhouse admin-key list --json"))
@organization_option
@json_option
@click.pass_obj
def list_(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List the Admin keys that are not revoked."""

    async def read(operator: Session) -> list[AdminKey]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            return await service.page_of_admin_keys(tx, owner.id, after=None, limit=LISTED_MAX + 1)

    found = session.run(settings_path, read)
    page = wire.page(AdminKeyList, found, LISTED_MAX, wire.admin_key)
    output.show_list(page, COLUMNS, as_json=as_json)


@command.command(epilog=example("tollhouse admin-key revoke KEY_ID"))
@click.argument("key", type=IDENTIFIER)
@organization_option
@yes_option
@json_option
@click.pass_obj
def revoke(
    settings_path: Path, *, key: UUID, organization: UUID | None, yes: bool, as_json: bool
) -> None:
    """End an Admin key for good, be it the last one."""
    output.confirm(f"Revoke Admin key {key} for good?", yes=yes, as_json=as_json)

    async def work(operator: Session) -> AdminKey:
        owner = await operator.organization(organization)
        async with operator.database.mutation(operator.authority(owner.id)) as tx:
            return await service.revoke_admin_key(tx, AdminKeyId(key))

    revoked = session.run(settings_path, work)
    output.show(AdminKeyDeleted(id=str(revoked.id), deleted=True), as_json=as_json)
