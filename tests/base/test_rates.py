"""Rates of organizations: a minute's worth at once, then as much as a minute gives back."""

from datetime import UTC, datetime, timedelta

import pytest

from tollhouse.base.clock import HeldClock
from tollhouse.base.ids import OrganizationId, time_ordered_uuid
from tollhouse.base.rates import ORGANIZATIONS_MAX, OrganizationRate, retry_after_seconds

ONE, OTHER = (OrganizationId(time_ordered_uuid()) for _ in range(2))
SECOND_US = 1_000_000


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock(datetime.now(UTC))


@pytest.fixture
def rate(clock: HeldClock) -> OrganizationRate:
    return OrganizationRate(clock, per_minute=60)


def test_a_minutes_worth_passes_at_once_and_no_more(rate: OrganizationRate) -> None:
    assert [rate.acquire(ONE, 20) for _ in range(3)] == [0, 0, 0]
    assert rate.acquire(ONE, 1) == SECOND_US


def test_what_is_refused_takes_nothing(rate: OrganizationRate, clock: HeldClock) -> None:
    rate.acquire(ONE, 60)
    assert rate.acquire(ONE, 10) == rate.acquire(ONE, 10) == 10 * SECOND_US

    clock.advance(timedelta(seconds=10))
    assert rate.acquire(ONE, 10) == 0


def test_organizations_do_not_share(rate: OrganizationRate) -> None:
    rate.acquire(ONE, 60)

    assert rate.acquire(OTHER, 60) == 0


def test_more_than_a_minutes_worth_passes_when_the_bucket_is_full(
    rate: OrganizationRate, clock: HeldClock
) -> None:
    assert rate.acquire(ONE, 120) == 0
    assert rate.acquire(ONE, 1) == 61 * SECOND_US

    clock.advance(timedelta(seconds=119))
    assert rate.acquire(ONE, 120) == SECOND_US
    clock.advance(timedelta(seconds=1))
    assert rate.acquire(ONE, 120) == 0


def test_a_charge_is_never_refused_and_leaves_a_debt(rate: OrganizationRate) -> None:
    rate.acquire(ONE, 60)
    rate.charge(ONE, 30)

    assert rate.wait_us(ONE, 1) == 31 * SECOND_US


def test_what_is_given_back_never_exceeds_a_full_bucket(rate: OrganizationRate) -> None:
    rate.acquire(ONE, 10)
    rate.charge(ONE, -50)

    assert rate.acquire(ONE, 60) == 0
    assert rate.acquire(ONE, 1) == SECOND_US


def test_the_organization_that_used_longest_ago_is_forgotten(rate: OrganizationRate) -> None:
    rate.acquire(ONE, 60)
    rate.acquire(OTHER, 60)
    for _ in range(ORGANIZATIONS_MAX - 1):
        rate.acquire(OrganizationId(time_ordered_uuid()), 1)

    assert rate.wait_us(ONE, 1) == 0
    assert rate.wait_us(OTHER, 1) == SECOND_US


@pytest.mark.parametrize(
    ("wait_us", "seconds"), [(1, 1), (SECOND_US, 1), (SECOND_US + 1, 2), (10**9, 60)]
)
def test_a_wait_is_rounded_up_to_what_clients_obey(wait_us: int, seconds: int) -> None:
    assert retry_after_seconds(wait_us) == seconds
