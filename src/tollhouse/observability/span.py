"""A span as the exporter takes it."""

from collections.abc import Mapping
from dataclasses import dataclass

from tollhouse.base.trace_context import TraceContext


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A finished span without content."""

    context: TraceContext
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, str | int | float | bool]
    is_failure: bool
