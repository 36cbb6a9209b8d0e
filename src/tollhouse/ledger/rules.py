"""Rules of holds, without I/O: how and when they end, and the order of their caps."""

from datetime import datetime, timedelta
from enum import Enum, auto

from tollhouse.ledger.types import CapScope, Period

UNANSWERED_GRACE = timedelta(seconds=60)
"""The grace for a backend that bills only answers: it cannot bill after the deadline."""
BILLED_GRACE = timedelta(hours=24)
"""How long a backend that bills without an answer can be asked what it billed."""

CAPS = tuple(
    (scope, period)
    for periods in ((Period.MONTH, Period.LIFETIME), (Period.DAY, Period.WEEK))
    for scope in CapScope
    for period in periods
)
"""The order in which caps are compared; `AdmissionVerdict` uses it."""
FIRST_CAP_CODE = 10


def cap_of(code: int) -> tuple[CapScope, Period]:
    """Return the cap that refused an admission with this code. Raises for an unknown code."""
    if not 0 <= (place := code - FIRST_CAP_CODE) < len(CAPS):
        message = f"the database refused an admission with the unknown code {code}"
        raise ValueError(message)
    return CAPS[place]


class Ending(Enum):
    """What to do with a hold when its call has ended."""

    VOID = auto()
    SETTLE_AT_USAGE = auto()
    SETTLE_AT_COUNT = auto()
    KEEP_UNSETTLED = auto()


def ending(
    *, bills_without_answer: bool, is_complete: bool, has_output: bool, has_usage: bool
) -> Ending:
    """Decide how a call's hold ends. `has_usage`: a usage was reported, maybe in mid-stream.

    A usage reported before a failure is exact only if the backend stops billing when it fails.
    """
    if is_complete and has_usage:
        return Ending.SETTLE_AT_USAGE
    if bills_without_answer:
        return Ending.KEEP_UNSETTLED
    if not is_complete and not has_output:
        return Ending.VOID
    return Ending.SETTLE_AT_USAGE if has_usage else Ending.SETTLE_AT_COUNT


def decide_at(deadline_at: datetime, *, bills_without_answer: bool) -> datetime:
    """Return when an unsettled hold is decided without further evidence."""
    return deadline_at + (BILLED_GRACE if bills_without_answer else UNANSWERED_GRACE)
