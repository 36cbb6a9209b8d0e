"""The counters of a whole batch, as the arrays that `ledger_admit` takes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from uuid import UUID

from tollhouse.ledger import rules
from tollhouse.ledger.types import Counter, Hold


@dataclass(slots=True)
class CounterKeys:
    """Each counter of a batch once, and for each item the six positions of its own, from 1 on."""

    scopes: list[str] = field(default_factory=list[str])
    scope_ids: list[UUID] = field(default_factory=list[UUID])
    windows: list[date] = field(default_factory=list[date])
    positions: list[int] = field(default_factory=list[int])

    def add(self, counter: Counter) -> int:
        """Enter a counter; its position."""
        self.scopes.append(counter.scope.value)
        self.scope_ids.append(counter.scope_id)
        self.windows.append(counter.window_start)
        return len(self.scopes)


def shared_counter_keys(holds: Sequence[Hold]) -> CounterKeys:
    """Of holds of one organization, most of which have their counters in common."""
    keys = CounterKeys()
    known: dict[Counter, int] = {}
    groups: dict[tuple[UUID, UUID, date], list[int]] = {}
    for hold in holds:
        group = (hold.project_id, hold.api_key_id, hold.admitted_day)
        positions = groups.get(group)
        if positions is None:
            counters = rules.counters(hold)
            for counter in counters:
                if counter not in known:
                    known[counter] = keys.add(counter)
            positions = groups[group] = [known[counter] for counter in counters]
        keys.positions += positions
    return keys


def separate_counter_keys(holds: Sequence[Hold]) -> CounterKeys:
    """Of holds of as many organizations: six for each, one hold after the other."""
    keys = CounterKeys()
    for hold in holds:
        keys.positions += [keys.add(counter) for counter in rules.counters(hold)]
    return keys
