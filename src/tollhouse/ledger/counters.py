"""The six windows that every request counts in, whether or not a cap is set there."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final
from uuid import UUID

from tollhouse.ledger.types import Hold, Period, Scope

LIFETIME_START: Final = date.min
"""What the driver writes as `-infinity`."""

WINDOWS: Final = tuple((scope, period) for scope in Scope for period in Period)
"""In the order in which `ledger_admit` looks at them."""


def window_start(period: Period, day: date) -> date:
    """Where the window begins that `day` lies in."""
    return LIFETIME_START if period is Period.LIFETIME else day.replace(day=1)


@dataclass(slots=True)
class CounterKeys:
    """Each counter of a batch once, and for each item the six positions of its own, from 1 on."""

    scopes: list[str] = field(default_factory=list[str])
    scope_ids: list[UUID] = field(default_factory=list[UUID])
    windows: list[date] = field(default_factory=list[date])
    positions: list[int] = field(default_factory=list[int])


def counter_keys(holds: Sequence[Hold], *, is_shared: bool) -> CounterKeys:
    """Of holds of one organization, whose counters are `is_shared`, or of one hold each."""
    keys = CounterKeys()
    known: dict[tuple[UUID, UUID, date], range] = {}
    seen: dict[tuple[str, UUID, date], int] = {}
    for hold in holds:
        month = hold.admitted_day.replace(day=1)
        group = (hold.project_id, hold.api_key_id, month)
        if is_shared and group in known:
            keys.positions.extend(keys.positions[i] for i in known[group])
            continue
        begin = len(keys.positions)
        for scope, period in WINDOWS:
            key = (scope.value, _scope_id(hold, scope), window_start(period, month))
            position = seen.get(key) if is_shared else None
            if position is None:
                keys.scopes.append(key[0])
                keys.scope_ids.append(key[1])
                keys.windows.append(key[2])
                position = seen[key] = len(keys.scopes)
            keys.positions.append(position)
        known[group] = range(begin, begin + len(WINDOWS))
    return keys


def _scope_id(hold: Hold, scope: Scope) -> UUID:
    match scope:
        case Scope.ORGANIZATION:
            return hold.organization_id
        case Scope.PROJECT:
            return hold.project_id
        case Scope.KEY:
            return hold.api_key_id
