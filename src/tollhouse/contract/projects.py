"""Bodies about projects. The record itself is not shown in the specification (OQ-117)."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from tollhouse.contract.bounds import Name
from tollhouse.contract.listing import ListPage
from tollhouse.contract.origins import GIVEN, extension

ProjectStatus = Literal["active", "archived"]


class CreateProject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names need not be unique."""

    mark: ClassVar[Meta] = extension("OQ-117")

    name: Annotated[Name, extension("OQ-149")]


class RenameProject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The name is all that can change."""

    mark: ClassVar[Meta] = extension("OQ-117")

    name: Annotated[Name, extension("OQ-149")]


class Project(Struct, frozen=True, kw_only=True):
    """OpenAI's fields; `archived_at` is null while the project is active."""

    mark: ClassVar[Meta] = extension("OQ-117")

    id: str
    object: Literal["organization.project"] = "organization.project"
    name: str
    created_at: int
    archived_at: int | None
    status: ProjectStatus


class ProjectList(ListPage, frozen=True, kw_only=True):
    """A page of projects, archived ones included."""

    mark: ClassVar[Meta] = extension("OQ-117")

    data: list[Project]


class ProjectDeleted(Struct, frozen=True, kw_only=True):
    """An archived project; the same again when it was archived before."""

    mark: ClassVar[Meta] = GIVEN

    id: str
    object: Literal["organization.project.deleted"] = "organization.project.deleted"
    deleted: bool
