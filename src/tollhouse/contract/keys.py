"""The wire types of project keys and Admin keys. IDs are UUIDs."""

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import (
    AdminPermissions,
    AllowedModels,
    CustomerPermissions,
    ExpiresAt,
    Name,
    OverlapSeconds,
    Uuid,
)
from tollhouse.contract.listing import ListPage
from tollhouse.contract.origins import GIVEN, extension, given

ProjectKeyStatus = Literal["active", "revoked", "expired", "suspended"]


class CreateProjectKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of a creation under `/v1`. The key gets the default permissions and never expires."""

    mark: ClassVar[Meta] = given(additionalProperties="OQ-198")

    name: Annotated[Name, given(bounds="OQ-92", pattern="OQ-149")]


class CreateManagedProjectKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of a creation under `/manage/v1`.

    Without `allowed_models`, or with null, the key may use every model of its project.
    """

    mark: ClassVar[Meta] = extension("OQ-86")

    name: Annotated[Name, extension("OQ-149")]
    expires_at: Annotated[ExpiresAt | UnsetType | None, extension("OQ-151")] = UNSET
    permissions: CustomerPermissions | UnsetType = UNSET
    allowed_models: AllowedModels | UnsetType | None = UNSET


class RotateProjectKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The old value of the key works for `overlap_seconds` more; 0 ends it at once."""

    mark: ClassVar[Meta] = extension("OQ-150")

    overlap_seconds: OverlapSeconds


class ProjectKeyOwner(Struct, frozen=True, kw_only=True):
    """The project that owns a key."""

    mark: ClassVar[Meta] = GIVEN

    id: Uuid
    type: Literal["project"] = "project"
    name: str


class ProjectKey(Struct, frozen=True, kw_only=True):
    """A project key. `value` is present only in the response that creates it, and in its replay."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["organization.project.api_key"] = "organization.project.api_key"
    id: Uuid
    name: str
    redacted_value: str
    value: str | UnsetType = UNSET
    created_at: int
    last_used_at: Annotated[int | None, given(null="OQ-91")]
    expires_at: Annotated[int | None, given(null="OQ-91")]
    owner: ProjectKeyOwner
    status: ProjectKeyStatus
    permissions: list[str]


class ManagedProjectKey(ProjectKey, frozen=True, kw_only=True):
    """A project key with its models. `allowed_models` is null if the key may use every model."""

    mark: ClassVar[Meta] = extension("OQ-86")

    allowed_models: list[str] | None


class ProjectKeyList(ListPage, frozen=True, kw_only=True):
    """A page of a project's keys, without their values."""

    mark: ClassVar[Meta] = extension("OQ-87", "OQ-154")

    data: list[ManagedProjectKey]


class CreateAdminKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without `permissions` the new key gets all. Only a key with all can grant all."""

    mark: ClassVar[Meta] = extension("OQ-148")

    name: Annotated[Name, extension("OQ-149")]
    permissions: AdminPermissions | UnsetType = UNSET
    expires_at: Annotated[ExpiresAt | UnsetType | None, extension("OQ-151")] = UNSET


class NarrowAdminKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The permissions that the key keeps. It must have all of them already."""

    mark: ClassVar[Meta] = extension("OQ-205")

    permissions: AdminPermissions


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
    """A new Admin key. `value` is present in the response that creates it, and in its replay."""

    mark: ClassVar[Meta] = extension("OQ-148")

    value: str | UnsetType = UNSET


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
