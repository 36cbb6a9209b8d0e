"""What the pipeline is asked and what it answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tollhouse.base.ids import RequestId
from tollhouse.inference.streaming import StreamedAnswer
from tollhouse.inference.surface import Surface
from tollhouse.inference.trace import Trace
from tollhouse.keys.types import Customer
from tollhouse.limits.limiter import Pass


@dataclass(frozen=True, kw_only=True, slots=True)
class InferenceCall:
    """A decoded request of a customer.

    `recheck` asks again who calls; while what was known at the door can be believed, at no cost.
    """

    request_id: RequestId
    now: datetime
    surface: Surface
    body: Any
    session: str | None
    traffic: Pass
    trace: Trace
    recheck: Callable[[], Awaitable[Customer]]


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeAnswer:
    """A body that is sent at once."""

    body: bytes


InferenceAnswer = WholeAnswer | StreamedAnswer
