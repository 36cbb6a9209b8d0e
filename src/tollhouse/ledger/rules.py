"""Rules of holds, without I/O: how and when they end, and which counters they change."""

from collections.abc import Sequence
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class CounterKeys:
    """The counters of a batch as the arrays that `ledger_admit` takes.

    Each counter is there once; `positions` has the six of each hold, counted from 1.
    """

    scopes: list[str] = field(default_factory=list[str])
    scope_ids: list[UUID] = field(default_factory=list[UUID])
    windows: list[date] = field(default_factory=list[date])
    positions: list[int] = field(default_factory=list[int])


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


def shared_counter_keys(holds: Sequence[Hold]) -> CounterKeys:
    """Return the counters of one organization's holds; a counter that holds share is there once."""
    keys = CounterKeys()
    known: dict[Counter, int] = {}
    groups: dict[tuple[UUID, UUID, date], list[int]] = {}
    for hold in holds:
        group = (hold.project_id, hold.api_key_id, hold.admitted_day)
        positions = groups.get(group)
        if positions is None:
            positions = groups[group] = []
            for counter in counters(hold):
                if counter not in known:
                    _add(keys, counter)
                    known[counter] = len(keys.scopes)
                positions.append(known[counter])
        keys.positions += positions
    return keys


def separate_counter_keys(holds: Sequence[Hold]) -> CounterKeys:
    """Return the counters of holds of different organizations: six for each, no positions."""
    keys = CounterKeys()
    for hold in holds:
        for counter in counters(hold):
            _add(keys, counter)
    return keys


def _add(keys: CounterKeys, counter: Counter) -> None:
    keys.scopes.append(counter.scope.value)
    keys.scope_ids.append(counter.scope_id)
    keys.windows.append(counter.window_start)
