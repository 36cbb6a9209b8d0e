"""The wire types of the cost report. Amounts are decimal strings."""

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import (
    COST_GROUPINGS_MAX,
    COST_PAGE_SIZE_DEFAULT,
    CostCursor,
    CostFilter,
    CostPageSize,
    NonNegative,
    ReportInstant,
)
from tollhouse.contract.origins import GIVEN, adopted, extension, given

UNSETTLED_HEADER = "x-tollhouse-unsettled-requests"
"""Names the header with the number of requests whose final cost is not known yet (OQ-133).

Their costs are in no amount. Requests still in progress are in no amount either, and not counted.
"""

CostGrouping = Literal["project_id", "api_key_id", "line_item"]

_NAMED = given(name="OQ-125")
_NAMED_LIST = given(name=("OQ-125", "OQ-127"))
_NAMED_FILTER = given(name=("OQ-125", "OQ-127"), bounds="OQ-127")


class CostsQuery(Struct, frozen=True, kw_only=True):
    """The range, filters and groups of a cost report."""

    mark: ClassVar[Meta] = adopted("OQ-125", "OQ-126")

    start_time: Annotated[ReportInstant, given(name="OQ-125", required="OQ-126", bounds="OQ-126")]
    """The first second of the range, in Unix seconds."""
    end_time: Annotated[ReportInstant | UnsetType, given(name="OQ-125", bounds="OQ-126")] = UNSET
    """The second after the range. Without it, the range ends with the present second."""
    bucket_width: Literal["1d"] = "1d"
    """The width of a bucket: a UTC day."""
    project_ids: Annotated[CostFilter | UnsetType, _NAMED_FILTER] = UNSET
    """Count only these projects."""
    api_key_ids: Annotated[CostFilter | UnsetType, _NAMED_FILTER] = UNSET
    """Count only these keys."""
    group_by: Annotated[
        Annotated[list[CostGrouping], Meta(max_length=COST_GROUPINGS_MAX)] | UnsetType,
        _NAMED_LIST,
    ] = UNSET
    """Split each bucket by these fields."""
    limit: Annotated[CostPageSize, given(name="OQ-125", default="OQ-126")] = COST_PAGE_SIZE_DEFAULT
    page: Annotated[CostCursor | UnsetType, _NAMED] = UNSET


class CostAmount(Struct, frozen=True, kw_only=True):
    """An exact decimal, without exponent or trailing zeros (OQ-130)."""

    mark: ClassVar[Meta] = GIVEN

    value: str
    """An exact decimal, such as `0.000125`."""
    currency: Literal["usd"] = "usd"


class CostResult(Struct, frozen=True, kw_only=True):
    """The costs of one group on one day."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["organization.costs.result"] = "organization.costs.result"
    amount: CostAmount
    """What the group cost on this day."""
    line_item: Annotated[str | None, given(null="OQ-129")]
    """What was paid for, such as the input of a model, if grouped by it."""
    project_id: Annotated[str | None, given(null="OQ-129")]
    """The project of the group, or null unless grouped by it."""
    api_key_id: Annotated[str | None, given(null="OQ-129")]
    """The key of the group, or null unless grouped by it."""


class UnsettledCosts(Struct, frozen=True, kw_only=True):
    """The requests of a bucket whose final cost is not known yet. They are in no result."""

    mark: ClassVar[Meta] = extension("OQ-133")

    start_time: int
    """The beginning of the bucket, in Unix seconds."""
    requests: NonNegative
    amount: CostAmount
    """What is held for them, which is the most that they can cost."""


class CostBucket(Struct, frozen=True, kw_only=True):
    """One UTC day. A day without settled usage has no results."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["bucket"] = "bucket"
    start_time: int
    end_time: int
    results: list[CostResult]


class CostPage(Struct, frozen=True, kw_only=True):
    """A page of days."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["page"] = "page"
    data: list[CostBucket]
    has_more: bool
    next_page: Annotated[str | None, given(null="OQ-132")]
    unsettled: Annotated[list[UnsettledCosts] | UnsetType, extension("OQ-133")] = UNSET
    """What is in no result yet, by day. It is missing if every request is settled."""
