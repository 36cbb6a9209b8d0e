"""The registry of this process's metrics, and their output for Prometheus.

Workers write to files in the folder named by PROMETHEUS_MULTIPROC_DIR, which is set before they
start, and the supervisor adds them up and shows its own beside them. Without the variable a process
shows only its own counts.
"""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final, Protocol, cast

from prometheus_client import CollectorRegistry, generate_latest, values
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector

from tollhouse.observability import buffered_metrics

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_DEAD_WORKERS_ID: Final = "0"
"""Names the files with the sums of dead workers; no process has this ID."""

if values.ValueClass is not values.MutexValue:
    # The library checks at every count whether the process was forked. Workers are not forked.
    values.ValueClass = values.MultiProcessValue(partial(int, os.getpid()))  # pyright: ignore[reportUnknownMemberType] - theirs

registry = CollectorRegistry()
supervisor_registry = CollectorRegistry()


def exposition(directory: Path | None) -> bytes:
    """Return all metrics, of the workers that write to `directory` or of this process.

    The counts of the workers are as old as their last write.
    """
    if directory is None:
        buffered_metrics.write_all()
        return generate_latest(registry)
    everything = CollectorRegistry()
    MultiProcessCollector(everything, path=str(directory))
    return generate_latest(everything) + generate_latest(supervisor_registry)


def fold_dead_worker(directory: Path, process_id: int) -> None:
    """Add a dead worker's counts to the sums of dead workers, and remove its files.

    So counters do not fall when a worker is replaced, and files do not accumulate.
    """
    for source in directory.glob(f"*_{process_id}.db"):
        kind = source.name.removesuffix(f"_{process_id}.db")
        if not kind.startswith("gauge_live"):
            total = directory / f"{kind}_{_DEAD_WORKERS_ID}.db"
            _fold(source, total, keeps_greatest=kind == "gauge_max")
        source.unlink()


def _fold(source: Path, total: Path, *, keeps_greatest: bool) -> None:
    counted = cast("_ValueFile", MmapedDict(str(source), read_mode=True))
    totals = cast("_ValueFile", MmapedDict(str(total)))
    for key, value, _ in counted.read_all_values():
        before, _ = totals.read_value(key)
        totals.write_value(key, max(before, value) if keeps_greatest else before + value, 0.0)
    counted.close()
    totals.close()


class _ValueFile(Protocol):
    """The library's file of values, which has no type annotations."""

    def read_all_values(self) -> Iterator[tuple[str, float, float]]: ...
    def read_value(self, key: str) -> tuple[float, float]: ...
    def write_value(self, key: str, value: float, timestamp: float) -> None: ...
    def close(self) -> None: ...
