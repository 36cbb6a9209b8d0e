"""The ledger written down a second time, from the design and not from the product.

Plain integers in memory; every verb takes the step and says what the ledger must answer.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from enum import Enum, auto
from uuid import UUID

from tollhouse.ledger.types import CapPlace, Hold, Period, Resolved, Scope

Window = tuple[Scope, UUID, date]

ORDER = tuple((scope, period) for scope in Scope for period in Period)
"""Caps are compared from the organization down to the key, the month before the lifetime."""


class State(Enum):
    """Where a hold stands; one that was refused never was one."""

    REFUSED = auto()
    OPEN = auto()
    UNSETTLED = auto()
    RESOLVED = auto()


@dataclass(frozen=True)
class Refusal:
    """Which bound refused, with what the caller is told; the credit has no scope."""

    scope: Scope | None
    available: int
    held: int


@dataclass
class ModelHold:
    hold: Hold
    worker: int
    state: State

    @property
    def amount(self) -> int:
        return self.hold.amount_pico_usd


@dataclass
class ModelLedger:
    """One organization's money."""

    organization_id: UUID
    credit: int = 0
    settled: int = 0
    reserved: int = 0
    absorbed_excess: int = 0
    absorbed_unknown: int = 0
    caps: dict[CapPlace, int] = field(default_factory=dict[CapPlace, int])
    settled_in: Counter[Window] = field(default_factory=Counter[Window])
    reserved_in: Counter[Window] = field(default_factory=Counter[Window])
    holds: dict[UUID, ModelHold] = field(default_factory=dict[UUID, ModelHold])

    def admit(self, hold: Hold, worker: int) -> Refusal | None:
        refusal = self._refusal(hold)
        state = State.OPEN if refusal is None else State.REFUSED
        self.holds[hold.reservation_id] = ModelHold(hold, worker, state)
        if refusal is None:
            self._reserve(hold, hold.amount_pico_usd)
        return refusal

    def settle(self, reservation_id: UUID, amount: int) -> Resolved:
        """At most what was held is charged; the house bears the rest."""
        held = self.holds[reservation_id]
        outcome = self._end(held)
        if outcome is Resolved.NOW:
            charged = min(amount, held.amount)
            self._charge(held.hold, charged)
            self.absorbed_excess += amount - charged
        return outcome

    def void(self, reservation_id: UUID) -> Resolved:
        return self._end(self.holds[reservation_id])

    def absorb(self, reservation_id: UUID) -> None:
        """Decide without knowing: nothing is charged, and the house bears what was held."""
        held = self.holds[reservation_id]
        assert self._end(held) is Resolved.NOW
        self.absorbed_unknown += held.amount

    def mark(self, reservation_id: UUID) -> None:
        self.holds[reservation_id].state = State.UNSETTLED

    def mark_orphaned(self, worker: int) -> None:
        for held in self.holds.values():
            if held.worker == worker and held.state is State.OPEN:
                held.state = State.UNSETTLED

    def backfill(self, hold: Hold) -> None:
        """Credit and its use at once, past every cap."""
        self.credit += hold.amount_pico_usd
        self._charge(hold, hold.amount_pico_usd)

    def accounts(self) -> tuple[int, ...]:
        return (
            self.credit,
            self.settled,
            self.reserved,
            self.absorbed_excess,
            self.absorbed_unknown,
        )

    def counters(self) -> dict[Window, tuple[int, int]]:
        """Settled and reserved in every window that has either."""
        windows = {**self.settled_in, **self.reserved_in}
        found = {window: self._used(window) for window in windows}
        return {window: used for window, used in found.items() if used != (0, 0)}

    def remaining(self, place: CapPlace, day: date) -> int:
        window = (place.scope, place.scope_id, place.period.window_start(day))
        return self.caps[place] - sum(self._used(window))

    def _refusal(self, hold: Hold) -> Refusal | None:
        available = self.credit - self.settled - self.reserved
        if hold.amount_pico_usd > available:
            return Refusal(None, available, self._under_way())
        for place, window in self._places(hold):
            if place not in self.caps:
                continue
            remaining = self.caps[place] - sum(self._used(window))
            if hold.amount_pico_usd > remaining:
                return Refusal(place.scope, remaining, self._under_way(window))
        return None

    def _under_way(self, window: Window | None = None) -> int:
        """What waiting can give back: held by requests whose end is still to come."""
        return sum(
            held.amount
            for held in self.holds.values()
            if held.state is State.OPEN
            and (window is None or window in [found for _, found in self._places(held.hold)])
        )

    def _end(self, held: ModelHold) -> Resolved:
        if held.state is State.REFUSED:
            return Resolved.NO_HOLD
        if held.state is State.RESOLVED:
            return Resolved.BEFORE
        held.state = State.RESOLVED
        self._reserve(held.hold, -held.amount)
        return Resolved.NOW

    def _reserve(self, hold: Hold, amount: int) -> None:
        self.reserved += amount
        for _, window in self._places(hold):
            self.reserved_in[window] += amount

    def _charge(self, hold: Hold, amount: int) -> None:
        self.settled += amount
        for _, window in self._places(hold):
            self.settled_in[window] += amount

    def _used(self, window: Window) -> tuple[int, int]:
        return self.settled_in[window], self.reserved_in[window]

    def _places(self, hold: Hold) -> list[tuple[CapPlace, Window]]:
        ids = {
            Scope.ORGANIZATION: self.organization_id,
            Scope.PROJECT: hold.project_id,
            Scope.KEY: hold.api_key_id,
        }
        return [
            (
                CapPlace(scope=scope, scope_id=ids[scope], period=period),
                (scope, ids[scope], period.window_start(hold.admitted_day)),
            )
            for scope, period in ORDER
        ]
