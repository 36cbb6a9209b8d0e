"""The request that the pipeline receives, and the answer that it returns."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from msgspec import Struct

from tollhouse.base.ids import RequestId
from tollhouse.inference.endpoint import Endpoint
from tollhouse.inference.streaming import StreamedAnswer
from tollhouse.inference.trace import RequestTrace
from tollhouse.keys.types import Customer
from tollhouse.limits.limiter import Permit


class InferenceCall(Struct, frozen=True, kw_only=True):
    """A decoded request of a customer.

    `recheck` authenticates the customer again, if the body took long to arrive. `charge_cpu` is
    told the CPU seconds that a large request took before its first wait; None for a small one.
    `end_pending` is called when the request is admitted. `has_left` says whether the caller has
    disconnected.
    """

    request_id: RequestId
    now: datetime
    endpoint: Endpoint
    body: Any
    session: str | None
    permit: Permit
    trace: RequestTrace
    recheck: Callable[[], Awaitable[Customer]]
    charge_cpu: Callable[[float], None] | None
    end_pending: Callable[[], None]
    has_left: Callable[[], bool]


class WholeAnswer(Struct, frozen=True, kw_only=True):
    """The body of an answer that is sent at once; `is_events` if it is a complete stream."""

    body: bytes
    is_events: bool = False


InferenceAnswer = WholeAnswer | StreamedAnswer
