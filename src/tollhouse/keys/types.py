"""Keys as stored, as found at the door, and the callers that they stand for."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from tollhouse.base.ids import AdminKeyId, OrganizationId, ProjectId, ProjectKeyId
from tollhouse.base.permissions import Permission
from tollhouse.base.traffic import ScopedLimits


class KeyKind(StrEnum):
    """Who a key is for."""

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
    """A customer key of a project. Its secret is not part of it."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class AdminKey:
    """A key for the organization's own routes. `permissions` of nothing means all."""

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
    """A secret on its way to its only reader, with what is kept of it."""

    value: str
    redacted_value: str
    digest: bytes
    pepper_version: int


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownKey:
    """What the directory says of a secret: all that decides who the caller is.

    `allowed_models` are those that both the key and its project allow.
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


# Made for every request, which a Struct is in a tenth of the time.
class Customer(Struct, frozen=True, kw_only=True):
    """The holder of a project key, allowed to do what was asked."""

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
    """The holder of an Admin key, allowed to do what was asked."""

    organization_id: OrganizationId
    key_id: AdminKeyId
    permissions: frozenset[str]
    holds_all: bool
    expires_at: datetime | None


Caller = Customer | Admin


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """What a route asks of a key."""

    kind: KeyKind
    permission: Permission
    survives_archive: bool
