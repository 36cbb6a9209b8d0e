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
"""What is counted between two writes: a label and an amount."""
AMOUNTS = st.integers(0, 4_000).map(lambda quarters: quarters / 4)
"""Sums of these are exact in any order."""


@pytest.fixture(autouse=True)
def no_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are compared, and the time of a metric's creation differs."""
    monkeypatch.setattr("prometheus_client.metrics._use_created", False)


def page(
    counters: type[Counter], gauges: type[Gauge], histograms: type[Histogram], rounds: list[Round]
) -> bytes:
    registry = CollectorRegistry()
    counter = counters("c", "Counts.", ["name"], registry=registry)
    gauge = gauges("g", "Sizes.", ["name"], registry=registry)
    histogram = histograms("h", "Times.", ["name"], buckets=BOUNDS, registry=registry)
    for each in rounds:
        for name, amount in each:
            counter.labels(name).inc(amount)
            gauge.labels(name).set(amount)
            histogram.labels(name).observe(amount)
        buffered_metrics.write_all()
    return generate_latest(registry)


@given(st.lists(st.lists(st.tuples(st.sampled_from("ab"), AMOUNTS), max_size=8), max_size=4))
def test_every_page_is_the_same(rounds: list[Round]) -> None:
    buffered = page(BufferedCounter, BufferedGauge, BufferedHistogram, rounds)

    assert buffered == page(Counter, Gauge, Histogram, rounds)


def test_what_is_not_written_yet_is_not_shown() -> None:
    registry = CollectorRegistry()
    counter = BufferedCounter("c", "Counts.", registry=registry)

    counter.inc()

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
