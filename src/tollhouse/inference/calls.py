"""The request that the pipeline receives, and the answer that it returns."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tollhouse.base.ids import RequestId
from tollhouse.inference.endpoint import Endpoint
from tollhouse.inference.streaming import StreamedAnswer
from tollhouse.inference.trace import RequestTrace
from tollhouse.keys.types import Customer
from tollhouse.limits.limiter import Permit


@dataclass(frozen=True, kw_only=True, slots=True)
class InferenceCall:
    """A decoded request of a customer.

    `recheck` authenticates the customer again, if the body took long to arrive. `charge_cpu` is
    told the CPU seconds that the request took before its first wait.
    """

    request_id: RequestId
    now: datetime
    endpoint: Endpoint
    body: Any
    session: str | None
    permit: Permit
    trace: RequestTrace
    recheck: Callable[[], Awaitable[Customer]]
    charge_cpu: Callable[[float], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeAnswer:
    """The body of an answer that is sent at once."""

    body: bytes


InferenceAnswer = WholeAnswer | StreamedAnswer
