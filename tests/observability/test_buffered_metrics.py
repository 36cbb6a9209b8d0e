"""Metrics counted in memory show what the library's own would show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tollhouse.observability import buffered_metrics
from tollhouse.observability.buffered_metrics import (
    BufferedCounter,
    BufferedGauge,
    BufferedHistogram,
)

BOUNDS = (0.25, 0.5, 1, 2.5, 600)
Round = list[tuple[str, float]]
"""What is counted between two writes: labels and values."""
VALUES = st.integers(0, 4_000).map(lambda quarters: quarters / 4)
"""Sums of these are exact in any order."""


@pytest.fixture(autouse=True)
def no_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are compared, and the time of a metric's creation differs."""
    monkeypatch.setattr("prometheus_client.metrics._use_created", False)


def buffered(rounds: list[Round]) -> bytes:
    registry = CollectorRegistry()
    counter = BufferedCounter("c", "Counts.", ["name"], registry=registry)
    gauge = BufferedGauge("g", "Sizes.", ["name"], registry=registry)
    histogram = BufferedHistogram("h", "Times.", ["name"], buckets=BOUNDS, registry=registry)
    for each in rounds:
        for name, value in each:
            counter.labels(name).add(int(value))
            gauge.labels(name).set(value)
            histogram.labels(name).record(value)
        buffered_metrics.write_all()
    return generate_latest(registry)


def direct(rounds: list[Round]) -> bytes:
    registry = CollectorRegistry()
    counter = Counter("c", "Counts.", ["name"], registry=registry)
    gauge = Gauge("g", "Sizes.", ["name"], registry=registry)
    histogram = Histogram("h", "Times.", ["name"], buckets=BOUNDS, registry=registry)
    for each in rounds:
        for name, value in each:
            counter.labels(name).inc(int(value))
            gauge.labels(name).set(value)
            histogram.labels(name).observe(value)
    return generate_latest(registry)


@given(st.lists(st.lists(st.tuples(st.sampled_from("ab"), VALUES), max_size=8), max_size=4))
def test_every_page_is_the_same(rounds: list[Round]) -> None:
    assert buffered(rounds) == direct(rounds)


def test_what_is_not_written_yet_is_not_shown() -> None:
    registry = CollectorRegistry()
    counter = BufferedCounter("c", "Counts.", registry=registry)

    counter.add()

    assert registry.get_sample_value("c_total") == 0
    buffered_metrics.write_all()
    assert registry.get_sample_value("c_total") == 1


def test_a_gauge_that_was_not_set_again_is_not_written_again() -> None:
    registry = CollectorRegistry()
    gauge = BufferedGauge("g", "Sizes.", registry=registry)
    gauge.set(3)
    buffered_metrics.write_all()

    Gauge.set(gauge, 5)
    buffered_metrics.write_all()

    assert registry.get_sample_value("g") == 5
