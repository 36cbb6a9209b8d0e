"""Keys as stored and as looked up, and the callers that use them."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from tollhouse.base.ids import AdminKeyId, OrganizationId, ProjectId, ProjectKeyId, SessionId
from tollhouse.base.permissions import Permission
from tollhouse.base.traffic import ScopedLimits


class KeyKind(StrEnum):
    """Whether a key belongs to a project or is an Admin key of the organization."""

    PROJECT = "project"
    ADMIN = "admin"


class KeyStatus(StrEnum):
    """The state of a project key; computed when it is read, because time alone expires keys."""

    ACTIVE = "active"
    REVOKED = "revoked"
    EXPIRED = "expired"
    SUSPENDED = "suspended"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProjectKey:
    """A key of a project, without its secret.

    `previous_value_expires_at` is when the value before the last rotation ends or ended.
    """

    organization_id: OrganizationId
    id: ProjectKeyId
    project_id: ProjectId
    project_name: str
    name: str
    redacted_value: str
    permissions: tuple[str, ...]
    allowed_models: tuple[str, ...] | None
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    suspended_at: datetime | None
    revoked_at: datetime | None
    previous_value_expires_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AdminKey:
    """A key for the Admin routes. `permissions` of None means all permissions."""

    organization_id: OrganizationId
    id: AdminKeyId
    name: str
    redacted_value: str
    permissions: tuple[str, ...] | None
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewSecret:
    """A new secret: `value`, which is shown once, and the fields that are stored."""

    value: str
    redacted_value: str
    digest: bytes


class Customer(Struct, frozen=True, kw_only=True, eq=False):
    """The caller with a project key.

    It is equal only to itself, so that what is decided for a customer can be stored by it.
    """

    organization_id: OrganizationId
    project_id: ProjectId
    key_id: ProjectKeyId
    allowed_models: frozenset[str] | None
    granted_checks: frozenset[str]
    policy_version: int
    catalog_version: int
    limits: ScopedLimits


@dataclass(frozen=True, kw_only=True, slots=True)
class Admin:
    """The caller of Admin routes: an Admin key, or a person who signed in to the console.

    `key_id` of a person is the person's ID, and only a person has a name. `session_id` names the
    console session by which the caller acts, if it does not send its key.
    """

    organization_id: OrganizationId
    key_id: AdminKeyId
    permissions: frozenset[str]
    holds_all: bool
    expires_at: datetime | None
    session_id: SessionId | None = None
    person_name: str | None = None

    def holds(self, permission: str) -> bool:
        """Return whether the key has the permission."""
        return self.holds_all or permission in self.permissions


Caller = Customer | Admin


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownKey:
    """The result of looking up a secret: all data that authorization needs.

    `allowed_models` are those that both the key and its project allow. `caller` is what a request
    with this key acts as, once it is authorized.
    """

    kind: KeyKind
    organization_id: OrganizationId
    organization_status: str
    policy_version: int
    catalog_version: int
    admin_key_id: AdminKeyId | None
    project_key_id: ProjectKeyId | None
    project_id: ProjectId | None
    is_project_archived: bool
    permissions: frozenset[str]
    holds_all: bool
    allowed_models: frozenset[str] | None
    granted_checks: frozenset[str]
    is_suspended: bool
    is_revoked: bool
    expires_at: datetime | None
    limits: ScopedLimits
    is_moved: bool = False
    move_cell: str | None = None
    frozen_until: datetime | None = None
    caller: Caller = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "caller", _caller_of(self))


def _caller_of(known: KnownKey) -> Caller:
    if known.kind is KeyKind.ADMIN:
        assert known.admin_key_id is not None
        return Admin(
            organization_id=known.organization_id,
            key_id=known.admin_key_id,
            permissions=known.permissions,
            holds_all=known.holds_all,
            expires_at=known.expires_at,
        )
    assert known.project_key_id is not None
    assert known.project_id is not None
    return Customer(
        organization_id=known.organization_id,
        project_id=known.project_id,
        key_id=known.project_key_id,
        allowed_models=known.allowed_models,
        granted_checks=known.granted_checks,
        policy_version=known.policy_version,
        catalog_version=known.catalog_version,
        limits=known.limits,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class RequiredPermission:
    """The kind of key and the permission that a route requires.

    `survives_archive` also allows keys of archived projects.
    """

    kind: KeyKind
    permission: Permission
    survives_archive: bool
