"""The wire types of projects, which the specification does not show (OQ-117)."""

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import AllowedModels, Name, Uuid
from tollhouse.contract.listing import ListPage
from tollhouse.contract.origins import GIVEN, extension

ProjectStatus = Literal["active", "archived"]


class CreateProject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new project. Names need not be unique."""

    mark: ClassVar[Meta] = extension("OQ-117")

    name: Annotated[Name, extension("OQ-149")]


class EditProject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a project. An absent field is not changed."""

    mark: ClassVar[Meta] = extension("OQ-117")

    name: Annotated[Name | UnsetType, extension("OQ-149")] = UNSET
    allowed_models: Annotated[AllowedModels | UnsetType | None, extension("OQ-86")] = UNSET
    """The only models that its keys may use, or null for all."""


class Project(Struct, frozen=True, kw_only=True):
    """A group of keys with costs, limits and policies of its own."""

    mark: ClassVar[Meta] = extension("OQ-117")

    id: str
    object: Literal["organization.project"] = "organization.project"
    name: str
    created_at: int
    archived_at: int | None
    """When it was archived, in Unix seconds, or null while it is active."""
    status: ProjectStatus
    """Whether its keys can make requests."""
    allowed_models: Annotated[list[str] | None, extension("OQ-86")]
    """The only models that its keys may use, or null for all."""


class ProjectList(ListPage, frozen=True, kw_only=True):
    """A page of projects, archived ones included."""

    mark: ClassVar[Meta] = extension("OQ-117")

    data: list[Project]


class ProjectDeleted(Struct, frozen=True, kw_only=True):
    """An archived project. Archiving it again returns the same."""

    mark: ClassVar[Meta] = GIVEN

    id: Uuid
    object: Literal["organization.project.deleted"] = "organization.project.deleted"
    deleted: bool
