"""The rules against a bucket of fractions, which rounds nothing and is therefore slow."""

from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.limits.gates import token_cost
from tollhouse.base.traffic import TrafficLimits
from tollhouse.limits import rules
from tollhouse.limits.rules import MINUTE_US
from tollhouse.limits.types import (
    BucketCost,
    ConcurrencySlot,
    LimitedQuantity,
    LimitRequest,
    LimitScope,
)

DIVISORS = [number for number in range(1, 60_001) if MINUTE_US % number == 0]
INSTANT_US = 1_800_000_000_000_000


@dataclass
class Bucket:
    """Holds one minute's worth and fills evenly."""

    limit: int
    level: Fraction = field(init=False)

    def __post_init__(self) -> None:
        self.level = Fraction(self.limit)

    def wait(self, duration_us: int) -> None:
        self.level = min(self.level + Fraction(self.limit * duration_us, MINUTE_US), self._full)

    def take(self, units: int) -> bool:
        needed = min(Fraction(units), self._full)
        is_granted = self.level >= needed
        if is_granted:
            self.level -= needed
        return is_granted

    def correct(self, units: int) -> None:
        self.level = max(min(self.level - units, self._full), Fraction(0))

    @property
    def _full(self) -> Fraction:
        return Fraction(self.limit)


@dataclass
class Rule:
    """The same by the rules: one number."""

    full_at_us: int = INSTANT_US
    now_us: int = INSTANT_US

    def take(self, cost: BucketCost) -> bool:
        decision = rules.decide(
            LimitRequest(costs=(cost,)),
            full_at_us=[self.full_at_us],
            taken_slots=[],
            now_us=self.now_us,
        )
        if decision.refused_by is None:
            self.full_at_us = self.now_us + decision.missing_us[0]
        return decision.refused_by is None


def request(limit: int) -> BucketCost:
    return rules.request_cost(LimitScope.KEY, "a key", limit)


def some_tokens(limit: int, tokens: int) -> BucketCost:
    return token_cost(LimitScope.KEY, "a key", limit, tokens)


pauses = st.one_of(st.integers(0, 1000), st.integers(0, 2 * MINUTE_US))


@given(st.sampled_from(DIVISORS), st.lists(pauses, max_size=60))
def test_requests_pass_exactly_as_a_bucket_lets_them(limit: int, durations: list[int]) -> None:
    bucket, rule = Bucket(limit), Rule()
    for duration_us in durations:
        bucket.wait(duration_us)
        rule.now_us += duration_us

        assert rule.take(request(limit)) is bucket.take(1)


@given(
    st.sampled_from(DIVISORS),
    st.lists(st.tuples(pauses, st.integers(0, 100_000)), max_size=60),
)
def test_tokens_pass_exactly_as_a_bucket_lets_them(
    limit: int, steps: list[tuple[int, int]]
) -> None:
    bucket, rule = Bucket(limit), Rule()
    for duration_us, tokens in steps:
        bucket.wait(duration_us)
        rule.now_us += duration_us

        assert rule.take(some_tokens(limit, tokens)) is bucket.take(tokens)


@given(
    st.integers(1, 10_000_000),
    st.lists(st.tuples(pauses, st.integers(1, 20_000_000)), max_size=60),
)
def test_no_limit_is_ever_exceeded_by_rounding(limit: int, steps: list[tuple[int, int]]) -> None:
    bucket, rule = Bucket(limit), Rule()
    for duration_us, tokens in steps:
        bucket.wait(duration_us)
        rule.now_us += duration_us
        if rule.take(some_tokens(limit, tokens)):
            assert bucket.take(tokens)


@given(st.integers(1, 100_000))
def test_a_minutes_worth_of_requests_fits_in_at_once_and_not_one_more(limit: int) -> None:
    cost = request(limit)
    rule = Rule(full_at_us=INSTANT_US + cost.cost_us * (limit - 1))

    assert rule.take(cost)
    assert not rule.take(cost)


@given(
    st.sampled_from(DIVISORS),
    st.lists(st.tuples(pauses, st.integers(0, 60_000), st.integers(0, 120_000)), max_size=40),
)
def test_corrections_lead_to_where_the_bucket_is(
    limit: int, steps: list[tuple[int, int, int]]
) -> None:
    """What is used beyond the bucket empties it, and what is given back at most fills it."""
    bucket, rule = Bucket(limit), Rule()
    for duration_us, taken, used in steps:
        bucket.wait(duration_us)
        rule.now_us += duration_us
        if not rule.take(some_tokens(limit, taken)):
            continue
        bucket.take(taken)
        before, after = ((some_tokens(limit, count),) for count in (taken, used))
        bucket.correct(min(used, limit) - min(taken, limit))
        for cost, more_us in rules.correction(before, after):
            missing_us = rules.missing_us(cost, rule.full_at_us, rule.now_us)
            corrected_us = rules.corrected_us(cost, missing_us, more_us)
            rule.full_at_us = rule.now_us + corrected_us

        missing_us = max(rule.full_at_us - rule.now_us, 0)
        assert Fraction(missing_us * limit, MINUTE_US) == limit - bucket.level


def test_what_is_larger_than_the_bucket_passes_only_when_it_is_full() -> None:
    rule = Rule()

    assert rule.take(some_tokens(100, 10**30))
    assert rule.full_at_us == INSTANT_US + MINUTE_US
    rule.now_us += MINUTE_US - 1
    assert not rule.take(some_tokens(100, 101))
    rule.now_us += 1
    assert rule.take(some_tokens(100, 101))


def test_a_clock_that_went_back_leaves_a_bucket_empty_and_no_emptier() -> None:
    cost = request(60)

    assert rules.missing_us(cost, INSTANT_US, INSTANT_US - 10**12) == cost.full_us


def decide(ask: LimitRequest, missing: list[int], taken_slots: list[int]) -> tuple[object, int]:
    instants = [INSTANT_US + duration for duration in missing]
    decision = rules.decide(ask, full_at_us=instants, taken_slots=taken_slots, now_us=INSTANT_US)
    return decision.refused_by, decision.wait_us


def test_of_several_refusals_the_one_to_wait_longest_for_is_named() -> None:
    slow, fast = request(1), request(60)
    slot = ConcurrencySlot(scope=LimitScope.PROJECT, key="slots", limit=2)
    ask = LimitRequest(costs=(fast, slow), slots=(slot,), member="m")

    assert decide(ask, [MINUTE_US, 0], [0]) == (fast, 1_000_000)
    assert decide(ask, [MINUTE_US, 5], [2]) == (fast, 1_000_000)
    assert decide(ask, [MINUTE_US, 2_000_000], [2]) == (slow, 2_000_000)
    assert decide(ask, [0, 0], [2]) == (slot, 0)
    assert decide(ask, [0, 0], [1]) == (None, 0)


def test_headers_are_those_of_the_scope_that_has_the_least_left() -> None:
    costs = (request(600), request(60), request(6))

    assert rules.headers(LimitedQuantity.REQUESTS, costs, [0, 2_000_000, 10_000_000]) == (
        ("x-ratelimit-limit-requests", "6"),
        ("x-ratelimit-remaining-requests", "5"),
        ("x-ratelimit-reset-requests", "10s"),
    )
    assert rules.headers(LimitedQuantity.TOKENS, costs, [59_999_000, 0, 0])[1] == (
        *("x-ratelimit-remaining-tokens", "0"),
    )
    assert rules.headers(LimitedQuantity.TOKENS, (), ()) == ()


@pytest.mark.parametrize(
    ("duration_us", "text"),
    [
        (0, "0s"),
        (1, "1ms"),
        (12_000, "12ms"),
        (999_001, "1s"),
        (1_000_000, "1s"),
        (1_500_000, "1.5s"),
        (8_640_000, "8.64s"),
        (59_999_999, "1m0s"),
        (86_400_001, "1m26.401s"),
        (360_000_000, "6m0s"),
    ],
)
def test_durations_are_written_as_openai_writes_them(duration_us: int, text: str) -> None:
    assert rules.duration_text(duration_us) == text


@pytest.mark.parametrize(
    ("wait_us", "seconds"),
    [(0, 1), (1, 1), (1_000_000, 1), (1_000_001, 2), (60_000_000, 60), (10**12, 60)],
)
def test_retrying_is_advised_in_whole_seconds_from_1_to_60(wait_us: int, seconds: int) -> None:
    assert rules.retry_after_seconds(wait_us) == seconds


def test_of_two_limits_the_lower_bounds_hold_together() -> None:
    one = TrafficLimits(requests_per_minute=5, tokens_per_minute=7)
    other = TrafficLimits(requests_per_minute=4, concurrent_requests=2)

    both = TrafficLimits(requests_per_minute=4, tokens_per_minute=7, concurrent_requests=2)
    assert one.lowered(other) == other.lowered(one) == both
