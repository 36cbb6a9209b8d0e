"""The wire types of the usage report: settled tokens, images and requests, and their cost."""

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import (
    COST_PAGE_SIZE_DEFAULT,
    CostCursor,
    CostFilter,
    CostPageSize,
    NonNegative,
    ReportInstant,
)
from tollhouse.contract.costs import UnsettledCosts
from tollhouse.contract.money import Money
from tollhouse.contract.origins import extension

CompletionsGrouping = Literal["project_id", "api_key_id", "model"]


class UsageRange(Struct, frozen=True, kw_only=True):
    """The range, buckets and filters of a usage report."""

    mark: ClassVar[Meta] = extension("OQ-171")

    start_time: ReportInstant
    """The first second of the range, in Unix seconds."""
    end_time: ReportInstant | UnsetType = UNSET
    """The second after the range. Without it, the range ends with the present second."""
    bucket_width: Literal["1h", "1d"] = "1d"
    """The width of a bucket: a UTC hour or day."""
    project_ids: CostFilter | UnsetType = UNSET
    """Count only these projects."""
    api_key_ids: CostFilter | UnsetType = UNSET
    """Count only these keys."""
    limit: CostPageSize = COST_PAGE_SIZE_DEFAULT
    page: CostCursor | UnsetType = UNSET


class UsageQuery(UsageRange, frozen=True, kw_only=True):
    """The range, filters and groups of a usage report."""

    mark: ClassVar[Meta] = extension("OQ-171")

    group_by: list[CompletionsGrouping] | UnsetType = UNSET
    """Split each bucket by these fields."""


class CompletionsQuery(UsageRange, frozen=True, kw_only=True):
    """The range, filters and groups of a usage report in OpenAI's form."""

    mark: ClassVar[Meta] = extension("OQ-171")

    group_by: list[CompletionsGrouping] | UnsetType = UNSET
    """Split each bucket by these fields."""


class FocusQuery(Struct, frozen=True, kw_only=True):
    """The range and the filters of an export of costs."""

    mark: ClassVar[Meta] = extension("OQ-238")

    start_time: ReportInstant
    """The first second of the range, in Unix seconds."""
    end_time: ReportInstant | UnsetType = UNSET
    """The second after the range. Without it, the range ends with the present second."""
    project_ids: CostFilter | UnsetType = UNSET
    """Export only these projects."""
    api_key_ids: CostFilter | UnsetType = UNSET
    """Export only these keys."""


class UsageResult(Struct, frozen=True, kw_only=True):
    """The usage of one group in one bucket."""

    mark: ClassVar[Meta] = extension("OQ-172")

    object: Literal["organization.usage.result"] = "organization.usage.result"
    amount: Money
    """What the requests cost."""
    requests: NonNegative
    estimated_requests: NonNegative
    """Requests whose tokens the gateway counted, because the engine did not."""
    input_tokens: NonNegative
    """Tokens that were read, without those from a cache."""
    cached_input_tokens: NonNegative
    """Tokens that were read from a cache."""
    cache_write_tokens: NonNegative
    """The part of `input_tokens` that was written to a cache at a price of its own."""
    output_tokens: NonNegative
    images: NonNegative
    """Images in requests."""
    project_id: str | None
    """The project of the group, or null unless grouped by it."""
    api_key_id: str | None
    """The key of the group, or null unless grouped by it."""
    model: str | None
    """The model of the group, or null unless grouped by it."""


class CompletionsResult(Struct, frozen=True, kw_only=True):
    """The usage of one group in one bucket, in OpenAI's form."""

    mark: ClassVar[Meta] = extension("OQ-172")

    object: Literal["organization.usage.completions.result"] = (
        "organization.usage.completions.result"
    )
    input_tokens: NonNegative
    input_cached_tokens: NonNegative
    """The part of `input_tokens` that was read from a cache."""
    input_cache_write_tokens: NonNegative
    """The part of `input_tokens` that was written to a cache at a price of its own."""
    output_tokens: NonNegative
    num_model_requests: NonNegative
    """The number of requests."""
    project_id: str | None
    """The project of the group, or null unless grouped by it."""
    api_key_id: str | None
    """The key of the group, or null unless grouped by it."""
    model: str | None
    """The model of the group, or null unless grouped by it."""


class UsageBucket(Struct, frozen=True, kw_only=True):
    """One UTC hour or day. A bucket without settled usage has no results."""

    mark: ClassVar[Meta] = extension("OQ-171")

    object: Literal["bucket"] = "bucket"
    start_time: int
    end_time: int
    results: list[UsageResult]


class CompletionsBucket(Struct, frozen=True, kw_only=True):
    """One UTC hour or day, in OpenAI's form."""

    mark: ClassVar[Meta] = extension("OQ-171")

    object: Literal["bucket"] = "bucket"
    start_time: int
    end_time: int
    results: list[CompletionsResult]


class UsagePage(Struct, frozen=True, kw_only=True):
    """A page of buckets."""

    mark: ClassVar[Meta] = extension("OQ-171")

    object: Literal["page"] = "page"
    data: list[UsageBucket]
    has_more: bool
    next_page: str | None
    unsettled: Annotated[list[UnsettledCosts] | UnsetType, extension("OQ-133")] = UNSET
    """What is in no result yet, by bucket. It is missing if every request is settled."""


class CompletionsPage(Struct, frozen=True, kw_only=True):
    """A page of buckets in OpenAI's form."""

    mark: ClassVar[Meta] = extension("OQ-171")

    object: Literal["page"] = "page"
    data: list[CompletionsBucket]
    has_more: bool
    next_page: str | None
    unsettled: Annotated[list[UnsettledCosts] | UnsetType, extension("OQ-133")] = UNSET
    """What is in no result yet, by bucket. It is missing if every request is settled."""
