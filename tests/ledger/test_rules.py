"""How holds end, when they are decided, and what they are counted in."""

from datetime import UTC, date, datetime, timedelta
from itertools import product

import pytest

from tollhouse.ledger.rules import CAPS, FIRST_CAP_CODE, Ending, cap_of, decide_at, ending
from tollhouse.ledger.types import Period

NOON = datetime(2026, 3, 31, 12, tzinfo=UTC)

ENDINGS = [
    # bills, complete, output, usage
    (False, True, True, True, Ending.SETTLE_AT_USAGE),
    (False, True, True, False, Ending.SETTLE_AT_COUNT),
    (False, True, False, True, Ending.SETTLE_AT_USAGE),
    (False, True, False, False, Ending.SETTLE_AT_COUNT),
    (False, False, True, True, Ending.SETTLE_AT_USAGE),
    (False, False, True, False, Ending.SETTLE_AT_COUNT),
    (False, False, False, True, Ending.VOID),
    (False, False, False, False, Ending.VOID),
    (True, True, True, True, Ending.SETTLE_AT_USAGE),
    (True, True, True, False, Ending.KEEP_UNSETTLED),
    (True, True, False, True, Ending.SETTLE_AT_USAGE),
    (True, True, False, False, Ending.KEEP_UNSETTLED),
    (True, False, True, True, Ending.KEEP_UNSETTLED),
    (True, False, True, False, Ending.KEEP_UNSETTLED),
    (True, False, False, True, Ending.KEEP_UNSETTLED),
    (True, False, False, False, Ending.KEEP_UNSETTLED),
]


@pytest.mark.parametrize(("bills", "complete", "output", "usage", "expected"), ENDINGS)
def test_a_hold_ends_by_what_is_known(
    bills: bool, complete: bool, output: bool, usage: bool, expected: Ending
) -> None:
    assert (
        ending(bills_without_answer=bills, is_complete=complete, has_output=output, has_usage=usage)
        is expected
    )


def test_every_case_has_its_row() -> None:
    assert {row[:4] for row in ENDINGS} == set(product((False, True), repeat=4))


@pytest.mark.parametrize(
    ("bills_without_answer", "grace"), [(False, timedelta(seconds=60)), (True, timedelta(hours=24))]
)
def test_an_unsettled_hold_is_decided_some_time_after_its_deadline(
    bills_without_answer: bool, grace: timedelta
) -> None:
    assert decide_at(NOON, bills_without_answer=bills_without_answer) == NOON + grace


@pytest.mark.parametrize("day", [date(2026, 2, 1), date(2026, 2, 28)])
def test_a_month_begins_on_its_first_day(day: date) -> None:
    assert Period.MONTH.window_start(day) == date(2026, 2, 1)


def test_a_lifetime_begins_with_time() -> None:
    assert Period.LIFETIME.window_start(NOON.date()) == date.min


@pytest.mark.parametrize(
    ("day", "monday"),
    [
        (date(2026, 11, 16), date(2026, 11, 16)),
        (date(2026, 11, 22), date(2026, 11, 16)),
        (date(2027, 1, 3), date(2026, 12, 28)),
    ],
)
def test_a_week_begins_on_monday_also_across_a_year(day: date, monday: date) -> None:
    assert Period.WEEK.window_start(day) == monday
    assert Period.DAY.window_start(day) == day


def test_caps_of_the_previous_release_keep_their_places() -> None:
    assert [" ".join(cap) for cap in CAPS] == [
        *("organization month", "organization lifetime", "project month", "project lifetime"),
        *("api_key month", "api_key lifetime"),
        *("organization day", "organization week", "project day", "project week"),
        *("api_key day", "api_key week"),
    ]


@pytest.mark.parametrize("code", [7, FIRST_CAP_CODE - 1, FIRST_CAP_CODE + len(CAPS)])
def test_an_unknown_code_of_a_refusal_is_no_cap(code: int) -> None:
    with pytest.raises(ValueError, match=f"unknown code {code}"):
        cap_of(code)
