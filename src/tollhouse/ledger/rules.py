"""Pure decisions about holds: how they end, when, and which counters they move."""

from datetime import datetime, timedelta
from enum import Enum, auto

from tollhouse.ledger.types import Counter, Hold, Period, Scope

UNANSWERED_GRACE = timedelta(seconds=60)
"""A backend that bills nothing on its own has nothing to say after its deadline."""
BILLED_GRACE = timedelta(hours=24)
"""Until then a backend that bills without an answer can be asked what it billed."""

CAPS = (
    (Scope.ORGANIZATION, Period.MONTH),
    (Scope.ORGANIZATION, Period.LIFETIME),
    (Scope.PROJECT, Period.MONTH),
    (Scope.PROJECT, Period.LIFETIME),
    (Scope.KEY, Period.MONTH),
    (Scope.KEY, Period.LIFETIME),
)
"""The order in which counters are locked and caps are compared; `Verdict` counts in it."""


class Ending(Enum):
    """What to do with a hold when its call has ended."""

    VOID = auto()
    SETTLE_AT_USAGE = auto()
    SETTLE_AT_COUNT = auto()
    KEEP_UNSETTLED = auto()


def ending(
    *, bills_without_answer: bool, is_complete: bool, has_output: bool, has_usage: bool
) -> Ending:
    """How a call's hold ends. `has_usage` says that any usage was seen, also in mid-stream.

    A usage seen before a failure is exact only for a backend that stops billing when it fails.
    """
    if is_complete and has_usage:
        return Ending.SETTLE_AT_USAGE
    if bills_without_answer:
        return Ending.KEEP_UNSETTLED
    if not is_complete and not has_output:
        return Ending.VOID
    return Ending.SETTLE_AT_USAGE if has_usage else Ending.SETTLE_AT_COUNT


def decide_at(deadline_at: datetime, *, bills_without_answer: bool) -> datetime:
    """When an unsettled hold is decided without further evidence."""
    return deadline_at + (BILLED_GRACE if bills_without_answer else UNANSWERED_GRACE)


def counters(hold: Hold) -> tuple[Counter, ...]:
    """The six counters that a hold moves, in the order of `CAPS`."""
    ids = {
        Scope.ORGANIZATION: hold.organization_id,
        Scope.PROJECT: hold.project_id,
        Scope.KEY: hold.api_key_id,
    }
    return tuple(
        Counter(
            scope=scope,
            scope_id=ids[scope],
            period=period,
            window_start=period.window_start(hold.admitted_day),
        )
        for scope, period in CAPS
    )
