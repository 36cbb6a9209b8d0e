"""Clocks: the machine's, and the one that a test holds."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollhouse.base.clock import (
    Clock,
    DatabaseClock,
    HeldClock,
    SystemClock,
    unix_seconds,
)

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECONDS_2200 = 7_258_118_400_000_000
LAST_SECOND_OF_9999 = 253_402_300_799


def test_the_systems_clock_is_in_utc_and_moves_with_the_time() -> None:
    clock: Clock = SystemClock()

    before, began_seconds = datetime.now(UTC), clock.monotonic_seconds()
    now, later_seconds = clock.now(), clock.monotonic_seconds()
    after = datetime.now(UTC)

    assert now.tzinfo is UTC
    assert before <= now <= after
    assert began_seconds <= later_seconds


def test_a_held_clock_stands_still_until_it_is_moved() -> None:
    clock: Clock = HeldClock(NEW_YEAR)

    assert clock.now() == clock.now() == NEW_YEAR
    assert clock.monotonic_seconds() == clock.monotonic_seconds() == 0.0


def test_a_held_clock_moves_its_instant_and_its_duration_alike() -> None:
    clock = HeldClock(NEW_YEAR)

    clock.advance(timedelta(days=1, milliseconds=500))
    clock.advance(timedelta(seconds=1))

    assert clock.now() == datetime(2026, 1, 2, 0, 0, 1, 500_000, tzinfo=UTC)
    assert clock.monotonic_seconds() == 86_401.5


@given(st.integers(0, MICROSECONDS_2200))
def test_the_wire_form_of_an_instant_is_its_last_whole_second(microseconds: int) -> None:
    instant = EPOCH + timedelta(microseconds=microseconds)

    assert unix_seconds(instant) == microseconds // 1_000_000


@given(st.integers(0, LAST_SECOND_OF_9999))
def test_a_whole_second_comes_back_as_it_was_up_to_the_year_9999(seconds: int) -> None:
    assert unix_seconds(datetime.fromtimestamp(seconds, UTC)) == seconds


def test_the_wire_form_does_not_depend_on_the_zone_that_an_instant_is_told_in() -> None:
    elsewhere = timezone(timedelta(hours=5, minutes=45))

    assert unix_seconds(NEW_YEAR.astimezone(elsewhere)) == unix_seconds(NEW_YEAR) == 1_767_225_600


def test_the_databases_clock_is_the_machines_until_it_is_corrected() -> None:
    machine = HeldClock(NEW_YEAR)
    clock = DatabaseClock(machine)
    machine.advance(timedelta(seconds=3))

    assert clock.now() == machine.now()
    assert clock.monotonic_seconds() == machine.monotonic_seconds()


@pytest.mark.guarantee("T8")
@given(st.floats(-600, 600))
def test_a_corrected_clock_goes_on_from_the_databases_time(offset_seconds: float) -> None:
    machine = HeldClock(NEW_YEAR)
    clock = DatabaseClock(machine)
    database_now = NEW_YEAR + timedelta(seconds=offset_seconds)

    clock.correct(database_now, asked_seconds=machine.monotonic_seconds())
    machine.advance(timedelta(minutes=2))

    assert clock.now() == database_now + timedelta(minutes=2)


@given(st.floats(0, 60), st.floats(0, 1))
def test_an_answer_that_took_long_does_not_set_a_right_clock_back(
    taken_seconds: float, share: float
) -> None:
    machine = HeldClock(NEW_YEAR)
    clock = DatabaseClock(machine)
    asked_seconds = machine.monotonic_seconds()
    machine.advance(timedelta(seconds=taken_seconds))

    read_at = NEW_YEAR + share * timedelta(seconds=taken_seconds)
    clock.correct(read_at, asked_seconds=asked_seconds)

    assert abs(clock.now() - machine.now()) <= timedelta(microseconds=2)


@pytest.mark.guarantee("T8")
def test_a_machine_whose_clock_is_set_back_changes_nothing() -> None:
    machine = _SteppedClock()
    clock = DatabaseClock(machine)
    clock.correct(NEW_YEAR + timedelta(minutes=5), asked_seconds=machine.monotonic_seconds())

    machine.step = timedelta(hours=-1)

    assert clock.now() == NEW_YEAR + timedelta(minutes=5)


class _SteppedClock(HeldClock):
    """A clock that somebody sets while it runs: its instant jumps, its duration does not."""

    def __init__(self) -> None:
        super().__init__(NEW_YEAR)
        self.step = timedelta()

    def now(self) -> datetime:
        return super().now() + self.step
