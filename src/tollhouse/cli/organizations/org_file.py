"""An organization with its projects, keys, credit and caps, created from one TOML file."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Literal
from uuid import UUID

import click
import msgspec
from msgspec import Meta, Struct

from tollhouse.base.ids import (
    AdminKeyId,
    GrantId,
    OrganizationId,
    ProjectId,
    ProjectKeyId,
    time_ordered_uuid,
)
from tollhouse.base.money import PicoUsd, from_decimal_string
from tollhouse.cli import output, session
from tollhouse.cli.arguments import example, expiry, json_option
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import (
    ALERT_PERCENT_DEFAULT,
    ALLOWED_MODELS_MAX,
    AlertPercent,
    Name,
    Usd,
)
from tollhouse.contract.spending_limits import SpendingPeriod
from tollhouse.keys import rules
from tollhouse.keys import service as keys
from tollhouse.keys.types import KeyKind, NewSecret
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import CapId, CapScope, GrantKind, Period
from tollhouse.organizations import service as organizations
from tollhouse.organizations.types import Organization
from tollhouse.projects import service as projects
from tollhouse.storage.database import Mutations

PROJECTS_MAX: Final = 100
KEYS_MAX: Final = 1_000
KEY_COLUMNS: Final = ("type", "project", "name", "value")
FILE_BYTES_MAX: Final = 1_000_000


class DeclaredCap(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cap of the organization, project or key in whose table it stands."""

    period: SpendingPeriod
    limit: Usd
    alert_percent: AlertPercent = ALERT_PERCENT_DEFAULT


class DeclaredKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key of a project. Without models it may use every model."""

    name: Name
    models: Annotated[tuple[Name, ...], Meta(max_length=ALLOWED_MODELS_MAX)] = ()
    expires_in_days: Annotated[int, Meta(ge=1, le=36_500)] | None = None
    caps: tuple[DeclaredCap, ...] = ()


class DeclaredProject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A project with its keys."""

    name: Name
    caps: tuple[DeclaredCap, ...] = ()
    keys: Annotated[tuple[DeclaredKey, ...], Meta(max_length=KEYS_MAX)] = ()


class DeclaredAdminKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An Admin key with all permissions."""

    name: Name


class DeclaredOrganization(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    name: Name
    credit: Usd | None = None
    credit_reason: Name = "created with the organization"
    caps: tuple[DeclaredCap, ...] = ()
    admin_keys: Annotated[tuple[DeclaredAdminKey, ...], Meta(max_length=PROJECTS_MAX)] = ()
    projects: Annotated[tuple[DeclaredProject, ...], Meta(max_length=PROJECTS_MAX)] = ()


class CreatedKey(Struct, frozen=True, kw_only=True):
    """A key with its value, which nothing shows again."""

    id: str
    type: Literal["admin_api_key", "project_api_key"]
    name: str
    project: str | None
    project_id: str | None
    value: str


class CreatedOrganization(Struct, frozen=True, kw_only=True):
    """What was created from a file."""

    id: str
    object: Literal["organization.created"] = "organization.created"
    name: str
    data: list[CreatedKey]


def read(path: Path) -> DeclaredOrganization:
    """Return the declaration in a file, or raise `UsageError` with the place of the fault."""
    text = path.read_bytes()[: FILE_BYTES_MAX + 1]
    if len(text) > FILE_BYTES_MAX:
        message = f"{path} is larger than {FILE_BYTES_MAX} bytes."
        raise click.UsageError(message)
    try:
        declared = msgspec.convert(tomllib.loads(text.decode()), DeclaredOrganization)
        _refuse_repeated(declared)
    except (ValueError, msgspec.ValidationError) as fault:
        message = f"{path} declares no organization: {fault}"
        raise click.UsageError(message) from None
    return declared


def _refuse_repeated(declared: DeclaredOrganization) -> None:
    """Raise `ValueError` if a period has two caps, or if two projects or keys have one name."""
    capped = [declared.caps]
    named = [[project.name for project in declared.projects]]
    for project in declared.projects:
        capped += [project.caps, *(key.caps for key in project.keys)]
        named.append([key.name for key in project.keys])
    for names in (*named, *([cap.period for cap in caps] for caps in capped)):
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            message = f"'{repeated}' stands there twice."
            raise ValueError(message)
    if sum(len(project.keys) for project in declared.projects) > KEYS_MAX:
        message = f"more than {KEYS_MAX} keys."
        raise ValueError(message)


async def create(operator: Session, declared: DeclaredOrganization) -> CreatedOrganization:
    """Create everything that is declared in one transaction, with an audit row for each part."""
    secrets = {
        kind: [operator.mint(kind) for _ in range(count)]
        for kind, count in (
            (KeyKind.ADMIN, len(declared.admin_keys)),
            (KeyKind.PROJECT, sum(len(project.keys) for project in declared.projects)),
        )
    }
    organization_id = OrganizationId(time_ordered_uuid())
    async with operator.database.mutations(operator.authority(organization_id)) as changes:
        async with changes.one() as tx:
            organization = await organizations.create(tx, name=declared.name)
        created = await _create_parts(changes, organization, declared, secrets)
    return CreatedOrganization(id=str(organization.id), name=organization.name, data=created)


async def _create_parts(
    changes: Mutations,
    organization: Organization,
    declared: DeclaredOrganization,
    secrets: dict[KeyKind, list[NewSecret]],
) -> list[CreatedKey]:
    if declared.credit is not None:
        async with changes.one() as tx:
            await ledger.grant(
                tx,
                grant_id=GrantId(time_ordered_uuid()),
                kind=GrantKind.PROMOTIONAL,
                amount=_amount(declared.credit),
                reason=declared.credit_reason,
            )
    await _cap(changes, CapScope.ORGANIZATION, organization.id, declared.caps)
    created: list[CreatedKey] = []
    for admin, secret in zip(declared.admin_keys, secrets[KeyKind.ADMIN], strict=True):
        key_id = AdminKeyId(time_ordered_uuid())
        async with changes.one() as tx:
            await keys.create_admin_key(
                tx, secret, key_id=key_id, name=admin.name, permissions=None
            )
        created.append(_created(key_id, admin.name, secret, None))
    remaining = iter(secrets[KeyKind.PROJECT])
    for project in declared.projects:
        created += await _create_project(changes, project, [next(remaining) for _ in project.keys])
    return created


async def _create_project(
    changes: Mutations, declared: DeclaredProject, secrets: Sequence[NewSecret]
) -> list[CreatedKey]:
    project_id = ProjectId(time_ordered_uuid())
    async with changes.one() as tx:
        await projects.create(tx, project_id=project_id, name=declared.name)
    await _cap(changes, CapScope.PROJECT, project_id, declared.caps)
    created: list[CreatedKey] = []
    for key, secret in zip(declared.keys, secrets, strict=True):
        key_id = ProjectKeyId(time_ordered_uuid())
        async with changes.one() as tx:
            await keys.create_project_key(
                tx,
                secret,
                key_id=key_id,
                project=(project_id, declared.name),
                name=key.name,
                permissions=rules.DEFAULT_CUSTOMER_PERMISSIONS,
                allowed_models=key.models or None,
                expires_at=expiry(key.expires_in_days, now=tx.now),
            )
        await _cap(changes, CapScope.KEY, key_id, key.caps)
        created.append(_created(key_id, key.name, secret, (project_id, declared.name)))
    return created


async def _cap(
    changes: Mutations, scope: CapScope, scope_id: UUID, caps: Sequence[DeclaredCap]
) -> None:
    for cap in caps:
        place = CapId(scope=scope, scope_id=scope_id, period=Period(cap.period))
        async with changes.one() as tx:
            await ledger.set_cap(
                tx, place, limit_pico_usd=_amount(cap.limit), alert_percent=cap.alert_percent
            )


def _created(
    key_id: UUID, name: str, secret: NewSecret, project: tuple[ProjectId, str] | None
) -> CreatedKey:
    return CreatedKey(
        id=str(key_id),
        type="admin_api_key" if project is None else "project_api_key",
        name=name,
        project=None if project is None else project[1],
        project_id=None if project is None else str(project[0]),
        value=secret.value,
    )


def _amount(text: str) -> PicoUsd:
    amount = from_decimal_string(text)
    assert amount is not None, "the declaration's pattern is the rule of base.money, without a sign"
    return amount


@click.command("create-from", epilog=example("tollhouse org create-from organization.toml"))
@click.argument(
    "path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@json_option
@click.pass_obj
def create_from(settings_path: Path, *, path: Path, as_json: bool) -> None:
    """Create an organization with its projects, keys, credit and caps from a TOML file.

    Everything is created in one transaction. The values of its keys are shown only here.
    """
    declared = read(path)
    made = session.run(settings_path, lambda operator: create(operator, declared))
    output.say(f"Created organization {made.id}.", as_json=as_json)
    if made.data or as_json:
        output.show_list(made, KEY_COLUMNS, as_json=as_json)
    if made.data:
        output.say(output.SHOWN_ONCE, as_json=as_json)
