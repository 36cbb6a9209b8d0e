"""Metrics that are counted in memory, and written to the library's values a few times per second.

The library writes each count to a mapped file at once, under a lock and through several calls. A
request counts about twelve values. A worker that is killed loses what it has not yet written.
All counting and writing happens on one thread.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import product
from typing import Final, Protocol, cast

from prometheus_client import Counter, Gauge, Histogram

_series: Final[list["BufferedCounter | BufferedGauge | BufferedHistogram"]] = []
"""All series of this process; their number is bounded by the labels."""


def write_all() -> None:
    """Write all counts since the last call."""
    for series in _series:
        series.write()


class BufferedCounter(Counter):
    """A counter. `add` changes one number in memory."""

    def _metric_init(self) -> None:
        super()._metric_init()
        self._unwritten = 0
        _series.append(self)

    def show_zeros(self, *values: Iterable[object]) -> None:
        """Show each combination of label values from now on, so that its first count is a rise."""
        for each in product(*values):
            self.labels(*each)

    def add(self, count: int = 1) -> None:
        """Add to the counter."""
        assert count >= 0, "a counter never falls"
        self._unwritten += count

    def write(self) -> None:
        """Write what was added since the last call."""
        if self._unwritten:
            count, self._unwritten = self._unwritten, 0
            self.inc(count)


class BufferedGauge(Gauge):
    """A gauge. `set` changes one number in memory; a gauge with a source reads it when written."""

    def _metric_init(self) -> None:
        super()._metric_init()
        self._unwritten: float | None = None
        self._source: Callable[[], float] | None = None
        _series.append(self)

    def read_from(self, source: Callable[[], float]) -> None:
        """Write what `source` returns, instead of what is set."""
        self._source = source

    def set(self, value: float) -> None:
        """Set the gauge."""
        self._unwritten = value

    def write(self) -> None:
        """Write the value of the source, or the last one if any was set since the last call."""
        if self._source is not None:
            self._unwritten = self._source()
        if self._unwritten is not None:
            value, self._unwritten = self._unwritten, None
            super().set(value)


class BufferedHistogram(Histogram):
    """A histogram. `record` changes two numbers in memory."""

    def _metric_init(self) -> None:
        super()._metric_init()
        self._counts = cast("list[_Value]", self._buckets)  # pyright: ignore[reportUnknownMemberType] - theirs
        self._total = cast("_Value", self._sum)
        self._unwritten = [0] * len(self._upper_bounds)
        self._unwritten_sum = 0.0
        _series.append(self)

    def record(self, value: float) -> None:
        """Count a value in its bucket."""
        self._unwritten[bisect_left(self._upper_bounds, value)] += 1
        self._unwritten_sum += value

    def write(self) -> None:
        """Write what was observed since the last call."""
        if not any(self._unwritten):
            return
        for bucket, count in zip(self._counts, self._unwritten, strict=True):
            if count:
                bucket.inc(count)
        self._total.inc(self._unwritten_sum)
        self._unwritten = [0] * len(self._unwritten)
        self._unwritten_sum = 0.0


class _Value(Protocol):
    """The library's value, which has no type annotations."""

    def inc(self, value: float, /) -> None: ...
