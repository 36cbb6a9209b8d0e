"""Nouns of reports: what is asked, and the sums that answer it. Instants are Unix seconds."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from tollhouse.base.ids import ProjectId, ProjectKeyId
from tollhouse.base.money import PicoUsd


class Width(IntEnum):
    """The length of a bucket, in seconds. Buckets begin at whole UTC hours or days."""

    HOUR = 3_600
    DAY = 86_400


class Subject(StrEnum):
    """Which report; a cursor of one leads nowhere in another."""

    COSTS = "costs"
    USAGE = "usage"


class Dimension(StrEnum):
    """By what sums can be kept apart. A line item is a model and a part of its price."""

    PROJECT = "project_id"
    KEY = "api_key_id"
    MODEL = "model"
    LINE_ITEM = "line_item"


class Part(StrEnum):
    """The parts of a request that have a price each; the second half of a line item (OQ-131)."""

    INPUT = "input"
    CACHED_INPUT = "cached input"
    OUTPUT = "output"
    REQUEST = "request"
    IMAGE = "image"


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """From `start` up to, but not with, `end`; never empty."""

    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """Whose usage counts; nothing means everybody's."""

    project_ids: frozenset[ProjectId] | None = None
    api_key_ids: frozenset[ProjectKeyId] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What a report is about, whichever page of it is read. Its end is fixed on the first."""

    subject: Subject
    start: int
    width: Width
    only: Filter
    grouping: frozenset[Dimension]


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where in a report a page begins, and where the whole report ends."""

    bucket: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Pieces:
    """A span cut up by where its sums are found: rollups where it is whole, else the entries."""

    days: Span | None
    hours: tuple[Span, ...]
    entries: tuple[Span, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """What is summed up together; nothing stands for what was not asked to be kept apart."""

    bucket: int
    project_id: ProjectId | None
    api_key_id: ProjectKeyId | None
    model: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sums:
    """Settled usage and its cost by part. Input does not include cached input.

    Estimated requests are those whose usage Tollhouse counted, because the engine reported none.
    """

    requests: int
    estimated_requests: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    images: int
    input_pico_usd: int
    cached_input_pico_usd: int
    output_pico_usd: int
    image_pico_usd: int
    request_pico_usd: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Used:
    """A group and its sums."""

    group: Group
    sums: Sums


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucket:
    """One hour or day. Without settled usage it is empty, which is not the same as zero."""

    span: Span
    used: tuple[Used, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Consecutive buckets. `unsettled` counts requests of the whole span that are in no sum yet."""

    buckets: tuple[Bucket, ...]
    next_start: int | None
    unsettled: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CostLine:
    """One result of a cost report."""

    group: Group
    line_item: str | None
    amount: PicoUsd
