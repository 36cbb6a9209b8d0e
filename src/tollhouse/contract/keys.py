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
)
from tollhouse.contract.listing import ListPage
from tollhouse.contract.origins import GIVEN, adopted, extension

ProjectKeyStatus = Literal["active", "revoked", "expired", "suspended"]


class CreateProjectKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of the given creation: the key gets the default permissions and never expires."""

    mark: ClassVar[Meta] = GIVEN

    name: Annotated[Name, adopted("OQ-92", "OQ-149")]


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

    id: str
    type: Literal["project"] = "project"
    name: str


class ProjectKey(Struct, frozen=True, kw_only=True):
    """`value` is there only at creation and on its replay; `allowed_models` only under /manage."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["organization.project.api_key"] = "organization.project.api_key"
    id: str
    name: str
    redacted_value: str
    value: str | UnsetType = UNSET
    created_at: int
    last_used_at: Annotated[int | None, adopted("OQ-91")]
    expires_at: Annotated[int | None, adopted("OQ-91")]
    owner: ProjectKeyOwner
    status: ProjectKeyStatus
    permissions: list[str]
    allowed_models: Annotated[list[str] | UnsetType | None, extension("OQ-86")] = UNSET


class ProjectKeyList(ListPage, frozen=True, kw_only=True):
    """A page of a project's keys, none of them with its value."""

    mark: ClassVar[Meta] = extension("OQ-87", "OQ-154")

    data: list[ProjectKey]


class CreateAdminKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without `permissions` the key holds all, which only a key with all may grant."""

    mark: ClassVar[Meta] = extension("OQ-148")

    name: Annotated[Name, extension("OQ-149")]
    permissions: AdminPermissions | UnsetType = UNSET
    expires_at: Annotated[ExpiresAt | UnsetType | None, extension("OQ-151")] = UNSET


class AdminKeyOwner(Struct, frozen=True, kw_only=True):
    """The organization that a key belongs to."""

    mark: ClassVar[Meta] = GIVEN

    id: str
    type: Literal["organization"] = "organization"


class AdminKey(Struct, frozen=True, kw_only=True):
    """`value` is there only at creation and on its replay, which are extensions."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["organization.admin_api_key"] = "organization.admin_api_key"
    id: str
    name: str
    redacted_value: str
    value: Annotated[str | UnsetType, extension("OQ-148")] = UNSET
    created_at: int
    last_used_at: Annotated[int | None, adopted("OQ-91")]
    expires_at: Annotated[int | None, adopted("OQ-91")]
    owner: AdminKeyOwner
    permissions: list[str]


class AdminKeyList(ListPage, frozen=True, kw_only=True):
    """A page of the organization's Admin keys that are not revoked."""

    mark: ClassVar[Meta] = GIVEN

    data: list[AdminKey]


class AdminKeyDeleted(Struct, frozen=True, kw_only=True):
    """A revoked Admin key; the same again when it was revoked before."""

    mark: ClassVar[Meta] = GIVEN

    id: str
    object: Literal["organization.admin_api_key.deleted"] = "organization.admin_api_key.deleted"
    deleted: bool
