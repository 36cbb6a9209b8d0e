"""Choosing among replicas, the breaker and the budget of repetitions, without any network."""

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from tollhouse.backends import replicas
from tollhouse.backends.errors import (
    BackendBroke,
    BackendBusy,
    BackendDown,
    BackendError,
    BackendFailed,
    BackendHungUp,
    BackendMalformed,
    BackendRejected,
    BackendTimedOut,
    BackendUnauthorized,
    BackendUnreachable,
    NoReplica,
)
from tollhouse.backends.replicas import CLOSED, FAILURES_MAX, PAUSE_SECONDS, RetryBudget

KEYS = [b"session-%d" % number for number in range(20_000)]


@dataclass(eq=False)
class Place:
    name: str
    in_flight: int = 0

    def __post_init__(self) -> None:
        self.number = replicas.replica_number(self.name)


def places(count: int) -> list[Place]:
    return [Place(f"http://10.0.0.{index}:8000/v1") for index in range(count)]


def drawn(candidates: "list[Place]", key: bytes | None) -> Place:
    return replicas.choose(candidates, key, draw=random.Random(1).choice)  # noqa: S311 - no secret


def homes(candidates: list[Place]) -> dict[bytes, str]:
    return {key: drawn(candidates, key).name for key in KEYS}


def test_a_session_has_its_replica_whatever_the_order() -> None:
    candidates = places(20)

    assert homes(candidates) == homes(candidates[::-1])


@pytest.mark.parametrize("count", [2, 3, 7, 100])
def test_sessions_are_spread_evenly(count: int) -> None:
    shares = Counter(homes(places(count)).values())

    mean = len(KEYS) / count
    assert len(shares) == count
    assert max(shares.values()) < mean + 5 * mean**0.5
    assert min(shares.values()) > mean - 5 * mean**0.5


@pytest.mark.parametrize("gone", [0, 3, 9])
def test_only_the_sessions_of_a_replica_that_goes_move_and_they_spread(gone: int) -> None:
    candidates = places(10)
    before = homes(candidates)
    lost = candidates.pop(gone)

    after = homes(candidates)

    moved = {key for key in KEYS if before[key] != after[key]}
    assert moved == {key for key in KEYS if before[key] == lost.name}
    assert len({after[key] for key in moved}) == 9


def test_a_new_replica_takes_its_share_from_all() -> None:
    candidates = places(10)
    before = homes(candidates)

    after = homes([*candidates, Place("http://new:8000/v1")])

    moved = [key for key in KEYS if before[key] != after[key]]
    assert {after[key] for key in moved} == {"http://new:8000/v1"}
    assert 1_400 < len(moved) < 2_300


@pytest.mark.parametrize("count", [1, 2, 5, 100])
def test_one_busy_session_does_not_fill_its_replica(count: int) -> None:
    candidates = places(count)

    for taken in range(1_000):
        drawn(candidates, b"the same").in_flight += 1
        mean = (taken + 1) / count
        assert max(place.in_flight for place in candidates) <= 1.25 * mean + 1


def test_affinity_comes_back_when_its_replica_has_room_again() -> None:
    candidates = places(5)
    home = drawn(candidates, b"key")
    home.in_flight = 10

    elsewhere = drawn(candidates, b"key")
    home.in_flight = 0

    assert elsewhere is not home
    assert drawn(candidates, b"key") is home


def test_without_affinity_the_least_loaded_is_drawn() -> None:
    candidates = places(4)
    candidates[0].in_flight, candidates[2].in_flight = 3, 1
    draws = random.Random(7)  # noqa: S311 - no secret

    chosen = {replicas.choose(candidates, None, draw=draws.choice) for _ in range(100)}

    assert chosen == {candidates[1], candidates[3]}


@pytest.mark.guarantee("T41")
def test_a_breaker_opens_after_failures_in_a_row() -> None:
    breaker = CLOSED
    for _ in range(4):
        breaker = breaker.after_failure(100.0)
    assert breaker.allows(100.0)
    assert breaker.after_success() is CLOSED

    opened = breaker.after_failure(100.0)

    assert opened.is_open
    assert not opened.allows(100.0 + PAUSE_SECONDS - 0.001)


def test_an_open_breaker_lets_one_through_in_each_pause() -> None:
    opened = CLOSED
    for _ in range(FAILURES_MAX):
        opened = opened.after_failure(100.0)
    assert opened.allows(100.0 + PAUSE_SECONDS)

    trying = opened.after_call_began(100.0 + PAUSE_SECONDS)

    assert not trying.allows(100.0 + PAUSE_SECONDS)
    assert trying.allows(100.0 + 2 * PAUSE_SECONDS)
    assert trying.after_success() is CLOSED
    failed = trying.after_failure(100.0 + 1.5 * PAUSE_SECONDS)
    assert not failed.allows(100.0 + 2 * PAUSE_SECONDS)


def test_a_closed_breaker_takes_no_notice_of_calls() -> None:
    failing = CLOSED.after_failure(100.0)

    assert failing.after_call_began(100.0) is failing


@pytest.mark.guarantee("T41")
def test_repetitions_stay_below_a_tenth_of_the_calls_and_ten() -> None:
    budget = RetryBudget()
    repeated = 0

    for calls in range(1, 1_001):
        budget.earn()
        repeated += budget.spend()
        repeated += budget.spend()
        assert repeated <= calls // 10 + 10

    assert repeated >= 100


@pytest.mark.parametrize(
    ("failure", "is_repeated", "is_repeated_where_billed"),
    [
        (BackendUnreachable(replica="r"), True, True),
        (BackendHungUp(replica="r"), True, False),
        (BackendDown(replica="r"), True, False),
        (BackendBusy(replica="r"), True, False),
        (BackendFailed(replica="r"), False, False),
        (BackendMalformed(replica="r"), False, False),
        (BackendUnauthorized(replica="r"), False, False),
        (BackendBroke(replica="r"), False, False),
        (BackendRejected(None, replica="r"), False, False),
        (BackendTimedOut(replica="r"), False, False),
        (NoReplica(), False, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BackendError) else str(value),
)
def test_what_may_be_repeated(
    failure: BackendError, is_repeated: bool, is_repeated_where_billed: bool
) -> None:
    def may_retry(*, bills_without_answer: bool, attempts: int = 1) -> bool:
        return replicas.may_retry(
            failure, attempts=attempts, bills_without_answer=bills_without_answer
        )

    assert may_retry(bills_without_answer=False) is is_repeated
    assert may_retry(bills_without_answer=True) is is_repeated_where_billed
    assert not may_retry(bills_without_answer=False, attempts=replicas.ATTEMPTS_MAX)
