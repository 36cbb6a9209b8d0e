"""Plans that are drawn from seeds: none breaks a promise, and a seed is always the same run."""

import os

import pytest

from tests.simulation import runs, simulation
from tests.simulation.plan import Plan, draw
from tests.simulation.shrink import shrink
from tests.simulation.simulation import Simulation
from tests.support import seeds
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.types import Resolution

SEEDS = int(os.environ.get("TOLLHOUSE_SIMULATION_SEEDS", "600"))
SEEDS_APART = 1_000_000
"""Between the first seeds of two commits, so that their ranges do not overlap."""


class _ImpatientBatcher(Batcher):
    """Answers with an error before the hold is given back."""

    async def resolve_before_answer(self, resolution: Resolution) -> None:
        self.resolve(resolution)


@pytest.mark.guarantee("I3", "I4", "T6")
def test_no_seed_of_this_commit_breaks_a_promise() -> None:
    first = seeds.seed() % 1_000 * SEEDS_APART
    tally = runs.run_seeds(first, seeds=SEEDS, seconds=float("inf"), processes=1)
    assert not tally.failed, runs.explain(tally.failed[0])


def test_a_seed_gives_the_same_run_twice() -> None:
    for seed in range(20):
        first, second = simulation.run(draw(seed)), simulation.run(draw(seed))
        assert first.text() == second.text()
        assert first.steps == second.steps


def test_an_error_that_leaves_before_its_hold_is_given_back_is_found_and_made_small() -> None:
    found = next(plan for plan in map(draw, range(100)) if _fails(plan))
    smallest = shrink(found, _fails)
    assert len(smallest.requests) == 1
    assert not smallest.fates
    result = _run(smallest)
    assert result.violation is not None
    assert result.violation.check == "error after void"
    assert "caller gets error" in result.text().splitlines()[-1]


def _run(plan: Plan) -> simulation.Result:
    return Simulation(
        plan,
        batcher_of=lambda database, tasks, instance: _ImpatientBatcher(
            database, tasks, instance, own_batches_max=2
        ),
    ).run()


def _fails(plan: Plan) -> bool:
    violation = _run(plan).violation
    return violation is not None and violation.check == "error after void"
