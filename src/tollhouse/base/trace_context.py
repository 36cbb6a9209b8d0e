"""The place of a request in a trace, and the header `traceparent` (W3C Trace Context)."""

import re
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

_TRACEPARENT: Final = re.compile(
    rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?"
)
_FIRST_VERSION: Final = b"00"
_RANDOM_MASK: Final = 2**56 - 1
_SPAN_ID_MASK: Final = 2**64 - 1


class TraceContext(Struct, frozen=True, kw_only=True):
    """The IDs of one span. A span without a parent begins its trace."""

    trace_id: int
    span_id: int
    parent_id: int | None = None
    is_sampled: bool = True

    @property
    def traceparent(self) -> str:
        """The header that makes this span the parent of the receiver's."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.is_sampled:02x}"

    def sampled(self, ratio: float) -> "TraceContext":
        """Return the span as sampled, if its trace is among this share of all traces.

        All services that use the same ratio choose the same traces, by the random end of their IDs.
        """
        is_sampled = self.trace_id & _RANDOM_MASK < ratio * (_RANDOM_MASK + 1)
        return self if is_sampled else replace(self, is_sampled=False)


def new_trace(request_id: UUID) -> TraceContext:
    """Return the context of a request that begins a trace: the trace has the request's ID."""
    return TraceContext(trace_id=request_id.int, span_id=request_id.int & _SPAN_ID_MASK)


def continued_trace(request_id: UUID, traceparents: Sequence[bytes] | None) -> TraceContext:
    """Return the context below the caller's span, or a new trace if its header is not valid.

    A later version may append fields to those of version 00. The caller's flags are ignored:
    callers must not decide which spans the operator has.
    """
    found = _TRACEPARENT.fullmatch(traceparents[0]) if traceparents else None
    if traceparents is None or found is None or len(traceparents) > 1:
        return new_trace(request_id)
    version, trace_id, parent_id, appended = found.groups()
    if version == _FIRST_VERSION and appended is not None:
        return new_trace(request_id)
    return TraceContext(
        trace_id=int(trace_id, 16),
        span_id=request_id.int & _SPAN_ID_MASK,
        parent_id=int(parent_id, 16),
    )
