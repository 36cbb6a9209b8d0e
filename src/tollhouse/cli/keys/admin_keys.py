"""`tollhouse admin-key`: the Admin keys of an organization."""

from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.api.wire import resources as wire
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
REVOKES_ALL: Final = (
    "This key can revoke every other Admin key of the organization, and itself. You can always "
    "create a new one with `tollhouse admin-key create`."
)


async def create_admin_key(
    operator: Session,
    organization_id: OrganizationId,
    name: str,
    *,
    permissions: tuple[str, ...] = (),
    expires_in_days: int | None = None,
) -> tuple[AdminKey, NewSecret]:
    """Create an Admin key. Without permissions it has all, also those of later versions."""
    secret = operator.mint(KeyKind.ADMIN)
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
    help="Can be given several times. When left out, all.",
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
    output.say(output.SHOWN_ONCE, as_json=as_json)


@command.command("list", epilog=example("tollhouse admin-key list --json"))
@organization_option
@json_option
@click.pass_obj
def list_(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List the Admin keys that are not revoked."""
    found = session.read(
        settings_path,
        organization,
        lambda tx, owner: service.page_of_admin_keys(tx, owner, after=None, limit=LISTED_MAX + 1),
    )
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
    """Revoke an Admin key for good, even the last one."""
    output.confirm(f"Revoke Admin key {key} for good?", yes=yes, as_json=as_json)
    revoked = session.change(
        settings_path, organization, lambda tx: service.revoke_admin_key(tx, AdminKeyId(key))
    )
    output.show(AdminKeyDeleted(id=str(revoked.id), deleted=True), as_json=as_json)
