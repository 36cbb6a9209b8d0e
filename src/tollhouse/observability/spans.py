"""What a trace says of one request: facts and times, never content."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A finished span. The trace's ID is the request's, so that either finds the other."""

    request_id: UUID
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, str | int | float | bool]
    is_failure: bool
