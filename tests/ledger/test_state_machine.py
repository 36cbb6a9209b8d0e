"""The ledger against a model of it, in random walks.

`TOLLHOUSE_LEDGER_STEPS` says how many steps are taken in all.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar, NamedTuple

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.ledger.books import Library, library
from tests.ledger.model import Charged, ModelHold, ModelLedger, Refusal, State
from tests.ledger.past import days_ago, enter_past
from tests.support import seeds
from tests.support.spending import WAIT_MAX
from tollhouse.base.ids import ReservationId
from tollhouse.base.money import PicoUsd
from tollhouse.ledger import provable, reaper, verification
from tollhouse.ledger.errors import CapNotFound, ClockIsWrong, DeadlinePassed
from tollhouse.ledger.types import (
    NOTHING,
    Charge,
    GrantKind,
    Hold,
    Resolution,
    ResolutionKind,
    ResolutionResult,
)

STEPS = int(os.environ.get("TOLLHOUSE_LEDGER_STEPS", "400"))
STEPS_PER_WALK = 50

OVERDUE = timedelta(seconds=70)
DEAD = timedelta(seconds=45)
WRONG = timedelta(minutes=11)
FALLBACK = "the model that answered"


class Wanted(NamedTuple):
    """A request that asks for admission."""

    key: int
    amount: int
    bills_without_answer: bool


class End(NamedTuple):
    """How one of the last holds ends: void without an amount, and cut at the hold as it must be.

    Another model than the one that was asked may have answered.
    """

    state: State
    back: int
    amount: int | None
    is_cut: bool
    model: str | None


# Small numbers, so that what is wanted often just fits and often just does not.
FIRST_GRANT = 1_500
GRANTS = st.integers(1, 1_500)
CORRECTIONS = st.integers(1, 800)
AMOUNTS = st.integers(0, 300)
LIMITS = st.integers(0, 2_000)
KEYS = st.integers(0, 2)
PLACES = st.integers(0, 23)
BACK = st.integers(0, 9)
PAST_DAYS = st.sampled_from([0, 1, 40, 100])
WANTED = st.builds(Wanted, KEYS, AMOUNTS, st.booleans())
ENDS = st.builds(
    End,
    st.sampled_from([State.OPEN, State.OPEN, State.OPEN, *State]),
    BACK,
    st.one_of(st.none(), AMOUNTS, AMOUNTS),
    st.sampled_from([True] * 9 + [False]),
    st.sampled_from([None, None, FALLBACK]),
)


def _has_holds(machine: "LedgerMachine") -> bool:
    return bool(machine.model.holds)


def _has_open(machine: "LedgerMachine") -> bool:
    return bool(machine.in_state(State.OPEN))


def _has_unsettled(machine: "LedgerMachine") -> bool:
    return bool(machine.in_state(State.UNSETTLED))


ENDED = Refusal(None, 0, 0)
"""What is told of a hold that has ended: neither credit nor a cap refused it."""


class LedgerMachine(RuleBasedStateMachine):
    """One organization, and one worker at a time.

    Only some catalogs have prices for cache writes, or fallbacks: the ledger has functions of its
    own for ends with either, and each must be tried.
    """

    library: ClassVar[Library]
    steps_taken: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.books = self.library.new_books()
        self.model = ModelLedger(self.books.org.organization_id)
        self.places = self.books.places()
        self.instance_id, self.batcher = self.books.worker()
        self.workers = 1
        self.has_cache_writes = self.has_fallbacks = False
        self.grant(FIRST_GRANT)

    def teardown(self) -> None:
        org = self.books.org
        assert self.library.do(verification.verify(org.database, org.organization_id)) == []

    @initialize(has_cache_writes=st.booleans(), has_fallbacks=st.booleans())
    def load_catalog(self, *, has_cache_writes: bool, has_fallbacks: bool) -> None:
        self.has_cache_writes, self.has_fallbacks = has_cache_writes, has_fallbacks

    @rule(amount=GRANTS)
    def grant(self, amount: int) -> None:
        self.library.do(self.books.spender(self.batcher).grant(amount))
        self.model.credit += amount

    @rule(amount=CORRECTIONS)
    def correct(self, amount: int) -> None:
        """Also below what is used and held."""
        spender = self.books.spender(self.batcher)
        self.library.do(spender.grant(-amount, GrantKind.CORRECTION))
        self.model.credit -= amount

    @rule(number=PLACES, limit=LIMITS)
    def set_cap(self, number: int, limit: int) -> None:
        place, now = self.places[number], datetime.now(UTC)
        spender = self.books.spender(self.batcher)

        use = self.library.do(spender.set_cap(place, limit, now=now))

        self.model.caps[place] = limit
        assert use.remaining_pico_usd == self.model.remaining(place, now.date())

    @rule(number=PLACES)
    def clear_cap(self, number: int) -> None:
        place, spender = self.places[number], self.books.spender(self.batcher)
        if self.model.caps.pop(place, None) is None:
            with pytest.raises(CapNotFound):
                self.library.do(spender.clear_cap(place))
        else:
            self.library.do(spender.clear_cap(place))

    @rule(wanted=WANTED)
    def admit(self, wanted: Wanted) -> None:
        self._at_once([], [wanted])

    @rule(wanted=st.lists(WANTED, min_size=2, max_size=6))
    def admit_many(self, wanted: list[Wanted]) -> None:
        self._at_once([], wanted)

    @precondition(_has_holds)
    @rule(end=ENDS)
    def end(self, end: End) -> None:
        self._at_once([end], [])

    @precondition(_has_holds)
    @rule(ends=st.lists(ENDS, min_size=1, max_size=5), wanted=st.lists(WANTED, max_size=4))
    def end_and_admit(self, ends: list[End], wanted: list[Wanted]) -> None:
        """What the ends give back can be reserved in the same batch. One hold may end twice."""
        self._at_once(ends, wanted)

    @precondition(_has_holds)
    @rule(state=st.sampled_from(State), back=BACK)
    def admit_again(self, state: State, back: int) -> None:
        """A hold that is there is admitted; one that ended covers nothing; a refused one may be."""
        held = self._last(back, state)
        refusal = self.library.do(self.books.admit_again(self.instance_id, held.hold))

        expected: Refusal | None = None
        if held.state is State.REFUSED:
            expected = self.model.admit(held.hold, self.workers)
        elif held.state is State.RESOLVED:
            expected = ENDED
        assert refusal == expected

    @rule(wanted=WANTED, drift=st.sampled_from([-WRONG, timedelta(0), WRONG]))
    def admit_out_of_time(self, wanted: Wanted, drift: timedelta) -> None:
        """Without drift it is the deadline that has passed."""
        hold = self._hold(wanted)
        late = replace(hold, admitted_at=hold.admitted_at + drift, deadline_at=hold.admitted_at)
        with pytest.raises(ClockIsWrong if drift else DeadlinePassed):
            self.library.do(self.batcher.admit(late, wait_max=WAIT_MAX))

    @rule()
    def worker_dies(self) -> None:
        """Its holds are unsettled; another worker goes on, and may settle them late."""
        ledger = self.books.tills[0]
        self.library.do(ledger.let_die(self.instance_id, DEAD))
        self.library.do(reaper.run(self.books.org.database))

        self.model.mark_orphaned(self.workers)
        self.instance_id, self.batcher = self.books.worker()
        self.workers += 1

    @precondition(_has_open)
    @rule(back=BACK)
    def deadline_passes(self, back: int) -> None:
        """A backend that bills nothing on its own has nothing more to say."""
        held = self._last(back, State.OPEN)
        self.library.do(self.books.tills[0].let_pass(held.hold, OVERDUE))
        self.library.do(reaper.run(self.books.org.database))

        if held.hold.bills_without_answer:
            self.model.mark(held.hold.reservation_id)
        else:
            assert self.model.write_off(held.hold.reservation_id) is ResolutionResult.NOW
            held.charged = Charged(held.hold.model)

    @precondition(_has_unsettled)
    @rule(back=BACK)
    def decision_comes(self, back: int) -> None:
        self._decide(self._last(back, State.UNSETTLED))

    @precondition(_has_holds)
    @rule(
        state=st.sampled_from([State.OPEN, State.UNSETTLED, *State]),
        back=BACK,
        amount=AMOUNTS,
        is_due=st.booleans(),
    )
    def minimum_is_proven(self, state: State, back: int, amount: int, *, is_due: bool) -> None:
        """A worker gives a hold up with what it has counted, perhaps when it has ended."""
        held = self._last(back, state)
        counted = replace(
            self._posted(held.hold, min(amount, held.amount)),
            kind=ResolutionKind.WRITE_OFF,
            delivered_tokens=2,
            is_estimated=True,
        )
        self.library.do(provable.record(self.books.org.database, counted))
        self.model.prove(held.hold.reservation_id, counted.charge.total_pico_usd)
        if is_due and held.state is State.UNSETTLED:
            self._decide(held)

    @precondition(_has_unsettled)
    @rule(back=BACK, amount=AMOUNTS)
    def settle_late(self, back: int, amount: int) -> None:
        held = self._last(back, State.UNSETTLED)
        end = self._posted(held.hold, amount)
        (outcome,), _ = self.library.do(self.books.at_once(self.batcher, [end], []))
        assert outcome is ResolutionResult.NOW
        self._end_in_model(held, amount, end)

    @precondition(_has_holds)
    @rule(
        state=st.sampled_from([State.UNSETTLED, State.UNSETTLED, *State]),
        back=BACK,
        amount=st.one_of(st.none(), AMOUNTS),
    )
    def operator_decides(self, state: State, back: int, amount: int | None) -> None:
        """Only what is unsettled can be decided by hand."""
        held = self._last(back, state)
        reservation_id = ReservationId(held.hold.reservation_id)
        was_decided = self.library.do(
            self.books.operator_releases(reservation_id)
            if amount is None
            else self.books.operator_settles(reservation_id, amount)
        )

        assert was_decided == (held.state is State.UNSETTLED)
        if was_decided:
            self._end_in_model(held, amount)
            held.charged = None if amount is None else Charged(held.hold.model)

    @rule(key=KEYS, days=PAST_DAYS, amount=AMOUNTS)
    def backfill(self, key: int, days: int, amount: int) -> None:
        hold = self._hold(Wanted(key, amount, bills_without_answer=False))
        day = days_ago(days)
        self.library.do(enter_past(self.books.tills[key], day, amount))
        begun = datetime(day.year, day.month, day.day, tzinfo=UTC)
        self.model.backfill(replace(hold, admitted_at=begun))

    @invariant()
    def the_ledger_is_what_the_model_says(self) -> None:
        LedgerMachine.steps_taken += 1
        assert self.library.do(self.books.accounts()) == self.model.accounts()
        today = datetime.now(UTC).date()
        assert self.library.do(self.books.counters(today)) == self.model.counters(today)
        unsettled = {
            held.hold.reservation_id: held.amount for held in self.in_state(State.UNSETTLED)
        }
        assert self.library.do(self.books.unsettled()) == unsettled
        charges = self.library.do(self.books.charges(self.model.holds))
        assert charges == self.model.charges()

    def in_state(self, state: State) -> list[ModelHold]:
        """Newest last."""
        return [held for held in self.model.holds.values() if held.state is state]

    def _last(self, back: int, state: State) -> ModelHold:
        """One of the newest in this state, or of all if there is none."""
        found = self.in_state(state) or list(self.model.holds.values())
        return found[-1 - back % len(found)]

    def _hold(self, wanted: Wanted) -> Hold:
        return self.books.tills[wanted.key].new_hold(
            wanted.amount, bills_without_answer=wanted.bills_without_answer
        )

    def _at_once(self, ends: Sequence[End], wanted: Sequence[Wanted]) -> None:
        ending = [self._last(end.back, end.state) for end in ends]
        resolutions = [
            self._resolution(held.hold, end) for held, end in zip(ending, ends, strict=True)
        ]
        holds = [self._hold(one) for one in wanted]

        outcomes, refusals = self.library.do(self.books.at_once(self.batcher, resolutions, holds))

        expected = [
            self._expected(held, end, resolution)
            for held, end, resolution in zip(ending, ends, resolutions, strict=True)
        ]
        assert outcomes == expected
        assert refusals == [self.model.admit(hold, self.workers) for hold in holds]

    def _decide(self, held: ModelHold) -> None:
        reservation_id = held.hold.reservation_id
        self.library.do(self.books.let_decision_come(reservation_id))
        outcome = self.model.write_off(reservation_id, posted=held.minimum)
        assert outcome is ResolutionResult.NOW
        # The fallback that had the proven usage is not known any more.
        held.charged = _charged(held.hold, self._charge(held.minimum))

    def _expected(
        self, held: ModelHold, end: End, resolution: Resolution
    ) -> ResolutionResult | None:
        """The database refuses a charge above its hold, and the hold stays as it is."""
        is_above = not end.is_cut and end.amount is not None and end.amount > held.amount
        if is_above and held.state is not State.REFUSED:
            return None
        return self._end_in_model(held, end.amount, resolution)

    def _end_in_model(
        self, held: ModelHold, amount: int | None, resolution: Resolution | None = None
    ) -> ResolutionResult:
        reservation_id = held.hold.reservation_id
        if amount is None:
            return self.model.void(reservation_id)
        result = self.model.settle(reservation_id, amount)
        if result is ResolutionResult.NOW and resolution is not None:
            held.charged = _charged(held.hold, resolution.charge, resolution.model)
        return result

    def _resolution(self, hold: Hold, end: End) -> Resolution:
        model = end.model if self.has_fallbacks and end.amount is not None else None
        if end.amount is not None and end.is_cut:
            return replace(self._posted(hold, end.amount), model=model)
        return Resolution(
            organization_id=hold.organization_id,
            reservation_id=hold.reservation_id,
            admitted_day=hold.admitted_day,
            kind=ResolutionKind.VOID if end.amount is None else ResolutionKind.POST,
            charge=NOTHING if end.amount is None else self._charge(end.amount),
            model=model,
        )

    def _posted(self, hold: Hold, amount: int) -> Resolution:
        charged = min(amount, hold.amount_pico_usd)
        return Resolution(
            organization_id=hold.organization_id,
            reservation_id=hold.reservation_id,
            admitted_day=hold.admitted_day,
            kind=ResolutionKind.POST,
            charge=self._charge(charged),
            excess_pico_usd=PicoUsd(amount - charged),
        )

    def _charge(self, amount: int) -> Charge:
        """Half of it is input. If it is odd, half of the input may be written to the cache."""
        is_written = self.has_cache_writes and amount % 2 == 1
        return Charge(
            input_tokens=2,
            cache_write_tokens=int(is_written),
            output_tokens=2,
            input_pico_usd=PicoUsd(amount // 2),
            cache_write_pico_usd=PicoUsd(amount // 4 if is_written else 0),
            output_pico_usd=PicoUsd(amount - amount // 2),
        )


def _charged(hold: Hold, charge: Charge, model: str | None = None) -> Charged:
    return Charged(model or hold.model, charge.cache_write_tokens, charge.cache_write_pico_usd)


@pytest.fixture(scope="module")
def opened(migrated_template: str) -> Iterator[Library]:
    with library(migrated_template) as started:
        yield started


@pytest.mark.guarantee("T6", "I1", "I8")
def test_money_goes_every_way_that_its_model_goes(opened: Library) -> None:
    LedgerMachine.library = opened
    rounds = 0
    while LedgerMachine.steps_taken < STEPS:
        walks = (STEPS - LedgerMachine.steps_taken) // STEPS_PER_WALK + 1
        drawn = seed(seeds.seed() + rounds)
        run_state_machine_as_test(drawn(LedgerMachine), settings=_walks(walks))
        rounds += 1
    opened.assert_conserved(fallbacks={FALLBACK})


def _walks(count: int) -> settings:
    return settings(
        max_examples=count,
        stateful_step_count=STEPS_PER_WALK,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
