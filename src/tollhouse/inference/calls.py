"""What the pipeline is asked and what it answers."""

import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
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
    `charge` is told for how many seconds the event loop was busy preparing the request.
    """

    request_id: RequestId
    now: datetime
    surface: Surface
    body: Any
    session: str | None
    traffic: Pass
    trace: Trace
    recheck: Callable[[], Awaitable[Customer]]
    charge: Callable[[float], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeAnswer:
    """A body that is sent at once."""

    body: bytes


@contextmanager
def busy(charge: Callable[[float], None]) -> Generator[None]:
    """Tell `charge` the processor time that this thread spends within, also on a failure.

    Nothing may be awaited within.
    """
    began_seconds = time.thread_time()
    try:
        yield
    finally:
        charge(time.thread_time() - began_seconds)


InferenceAnswer = WholeAnswer | StreamedAnswer
