"""The wire types of project keys and Admin keys. IDs are UUIDs."""

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import (
    ALERT_PERCENT_DEFAULT,
    AdminPermissions,
    AlertPercent,
    AllowedModels,
    CustomerPermissions,
    ExpiresAt,
    Name,
    OverlapSeconds,
    Uuid,
)
from tollhouse.contract.listing import ListPage
from tollhouse.contract.money import MoneyToSet
from tollhouse.contract.origins import GIVEN, extension, given
from tollhouse.contract.spending_limits import SpendingPeriod

ProjectKeyStatus = Literal["active", "revoked", "expired", "suspended"]


class CreateProjectKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of a creation under `/v1`. The key gets the default permissions and never expires."""

    mark: ClassVar[Meta] = given(additionalProperties="OQ-198")

    name: Annotated[Name, given(bounds="OQ-92", pattern="OQ-149")]


class KeySpendingLimit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A spending limit of a new key."""

    mark: ClassVar[Meta] = extension("OQ-170")

    limit: MoneyToSet
    """The amount that the key may spend in a period."""
    period: SpendingPeriod = "month"
    """The UTC calendar period after which spending counts from zero; `lifetime` never ends."""
    alert_percent: AlertPercent = ALERT_PERCENT_DEFAULT
    """The share of the limit, in percent, at which an alert is raised."""


class CreateManagedProjectKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of a creation under `/manage/v1`."""

    mark: ClassVar[Meta] = extension("OQ-86")

    name: Annotated[Name, extension("OQ-149")]
    expires_at: Annotated[ExpiresAt | UnsetType | None, extension("OQ-151")] = UNSET
    """When the key ends, in Unix seconds; null or absent for never."""
    permissions: CustomerPermissions | UnsetType = UNSET
    allowed_models: AllowedModels | UnsetType | None = UNSET
    """The only models that the key may use; null or absent for all of its project."""
    spending_limit: Annotated[KeySpendingLimit | UnsetType | None, extension("OQ-170")] = UNSET
    """What the key may spend, set together with it; needs `spending_limits:write`."""


class RotateProjectKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Gives a key a new value."""

    mark: ClassVar[Meta] = extension("OQ-150")

    overlap_seconds: OverlapSeconds
    """How long the old value works on; 0 ends it at once."""


class ProjectKeyOwner(Struct, frozen=True, kw_only=True):
    """The project that owns a key."""

    mark: ClassVar[Meta] = GIVEN

    id: Uuid
    type: Literal["project"] = "project"
    name: str


class ProjectKey(Struct, frozen=True, kw_only=True):
    """A key for inference."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["organization.project.api_key"] = "organization.project.api_key"
    id: Uuid
    name: str
    redacted_value: str
    value: str | UnsetType = UNSET
    """The secret, only in the answer that creates the key and in its replay."""
    created_at: int
    last_used_at: Annotated[int | None, given(null="OQ-91")]
    expires_at: Annotated[int | None, given(null="OQ-91")]
    owner: ProjectKeyOwner
    status: ProjectKeyStatus
    """Whether the key works: only while it is `active`."""
    permissions: list[str]


class ManagedProjectKey(ProjectKey, frozen=True, kw_only=True):
    """A key for inference, as the management extension shows it."""

    mark: ClassVar[Meta] = extension("OQ-86")

    allowed_models: list[str] | None
    previous_value_expires_at: Annotated[int | None, extension("OQ-150")]
    """Until when the value before the last rotation works too, or null if it does not."""


class ProjectKeyList(ListPage, frozen=True, kw_only=True):
    """A page of a project's keys, without their values."""

    mark: ClassVar[Meta] = extension("OQ-87", "OQ-154")

    data: list[ManagedProjectKey]


class CreateAdminKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of a creation. Only a key with all permissions can grant all."""

    mark: ClassVar[Meta] = extension("OQ-148")

    name: Annotated[Name, extension("OQ-149")]
    permissions: AdminPermissions | UnsetType = UNSET
    """The operations that the key allows; without it, all."""
    expires_at: Annotated[ExpiresAt | UnsetType | None, extension("OQ-151")] = UNSET
    """When the key ends, in Unix seconds; null or absent for never."""


class NarrowAdminKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The permissions that the key keeps. It must have all of them already."""

    mark: ClassVar[Meta] = extension("OQ-205")

    permissions: AdminPermissions
    """The permissions that the key keeps."""


class AdminKeyOwner(Struct, frozen=True, kw_only=True):
    """The organization that owns a key."""

    mark: ClassVar[Meta] = GIVEN

    id: Uuid
    type: Literal["organization"] = "organization"


class AdminKey(Struct, frozen=True, kw_only=True):
    """An Admin key, without its value."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["organization.admin_api_key"] = "organization.admin_api_key"
    id: Uuid
    name: str
    redacted_value: str
    created_at: int
    last_used_at: Annotated[int | None, given(null="OQ-91")]
    expires_at: Annotated[int | None, given(null="OQ-91")]
    owner: AdminKeyOwner
    permissions: list[str]


class CreatedAdminKey(AdminKey, frozen=True, kw_only=True):
    """An Admin key, as its creation shows it."""

    mark: ClassVar[Meta] = extension("OQ-148")

    value: str | UnsetType = UNSET
    """The secret, only in the answer that creates the key and in its replay."""


class AdminKeyList(ListPage, frozen=True, kw_only=True):
    """A page of the organization's Admin keys, without revoked ones."""

    mark: ClassVar[Meta] = GIVEN

    data: list[AdminKey]


class AdminKeyDeleted(Struct, frozen=True, kw_only=True):
    """A revoked Admin key. Revoking it again returns the same."""

    mark: ClassVar[Meta] = GIVEN

    id: Uuid
    object: Literal["organization.admin_api_key.deleted"] = "organization.admin_api_key.deleted"
    deleted: bool
