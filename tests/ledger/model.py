"""The ledger written down a second time, from the design and not from the product.

Plain integers in memory; every verb takes the step and says what the ledger must answer.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import Enum, auto
from typing import NamedTuple
from uuid import UUID

from tollhouse.ledger.types import CapId, CapScope, Hold, Period, ResolutionResult

Window = tuple[CapScope, UUID, Period, date]

ORDER = tuple(
    (scope, period)
    for periods in ((Period.MONTH, Period.LIFETIME), (Period.DAY, Period.WEEK))
    for scope in CapScope
    for period in periods
)
"""Caps are compared from the organization down to the key, long windows before short ones."""


class State(Enum):
    """Where a hold stands; one that was refused never was one."""

    REFUSED = auto()
    OPEN = auto()
    UNSETTLED = auto()
    RESOLVED = auto()


@dataclass(frozen=True)
class Refusal:
    """Which bound refused, with what the caller is told; the credit has no scope."""

    scope: CapScope | None
    available: int
    held: int


class Charged(NamedTuple):
    """What an entry says of a charge beside its amount: who answered, and what was cached."""

    model: str
    cache_write_tokens: int = 0
    cache_write_pico: int = 0


def is_kept(window: Window, today: date) -> bool:
    """Whether it is a long window, or a day or week that has not ended or the one before."""
    _, _, period, start = window
    kept = {
        Period.DAY: today - timedelta(days=1),
        Period.WEEK: today - timedelta(days=today.weekday() + 7),
    }
    return period not in kept or start >= kept[period]


@dataclass
class ModelHold:
    hold: Hold
    worker: int
    state: State
    minimum: int = 0
    """What a worker proved before it gave the hold up."""
    charged: Charged | None = None

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
    written_off_excess: int = 0
    written_off_unknown: int = 0
    caps: dict[CapId, int] = field(default_factory=dict[CapId, int])
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

    def settle(self, reservation_id: UUID, amount: int) -> ResolutionResult:
        """At most what was held is charged; the house bears the rest."""
        held = self.holds[reservation_id]
        outcome = self._end(held)
        if outcome is ResolutionResult.NOW:
            charged = min(amount, held.amount)
            self._charge(held.hold, charged)
            self.written_off_excess += amount - charged
        return outcome

    def void(self, reservation_id: UUID) -> ResolutionResult:
        return self._end(self.holds[reservation_id])

    def write_off(self, reservation_id: UUID, posted: int = 0) -> ResolutionResult:
        """Decide without knowing: what is proven is charged, and the operator pays the rest."""
        held = self.holds[reservation_id]
        outcome = self._end(held)
        if outcome is ResolutionResult.NOW:
            self._charge(held.hold, posted)
            self.written_off_unknown += held.amount - posted
        return outcome

    def prove(self, reservation_id: UUID, minimum: int) -> None:
        """Mark a hold that has not ended; the newest minimum counts."""
        held = self.holds[reservation_id]
        if held.state in (State.OPEN, State.UNSETTLED):
            held.state, held.minimum = State.UNSETTLED, minimum

    def charges(self) -> dict[UUID, Charged]:
        """Return what was charged, by hold."""
        found = self.holds.items()
        return {number: held.charged for number, held in found if held.charged is not None}

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
            self.written_off_excess,
            self.written_off_unknown,
        )

    def counters(self, today: date) -> dict[Window, tuple[int, int]]:
        """Settled and reserved in every window that has either and that the ledger keeps."""
        windows = {**self.settled_in, **self.reserved_in}
        found = {window: self._used(window) for window in windows if is_kept(window, today)}
        return {window: used for window, used in found.items() if used != (0, 0)}

    def remaining(self, place: CapId, day: date) -> int:
        window = (place.scope, place.scope_id, place.period, place.period.window_start(day))
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

    def _end(self, held: ModelHold) -> ResolutionResult:
        if held.state is State.REFUSED:
            return ResolutionResult.NO_HOLD
        if held.state is State.RESOLVED:
            return ResolutionResult.BEFORE
        held.state = State.RESOLVED
        self._reserve(held.hold, -held.amount)
        return ResolutionResult.NOW

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

    def _places(self, hold: Hold) -> list[tuple[CapId, Window]]:
        ids = {
            CapScope.ORGANIZATION: self.organization_id,
            CapScope.PROJECT: hold.project_id,
            CapScope.KEY: hold.api_key_id,
        }
        return [
            (
                CapId(scope=scope, scope_id=ids[scope], period=period),
                (scope, ids[scope], period, period.window_start(hold.admitted_day)),
            )
            for scope, period in ORDER
        ]
