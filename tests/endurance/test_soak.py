"""Seconds of the mixed traffic that `make soak` runs for an hour."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.endurance.allocated import malloc_megabytes
from tests.endurance.fitting import Slope, slope, thinned
from tests.endurance.generations import Settlement
from tests.endurance.soak import SoakResult, WorkerFigures, beside, worker_figures
from tests.endurance.watched import Sample

SECONDS = 3.0


async def test_a_run_ends_as_soon_as_a_part_of_it_fails() -> None:
    async def fail() -> None:
        raise ConnectionError

    with pytest.raises(ExceptionGroup) as failure:
        async with beside(fail(), asyncio.sleep(600)):
            await asyncio.sleep(600)

    assert failure.group_contains(ConnectionError)


def test_memory_in_use_has_no_freed_memory() -> None:
    before_megabytes = malloc_megabytes()
    taken = [bytes(1_000) for _ in range(50_000)]
    taken_megabytes = malloc_megabytes()
    del taken

    assert taken_megabytes - before_megabytes > 40
    assert malloc_megabytes() - before_megabytes < 10


@pytest.mark.guarantee("T44")
@pytest.mark.parametrize(("grown_megabytes", "faults"), [(0.5, 0), (3.0, 1)])
def test_memory_that_grows_by_more_than_its_bar_is_a_fault(
    tmp_path: Path, grown_megabytes: float, faults: int
) -> None:
    """Every twelfth sample is that of a restart."""
    with (tmp_path / "samples-1.jsonl").open("wb") as kept:
        for number in range(720):
            sample = Sample(
                at=1_000 + 5.0 * number,
                worker=1,
                rss_megabytes=120 + grown_megabytes * number / 720 + number % 2 / 10,
                malloc_megabytes=30 + number % 2 / 10,
                blocks=600_000 + number % 2 * 100,
                descriptors=40 + 300 * (number % 12 == 0),
                connections=40 + 300 * (number % 12 == 0),
                tasks=50,
                p99_ms=50 + 4_000 * (number % 12 == 0),
            )
            kept.write(msgspec.json.encode(sample) + b"\n")

    result = soaked(worker_figures(tmp_path, since=1_000, until=1_000 + 3_600))

    assert len(result.faults) == faults
    assert result.unclear == []


def test_a_slope_whose_error_exceeds_the_bar_is_unclear() -> None:
    unsure = WorkerFigures(slopes={"rss_megabytes": Slope(per_hour=0.0, error=2.0)}, series={})

    result = soaked([unsure])

    assert result.faults == []
    assert len(result.unclear) == 1


def soaked(workers: list[WorkerFigures]) -> SoakResult:
    return SoakResult(
        begun_at="2026-01-01T00:00:00Z",
        commit="0" * 12,
        wanted_seconds=3_600,
        seconds=3_600,
        capacity_per_second=200,
        offered_per_second=100,
        statuses={"200": 360_000},
        administration={},
        administration_cycles=0,
        stalled_readers=0,
        not_sent=0,
        restarts={},
        workers=workers,
        settlement=Settlement(
            generations=0, answered=0, posted=0, estimated=0, voided=0, written_off=0, faults=[]
        ),
        workers_died=0,
    )


def test_a_slope_has_the_error_of_its_fit() -> None:
    steps = [(float(at), 10 + 2 * at / 3600) for at in range(0, 7200, 60)]
    noisy = [(at, value + (-1) ** number) for number, (at, value) in enumerate(steps)]

    exact, found = slope(steps), slope(noisy)

    assert exact is not None
    assert found is not None
    assert (exact.per_hour, exact.error) == (2.0, 0.0)
    assert abs(found.per_hour - 2.0) < 2 * found.error


def test_many_points_are_thinned_to_their_means() -> None:
    points = [(float(number), float(number)) for number in range(1_000)]

    assert thinned(points, 200)[0] == (2.0, 2.0)
    assert len(thinned(points, 200)) == 200
