"""Bodies about project keys and Admin keys. IDs are UUIDs in text form."""

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
    """Body of the given creation: the key gets the default permissions and never expires."""

    mark: ClassVar[Meta] = given(additionalProperties="OQ-198")

    name: Annotated[Name, given(bounds="OQ-92", pattern="OQ-149")]


class CreateManagedProjectKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of the extension's creation.

    No `allowed_models`, or null, allows every model; a list names at least one.
    """

    mark: ClassVar[Meta] = extension("OQ-86")

    name: Annotated[Name, extension("OQ-149")]
    expires_at: Annotated[ExpiresAt | UnsetType | None, extension("OQ-151")] = UNSET
    permissions: CustomerPermissions | UnsetType = UNSET
    allowed_models: AllowedModels | UnsetType | None = UNSET


class RotateProjectKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The old secret works on for `overlap_seconds`; 0 ends it at once."""

    mark: ClassVar[Meta] = extension("OQ-150")

    overlap_seconds: OverlapSeconds


class ProjectKeyOwner(Struct, frozen=True, kw_only=True):
    """The project that a key belongs to."""

    mark: ClassVar[Meta] = GIVEN

    id: Uuid
    type: Literal["project"] = "project"
    name: str


class ProjectKey(Struct, frozen=True, kw_only=True):
    """`value` is there only at creation and on its replay."""

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
    """A project key as the management extension shows it; null as `allowed_models` means all."""

    mark: ClassVar[Meta] = extension("OQ-86")

    allowed_models: list[str] | None


class ProjectKeyList(ListPage, frozen=True, kw_only=True):
    """A page of a project's keys, none of them with its value."""

    mark: ClassVar[Meta] = extension("OQ-87", "OQ-154")

    data: list[ManagedProjectKey]


class CreateAdminKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without `permissions` the key holds all, which only a key with all may grant."""

    mark: ClassVar[Meta] = extension("OQ-148")

    name: Annotated[Name, extension("OQ-149")]
    permissions: AdminPermissions | UnsetType = UNSET
    expires_at: Annotated[ExpiresAt | UnsetType | None, extension("OQ-151")] = UNSET


class AdminKeyOwner(Struct, frozen=True, kw_only=True):
    """The organization that a key belongs to."""

    mark: ClassVar[Meta] = GIVEN

    id: Uuid
    type: Literal["organization"] = "organization"


class AdminKey(Struct, frozen=True, kw_only=True):
    """An Admin key as the list shows it, without its value."""

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
    """An Admin key at its creation and on its replay, with its value while that is shown."""

    mark: ClassVar[Meta] = extension("OQ-148")

    value: str | UnsetType = UNSET


class AdminKeyList(ListPage, frozen=True, kw_only=True):
    """A page of the organization's Admin keys that are not revoked."""

    mark: ClassVar[Meta] = GIVEN

    data: list[AdminKey]


class AdminKeyDeleted(Struct, frozen=True, kw_only=True):
    """A revoked Admin key; the same again when it was revoked before."""

    mark: ClassVar[Meta] = GIVEN

    id: Uuid
    object: Literal["organization.admin_api_key.deleted"] = "organization.admin_api_key.deleted"
    deleted: bool
