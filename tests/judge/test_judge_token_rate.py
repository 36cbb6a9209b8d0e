"""Judge tokens of an organization: enforcing and monitoring have a minute's worth each."""

from datetime import UTC, datetime, timedelta

import pytest

from tollhouse.base.clock import HeldClock
from tollhouse.base.ids import OrganizationId, time_ordered_uuid
from tollhouse.evaluation.errors import JudgeTokensExhausted
from tollhouse.evaluation.judge.quotas import JudgeTokenRate

ONE, OTHER = (OrganizationId(time_ordered_uuid()) for _ in range(2))


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock(datetime.now(UTC))


@pytest.fixture
def rate(clock: HeldClock) -> JudgeTokenRate:
    return JudgeTokenRate(clock, tokens_per_minute=60)


@pytest.mark.parametrize("is_monitoring", [False, True])
def test_each_use_has_all_tokens_of_a_minute_and_takes_none_of_the_other(
    rate: JudgeTokenRate, *, is_monitoring: bool
) -> None:
    rate.acquire(ONE, 60, is_monitoring=is_monitoring)

    with pytest.raises(JudgeTokensExhausted):
        rate.acquire(ONE, 1, is_monitoring=is_monitoring)
    rate.acquire(ONE, 60, is_monitoring=not is_monitoring)


def test_a_check_looks_at_enforcing_alone_and_takes_nothing(rate: JudgeTokenRate) -> None:
    rate.acquire(ONE, 60, is_monitoring=True)

    rate.check(ONE, 60)
    rate.acquire(ONE, 60)
    with pytest.raises(JudgeTokensExhausted):
        rate.check(ONE, 1)
    rate.check(OTHER, 60)


@pytest.mark.parametrize("is_monitoring", [False, True])
def test_a_correction_goes_to_the_use_that_took(
    rate: JudgeTokenRate, *, is_monitoring: bool
) -> None:
    rate.acquire(ONE, 60, is_monitoring=is_monitoring)
    rate.acquire(ONE, 60, is_monitoring=not is_monitoring)

    rate.adjust(ONE, -20, is_monitoring=is_monitoring)

    rate.acquire(ONE, 20, is_monitoring=is_monitoring)
    with pytest.raises(JudgeTokensExhausted):
        rate.acquire(ONE, 20, is_monitoring=not is_monitoring)


def test_a_debt_is_waited_for(rate: JudgeTokenRate, clock: HeldClock) -> None:
    rate.acquire(ONE, 60)
    rate.adjust(ONE, 5)

    with pytest.raises(JudgeTokensExhausted) as refused:
        rate.acquire(ONE, 1)
    assert refused.value.retry_after_seconds == 6
    clock.advance(timedelta(seconds=6))
    rate.acquire(ONE, 1)
