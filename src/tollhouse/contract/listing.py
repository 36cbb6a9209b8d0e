"""Lists: how a page is asked for, and what surrounds its items."""

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import PAGE_SIZE_DEFAULT, PageSize, PathId
from tollhouse.contract.origins import GIVEN, adopted, extension, given


class NoQuery(Struct, frozen=True, kw_only=True):
    """For operations without parameters, so that unknown ones are noticed there too."""

    mark: ClassVar[Meta] = GIVEN


class ListQuery(Struct, frozen=True, kw_only=True):
    """`after` is the ID of the last item of the page before."""

    mark: ClassVar[Meta] = extension("OQ-121")

    after: PathId | UnsetType = UNSET
    limit: PageSize = PAGE_SIZE_DEFAULT


class AdminKeysQuery(Struct, frozen=True, kw_only=True):
    """The meaning of cursor and size is given, their names are not."""

    mark: ClassVar[Meta] = adopted("OQ-121")

    after: Annotated[PathId | UnsetType, given(name="OQ-121")] = UNSET
    limit: Annotated[PageSize, given(name="OQ-121", default="OQ-121")] = PAGE_SIZE_DEFAULT
    order: Literal["asc", "desc"] = "asc"


class ListPage(Struct, frozen=True, kw_only=True):
    """What every page carries beside its `data`; the IDs of an empty page are null."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["list"] = "list"
    has_more: bool
    first_id: Annotated[str | None, given(null="OQ-123")]
    last_id: Annotated[str | None, given(null="OQ-123")]
