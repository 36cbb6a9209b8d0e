"""Bodies about projects. The record itself is not shown in the specification (OQ-117)."""

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import AllowedModels, Name, Uuid
from tollhouse.contract.listing import ListPage
from tollhouse.contract.origins import GIVEN, extension

ProjectStatus = Literal["active", "archived"]


class CreateProject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names need not be unique."""

    mark: ClassVar[Meta] = extension("OQ-117")

    name: Annotated[Name, extension("OQ-149")]


class EditProject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An absent field stays as it is; null as `allowed_models` allows every model."""

    mark: ClassVar[Meta] = extension("OQ-117")

    name: Annotated[Name | UnsetType, extension("OQ-149")] = UNSET
    allowed_models: Annotated[AllowedModels | UnsetType | None, extension("OQ-86")] = UNSET


class Project(Struct, frozen=True, kw_only=True):
    """OpenAI's fields, and the models that its keys may use, null for all.

    `archived_at` is null while the project is active.
    """

    mark: ClassVar[Meta] = extension("OQ-117")

    id: str
    object: Literal["organization.project"] = "organization.project"
    name: str
    created_at: int
    archived_at: int | None
    status: ProjectStatus
    allowed_models: Annotated[list[str] | None, extension("OQ-86")]


class ProjectList(ListPage, frozen=True, kw_only=True):
    """A page of projects, archived ones included."""

    mark: ClassVar[Meta] = extension("OQ-117")

    data: list[Project]


class ProjectDeleted(Struct, frozen=True, kw_only=True):
    """An archived project; the same again when it was archived before."""

    mark: ClassVar[Meta] = GIVEN

    id: Uuid
    object: Literal["organization.project.deleted"] = "organization.project.deleted"
    deleted: bool
