"""A verdict is believed for the same version, content and judge, for a while."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.judge.cases import policy, scored
from tollhouse.base.clock import HeldClock
from tollhouse.evaluation.judge.verdict_cache import VerdictCache
from tollhouse.policies.types import DRAFT_VERSION

POLICY = policy("Is it about bread?")
SCORE = scored(7_000)


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock(datetime(2026, 11, 15, tzinfo=UTC))


@pytest.fixture
def cache(clock: HeldClock) -> VerdictCache:
    return VerdictCache(clock, verdicts_max=3, age_seconds_max=60.0)


def test_it_is_found_again(cache: VerdictCache) -> None:
    cache.keep(POLICY, b"content", "judge", SCORE)

    assert cache.find(POLICY, b"content", "judge") == SCORE


def test_it_belongs_to_the_version_the_content_and_the_judge(cache: VerdictCache) -> None:
    cache.keep(POLICY, b"content", "judge", SCORE)

    assert cache.find(replace(POLICY, version=2), b"content", "judge") is None
    assert cache.find(policy(POLICY.rule), b"content", "judge") is None
    assert cache.find(POLICY, b"another content", "judge") is None
    assert cache.find(POLICY, b"content", "another judge") is None


def test_a_draft_is_not_remembered(cache: VerdictCache) -> None:
    """It may ask something else under the same number."""
    draft = replace(POLICY, version=DRAFT_VERSION)

    cache.keep(draft, b"content", "judge", SCORE)

    assert cache.find(draft, b"content", "judge") is None
    assert len(cache) == 0


def test_it_is_believed_for_a_while(cache: VerdictCache, clock: HeldClock) -> None:
    cache.keep(POLICY, b"content", "judge", SCORE)

    clock.advance(timedelta(seconds=59))
    assert cache.find(POLICY, b"content", "judge") == SCORE
    clock.advance(timedelta(seconds=1))
    assert cache.find(POLICY, b"content", "judge") is None


def test_the_oldest_goes_first(cache: VerdictCache) -> None:
    for number in range(4):
        cache.keep(POLICY, bytes([number]), "judge", SCORE)
        cache.keep(POLICY, b"\x03", "judge", SCORE)

    kept = [number for number in range(4) if cache.find(POLICY, bytes([number]), "judge")]
    assert kept == [1, 2, 3]


def test_what_is_kept_again_is_the_youngest(cache: VerdictCache) -> None:
    for number in (0, 1, 2, 0, 3):
        cache.keep(POLICY, bytes([number]), "judge", SCORE)

    kept = [number for number in range(4) if cache.find(POLICY, bytes([number]), "judge")]
    assert kept == [0, 2, 3]


def test_what_is_stale_makes_room(cache: VerdictCache, clock: HeldClock) -> None:
    cache.keep(POLICY, b"old", "judge", SCORE)
    clock.advance(timedelta(seconds=61))

    cache.keep(POLICY, b"new", "judge", SCORE)

    assert len(cache) == 1
