"""Thresholds from labelled scores, against counting by hand."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollhouse.evaluation.judge.calibration import (
    THRESHOLD_MAX,
    Labelled,
    at,
    auc,
    best_f1,
    best_recall,
    curve,
    wilson,
)

samples = st.lists(
    st.builds(Labelled, st.integers(0, 10_000), st.booleans()), min_size=1, max_size=60
)


@given(samples)
def test_every_point_of_the_curve_is_what_its_threshold_does(labelled: list[Labelled]) -> None:
    for point in curve(labelled):
        assert 1 <= point.threshold_basis_points <= THRESHOLD_MAX
        assert point == at(labelled, point.threshold_basis_points)


@given(samples)
def test_no_threshold_is_better_than_the_best(labelled: list[Labelled]) -> None:
    best = best_f1(curve(labelled)).f1

    assert all(at(labelled, threshold).f1 <= best for threshold in range(1, 10_000, 97))


def test_recall_is_the_most_that_the_innocent_allow() -> None:
    labelled = [Labelled(score, score > 5_000) for score in range(0, 10_000, 100)]
    labelled.append(Labelled(9_900, is_positive=False))

    none_allowed = best_recall(curve(labelled), false_positive_rate_max=0.0)
    some_allowed = best_recall(curve(labelled), false_positive_rate_max=0.05)

    assert none_allowed is None
    assert some_allowed is not None
    assert some_allowed.recall.value == 1.0


def test_auc_counts_pairs() -> None:
    pairs = [(1, False), (2, True), (2, False), (3, True)]
    labelled = [Labelled(score, label) for score, label in pairs]

    found = auc(labelled)

    assert found.value == pytest.approx(3.5 / 4)
    assert found.lowest <= found.value <= found.highest


def test_auc_of_labels_that_mean_nothing_is_a_half_within_its_interval() -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    labelled = [Labelled(chance.randrange(10_000), chance.random() < 0.5) for _ in range(400)]

    found = auc(labelled)

    assert found.lowest < 0.5 < found.highest


def test_of_few_the_interval_is_wide_and_of_none_everything_is_possible() -> None:
    few, many = wilson(3, 4), wilson(300, 400)

    assert few.highest - few.lowest > 4 * (many.highest - many.lowest)
    assert (wilson(0, 0).lowest, wilson(0, 0).highest) == (0.0, 1.0)
    assert wilson(5, 10).lowest == pytest.approx(0.2366, abs=1e-4)


def test_a_threshold_keeps_away_from_the_scores_that_it_tells_apart() -> None:
    labelled = [
        Labelled(score_basis_points=score, is_positive=score > 5_000)
        for score in (2_000, 3_000, 7_000)
    ]

    assert best_f1(curve(labelled)).threshold_basis_points == 5_000
    assert [point.threshold_basis_points for point in curve(labelled)] == [1_000, 2_500, 5_000]
