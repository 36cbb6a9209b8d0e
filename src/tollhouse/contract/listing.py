"""The queries of lists, and the members that every page has."""

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import PAGE_SIZE_DEFAULT, PageSize, PathId
from tollhouse.contract.origins import GIVEN, adopted, extension, given


class NoQuery(Struct, frozen=True, kw_only=True):
    """The query of operations without parameters, so that they refuse unknown ones too."""

    mark: ClassVar[Meta] = GIVEN


class ListQuery(Struct, frozen=True, kw_only=True):
    """The page of a list."""

    mark: ClassVar[Meta] = extension("OQ-121")

    after: PathId | UnsetType = UNSET
    limit: PageSize = PAGE_SIZE_DEFAULT


class AdminKeysQuery(Struct, frozen=True, kw_only=True):
    """The page of a list of Admin keys."""

    mark: ClassVar[Meta] = adopted("OQ-121")

    after: Annotated[PathId | UnsetType, given(name="OQ-121")] = UNSET
    limit: Annotated[PageSize, given(name="OQ-121", default="OQ-121")] = PAGE_SIZE_DEFAULT
    order: Literal["asc", "desc"] = "asc"


class ListPage(Struct, frozen=True, kw_only=True):
    """The members of every page beside `data`."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["list"] = "list"
    has_more: bool
    first_id: Annotated[str | None, given(null="OQ-123")]
    last_id: Annotated[str | None, given(null="OQ-123")]
