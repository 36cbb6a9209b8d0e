"""Metrics that are counted in memory, and written to the library's values a few times per second.

The library writes each count to a mapped file at once, under a lock and through several calls. A
request counts about twelve values. A worker that is killed loses what it has not yet written.
All counting and writing happens on one thread.
"""

from bisect import bisect_left
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

_series: Final[list["BufferedCounter | BufferedGauge | BufferedHistogram"]] = []
"""All series of this process; their number is bounded by the labels."""


def write_all() -> None:
    """Write all counts since the last call."""
    for series in _series:
        series.write()


class BufferedCounter(Counter):
    """A counter. `inc` changes one number in memory."""

    def _metric_init(self) -> None:
        super()._metric_init()
        self._unwritten = 0.0
        _series.append(self)

    def inc(self, amount: float = 1, exemplar: dict[str, str] | None = None) -> None:
        """Add to the counter."""
        del exemplar
        self._unwritten += amount

    def write(self) -> None:
        """Write what was added since the last call."""
        if self._unwritten:
            amount, self._unwritten = self._unwritten, 0.0
            super().inc(amount)


class BufferedGauge(Gauge):
    """A gauge. `set` changes one number in memory."""

    def _metric_init(self) -> None:
        super()._metric_init()
        self._unwritten: float | None = None
        _series.append(self)

    def set(self, value: float) -> None:
        """Set the gauge."""
        self._unwritten = value

    def write(self) -> None:
        """Write the last value, if one was set since the last call."""
        if self._unwritten is not None:
            value, self._unwritten = self._unwritten, None
            super().set(value)


class BufferedHistogram(Histogram):
    """A histogram. `observe` changes two numbers in memory."""

    def _metric_init(self) -> None:
        super()._metric_init()
        self._unwritten = [0] * len(self._upper_bounds)
        self._unwritten_sum = 0.0
        _series.append(self)

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        """Count a value in its bucket."""
        del exemplar
        self._unwritten[bisect_left(self._upper_bounds, amount)] += 1
        self._unwritten_sum += amount

    def write(self) -> None:
        """Write what was observed since the last call."""
        if not any(self._unwritten):
            return
        for bucket, count in zip(self._buckets, self._unwritten, strict=True):
            if count:
                bucket.inc(count)
        self._sum.inc(self._unwritten_sum)
        self._unwritten = [0] * len(self._unwritten)
        self._unwritten_sum = 0.0
