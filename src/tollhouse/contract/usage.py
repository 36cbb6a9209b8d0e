"""The wire types of the usage report: settled tokens, images and requests, and their cost."""

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import (
    COST_PAGE_SIZE_DEFAULT,
    USAGE_GROUPINGS_MAX,
    CostCursor,
    CostFilter,
    CostPageSize,
    NonNegative,
    ReportInstant,
    UsageGrouping,
)
from tollhouse.contract.money import Money
from tollhouse.contract.origins import extension


class UsageQuery(Struct, frozen=True, kw_only=True):
    """The range, filters and groups of a usage report."""

    mark: ClassVar[Meta] = extension("OQ-171")

    start_time: ReportInstant
    end_time: ReportInstant | UnsetType = UNSET
    bucket_width: Literal["1h", "1d"] = "1d"
    project_ids: CostFilter | UnsetType = UNSET
    api_key_ids: CostFilter | UnsetType = UNSET
    group_by: Annotated[list[UsageGrouping], Meta(max_length=USAGE_GROUPINGS_MAX)] | UnsetType = (
        UNSET
    )
    limit: CostPageSize = COST_PAGE_SIZE_DEFAULT
    page: CostCursor | UnsetType = UNSET


class FocusQuery(Struct, frozen=True, kw_only=True):
    """The range and the filters of an export of costs."""

    mark: ClassVar[Meta] = extension("OQ-238")

    start_time: ReportInstant
    end_time: ReportInstant | UnsetType = UNSET
    project_ids: CostFilter | UnsetType = UNSET
    api_key_ids: CostFilter | UnsetType = UNSET


class UsageResult(Struct, frozen=True, kw_only=True):
    """The usage of one group in one bucket. `input_tokens` do not include cached ones.

    `cache_write_tokens` are the part of `input_tokens` that a model with a price for it wrote to a
    cache.
    `estimated_requests` counts requests whose tokens Tollhouse counted, because the engine did not.
    `attribution` is the value of `user`, `safety_identifier` or `metadata.KEY`, if grouped by it.
    """

    mark: ClassVar[Meta] = extension("OQ-172")

    object: Literal["organization.usage.result"] = "organization.usage.result"
    amount: Money
    requests: NonNegative
    estimated_requests: NonNegative
    input_tokens: NonNegative
    cached_input_tokens: NonNegative
    cache_write_tokens: NonNegative
    output_tokens: NonNegative
    images: NonNegative
    project_id: str | None
    api_key_id: str | None
    model: str | None
    attribution: str | None


class UsageBucket(Struct, frozen=True, kw_only=True):
    """One UTC hour or day. A bucket without settled usage has no results."""

    mark: ClassVar[Meta] = extension("OQ-171")

    object: Literal["bucket"] = "bucket"
    start_time: int
    end_time: int
    results: list[UsageResult]


class UsagePage(Struct, frozen=True, kw_only=True):
    """A page of buckets. `next_page` is null on the last page."""

    mark: ClassVar[Meta] = extension("OQ-171")

    object: Literal["page"] = "page"
    data: list[UsageBucket]
    has_more: bool
    next_page: str | None
