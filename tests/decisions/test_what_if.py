"""Other thresholds on scores that are known by the hundredth only."""

from hypothesis import given
from hypothesis import strategies as st

from tollhouse.decisions.rules import BINS, matched


@given(st.lists(st.integers(0, 10_000), max_size=80), st.integers(1, 9_999))
def test_the_truth_lies_between_the_bounds(scores: list[int], threshold: int) -> None:
    counts = [0] * BINS
    for score in scores:
        counts[min(score // 100, BINS - 1)] += 1

    lowest, highest = matched(counts, threshold_basis_points=threshold)

    true = sum(score >= threshold for score in scores)
    assert lowest <= true <= highest
    if threshold % 100 == 0:
        assert lowest == highest
