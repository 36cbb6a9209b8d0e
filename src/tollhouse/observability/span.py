"""A span as the exporter takes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A finished span without content. The request's ID is also the ID of the trace."""

    request_id: UUID
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, str | int | float | bool]
    is_failure: bool
