"""Types of reports: queries, and their sums. Instants are Unix seconds."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from tollhouse.base.ids import ProjectId, ProjectKeyId
from tollhouse.base.money import PicoUsd


class Width(IntEnum):
    """The length of a bucket, in seconds. Buckets begin at whole UTC hours or days."""

    HOUR = 3_600
    DAY = 86_400


class CostSubject(StrEnum):
    """The kind of a report. A cursor of one kind is invalid for another."""

    COSTS = "costs"
    USAGE = "usage"


class Dimension(StrEnum):
    """A field to group sums by. A line item is a model and a part of its price."""

    PROJECT = "project_id"
    KEY = "api_key_id"
    MODEL = "model"
    LINE_ITEM = "line_item"


class CostPart(StrEnum):
    """The parts of a request that have a price each; the second half of a line item (OQ-131)."""

    INPUT = "input"
    CACHED_INPUT = "cached input"
    CACHE_WRITE = "cache write"
    OUTPUT = "output"
    REQUEST = "request"
    IMAGE = "image"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportSpan:
    """The time from `start` to before `end`; never empty."""

    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CostFilter:
    """The projects and keys whose usage counts; None means all."""

    project_ids: frozenset[ProjectId] | None = None
    api_key_ids: frozenset[ProjectKeyId] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CostQuery:
    """The query of a report, the same for all its pages. The first page fixes its end."""

    subject: CostSubject
    start: int
    width: Width
    only: CostFilter
    grouping: frozenset[Dimension]


@dataclass(frozen=True, kw_only=True, slots=True)
class PageCursor:
    """The first bucket of a page, and the end of the whole report."""

    bucket: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Pieces:
    """A span, split by the source of its sums: rollups for whole days and hours, else entries."""

    days: ReportSpan | None
    hours: tuple[ReportSpan, ...]
    entries: tuple[ReportSpan, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The fields that a sum is grouped by; None for a field that the query does not group by."""

    bucket: int
    project_id: ProjectId | None
    api_key_id: ProjectKeyId | None
    model: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sums:
    """Settled usage and its cost by part.

    Input does not include cached input, but cache writes, which are also counted of their own.

    Estimated requests are those whose usage Tollhouse counted, because the engine reported none.
    """

    requests: int
    estimated_requests: int
    input_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int
    output_tokens: int
    images: int
    input_pico_usd: int
    cached_input_pico_usd: int
    cache_write_pico_usd: int
    output_pico_usd: int
    image_pico_usd: int
    request_pico_usd: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Used:
    """A group and its sums."""

    group: Group
    sums: Sums


@dataclass(frozen=True, kw_only=True, slots=True)
class UnsettledUsage:
    """Requests that are in no sum yet, and what is held for them."""

    requests: int
    held_pico_usd: PicoUsd


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucket:
    """One hour or day. Without settled usage it is empty, which is not the same as zero."""

    span: ReportSpan
    used: tuple[Used, ...]
    unsettled: UnsettledUsage


@dataclass(frozen=True, kw_only=True, slots=True)
class CostReport:
    """Consecutive buckets. `unsettled` counts requests of the whole span that are in no sum yet."""

    buckets: tuple[Bucket, ...]
    next_start: int | None
    unsettled: int


EMPTY_REPORT = CostReport(buckets=(), next_start=None, unsettled=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class CostLine:
    """One result of a cost report."""

    group: Group
    line_item: str | None
    amount: PicoUsd
