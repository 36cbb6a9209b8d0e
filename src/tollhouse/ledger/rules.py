"""Rules of holds, without I/O: how and when they end, and which counters they change."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum, auto
from uuid import UUID

from tollhouse.ledger.types import LIFETIME_START, CapScope, Counter, Hold, Period

UNANSWERED_GRACE = timedelta(seconds=60)
"""The grace for a backend that bills only answers: it cannot bill after the deadline."""
BILLED_GRACE = timedelta(hours=24)
"""How long a backend that bills without an answer can be asked what it billed."""

CAPS = (
    (CapScope.ORGANIZATION, Period.MONTH),
    (CapScope.ORGANIZATION, Period.LIFETIME),
    (CapScope.PROJECT, Period.MONTH),
    (CapScope.PROJECT, Period.LIFETIME),
    (CapScope.KEY, Period.MONTH),
    (CapScope.KEY, Period.LIFETIME),
)
"""The order in which counters are locked and caps are compared; `AdmissionVerdict` uses it."""


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


@dataclass(frozen=True, kw_only=True, slots=True)
class CounterKeys:
    """The six counters of a hold as arrays, in the order of `CAPS`."""

    scopes: list[str]
    scope_ids: list[UUID]
    windows: list[date]


def counters(hold: Hold) -> list[Counter]:
    """Return the six counters that a hold changes, in the order of `CAPS`."""
    ids = {
        CapScope.ORGANIZATION: hold.organization_id,
        CapScope.PROJECT: hold.project_id,
        CapScope.KEY: hold.api_key_id,
    }
    starts = {
        Period.MONTH: hold.admitted_day.replace(day=1),
        Period.LIFETIME: LIFETIME_START,
    }
    return [
        Counter(scope=scope, scope_id=ids[scope], period=period, window_start=starts[period])
        for scope, period in CAPS
    ]


def counter_keys(hold: Hold) -> CounterKeys:
    """Return the counters of a hold as the arrays that `ledger_open_counters` takes."""
    found = counters(hold)
    return CounterKeys(
        scopes=[counter.scope for counter in found],
        scope_ids=[counter.scope_id for counter in found],
        windows=[counter.window_start for counter in found],
    )
