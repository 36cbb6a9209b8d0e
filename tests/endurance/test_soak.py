"""Seconds of the mixed traffic that `make soak` runs for an hour."""

import asyncio
from pathlib import Path

import pytest

from tests.endurance.allocated import malloc_megabytes
from tests.endurance.fitting import slope, thinned
from tests.endurance.soak import SERVICE, beside, soak
from tests.endurance.stage import running_stage
from tests.support import seeds

SECONDS = 3.0


@pytest.mark.guarantee("T44")
async def test_mixed_traffic_over_restarts_is_settled_exactly(tmp_path: Path) -> None:
    async with running_stage(tmp_path, **SERVICE) as stage:
        result = await soak(
            stage,
            tmp_path,
            seeds.chance(),
            seconds=SECONDS,
            saturate_seconds=1.0,
            restart_seconds=0.5,
            is_hurried=True,
        )

    assert result.settlement.faults == []
    assert result.workers_died == 0
    assert result.settlement.answered > 0
    assert set(result.restarts) == {"redis", "engine", "postgresql"}


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
