"""How holds end, when they are decided, and what they are counted in."""

from datetime import UTC, date, datetime, timedelta
from itertools import product
from uuid import UUID

import pytest

from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId, ReservationId
from tollhouse.base.money import PicoUsd
from tollhouse.ledger.rules import (
    CAPS,
    Ending,
    counters,
    decide_at,
    ending,
)
from tollhouse.ledger.types import CapScope, Counter, Hold, Period

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


def test_a_hold_moves_six_counters_in_the_order_of_the_caps() -> None:
    hold = Hold(
        organization_id=OrganizationId(UUID(int=1)),
        reservation_id=ReservationId(UUID(int=2)),
        project_id=ProjectId(UUID(int=3)),
        api_key_id=ProjectKeyId(UUID(int=4)),
        model="m",
        price_revision=1,
        amount_pico_usd=PicoUsd(1),
        admitted_at=NOON,
        deadline_at=NOON,
        bills_without_answer=False,
    )

    moved = counters(hold)

    assert tuple((counter.scope, counter.period) for counter in moved) == CAPS
    assert [counter.scope_id.int for counter in moved] == [1, 1, 3, 3, 4, 4]
    assert moved[4] == Counter(
        scope=CapScope.KEY,
        scope_id=UUID(int=4),
        period=Period.MONTH,
        window_start=date(2026, 3, 1),
    )
