"""Choosing among replicas, ejecting them and trying them again, without any network."""

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from tollhouse.backends import replicas
from tollhouse.backends.call_history import ALL_WELL, PAUSES_SECONDS, CallHistory, ReplicaUse
from tollhouse.backends.errors import (
    BackendBroke,
    BackendBusy,
    BackendError,
    BackendFailed,
    BackendHungUp,
    BackendMalformed,
    BackendRejected,
    BackendSilent,
    BackendTimedOut,
    BackendUnauthorized,
    BackendUnreachable,
    NoReplica,
    PromptTooLong,
)

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


FAILED = BackendFailed(replica="r")
NOW = 100.0


def after(outcomes: str, history: CallHistory = ALL_WELL) -> CallHistory:
    """The history after failures (`f`) and successes (`s`)."""
    for outcome in outcomes:
        failed = outcome == "f"
        history = history.after_failure(FAILED, NOW) if failed else history.after_success()
    return history


@pytest.mark.guarantee("T41")
@pytest.mark.parametrize(
    ("outcomes", "is_ejected"),
    [
        ("ff", False),
        ("fff", True),
        ("ffsf", False),
        ("ffsff", True),
        ("fs" * 10, False),
        ("fs" * 10 + "f", True),
        ("fsss" * 50, False),
    ],
)
def test_a_replica_is_ejected_when_most_of_its_last_calls_failed(
    outcomes: str, *, is_ejected: bool
) -> None:
    history = after("s" + outcomes)

    assert history.allows(NOW, is_bounded=True) is not is_ejected


@pytest.mark.guarantee("T41")
def test_one_call_in_each_pause_is_a_trial_and_pauses_grow_to_ten_seconds() -> None:
    history, now, pauses = after("fff"), NOW, list[float]()
    for _ in range(8):
        began = now
        while not history.allows(now, is_bounded=True):
            now += 0.5
        pauses.append(now - began)
        history = history.after_call_began(now).after_failure(FAILED, now + 0.1)

    assert pauses == [1, 2, 4, 8, 10, 10, 10, 10]


def test_a_trial_that_succeeds_puts_the_replica_in_use_but_on_probation() -> None:
    tried = after("fff").after_call_began(NOW + 1).after_success()

    assert tried.state is ReplicaUse.IN_USE
    assert after("f", tried).state is ReplicaUse.FAILING
    assert not after("f", tried).allows(NOW + 1.9, is_bounded=True)
    assert after("s" * 20, tried) is ALL_WELL


def test_failures_of_calls_that_began_before_do_not_put_a_trial_off() -> None:
    assert after("f" * 50).allows(NOW + PAUSES_SECONDS[0], is_bounded=True)


@pytest.mark.parametrize("cooldown_seconds", [5, 60])
def test_a_replica_that_names_a_pause_is_not_called_before_its_end(cooldown_seconds: int) -> None:
    busy = BackendBusy(replica="r", cooldown_seconds=cooldown_seconds)

    history = ALL_WELL.after_failure(busy, NOW)

    assert history.state is ReplicaUse.COOLING
    assert not history.allows(NOW + cooldown_seconds - 0.1, is_bounded=True)
    assert history.allows(NOW + cooldown_seconds, is_bounded=True)


def test_a_pause_of_a_day_is_a_minute() -> None:
    history = ALL_WELL.after_failure(BackendBusy(replica="r", cooldown_seconds=86_400), NOW)

    assert history.allows(NOW + 60, is_bounded=True)


def test_a_call_that_may_wait_for_minutes_tries_no_silent_replica_while_others_do() -> None:
    silent = ALL_WELL
    for _ in range(3):
        silent = silent.after_failure(BackendSilent(replica="r"), NOW)

    assert silent.state is ReplicaUse.SILENT
    assert silent.allows(NOW + 1, is_bounded=True)
    assert not silent.allows(NOW + 10.9, is_bounded=False)
    assert silent.allows(NOW + 11, is_bounded=False)


# The failure, whether it counts against the replica, and whether another replica or model may
# answer: after a backend that bills only for answers, and after one that may bill without.
FAILURES: list[tuple[BackendError, bool, bool, bool]] = [
    (BackendRejected("no", replica="r"), False, False, False),
    (
        *(PromptTooLong(prompt_tokens=9, output_tokens=1, context_tokens=8, replica="r"),),
        *(False, False, False),
    ),
    (BackendUnauthorized(replica="r"), False, True, True),
    (NoReplica(), False, True, True),
    (BackendTimedOut(replica="r"), False, True, False),
    (BackendUnreachable(replica="r"), True, True, True),
    (BackendBusy(replica="r"), True, True, True),
    (BackendFailed(replica="r"), True, True, True),
    (BackendHungUp(replica="r"), True, True, False),
    (BackendMalformed(replica="r"), True, True, False),
    (BackendBroke(replica="r"), True, True, False),
    (BackendSilent(replica="r"), True, True, False),
]


@pytest.mark.parametrize(("failure", "is_blamed", "if_free", "if_billed"), FAILURES)
def test_who_is_to_blame_and_whether_another_may_answer(
    failure: BackendError, *, is_blamed: bool, if_free: bool, if_billed: bool
) -> None:
    assert failure.blames_replica is is_blamed
    assert replicas.may_move(failure, bills_without_answer=False) is if_free
    assert replicas.may_move(failure, bills_without_answer=True) is if_billed


def test_every_failure_is_in_the_table() -> None:
    def below(kind: type[BackendError]) -> set[type[BackendError]]:
        return {kind}.union(*map(below, kind.__subclasses__()))

    assert {type(failure) for failure, *_ in FAILURES} == below(BackendError) - {BackendError}
