"""Every scenario, interrupted at its places: no promise breaks wherever it is cut."""

import os

import pytest

from tests.simulation import exhaustive
from tests.simulation.plan import Plan
from tests.simulation.scenarios import scenarios
from tests.support import seeds

KILLED_EVERY = int(os.environ.get("TOLLHOUSE_SIMULATION_EVERY", "6"))
"""A worker is killed after each of so many steps; 1 takes them all."""
SCENARIOS = scenarios()


@pytest.mark.guarantee("I3")
@pytest.mark.parametrize("plan", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_a_request_may_be_cancelled_at_every_suspension(plan: Plan) -> None:
    for interruption in exhaustive.interruptions(plan, ("cancel",)):
        result = exhaustive.run(plan, interruption)
        assert result.violation is None, f"{interruption}\n{result.text()}"


@pytest.mark.guarantee("I3")
@pytest.mark.parametrize("plan", SCENARIOS.values(), ids=SCENARIOS.keys())
@pytest.mark.parametrize("kind", ["drop", "kill", "stop", "pause"])
def test_a_worker_may_fail_after_every_step(plan: Plan, kind: str) -> None:
    every = KILLED_EVERY if kind == "kill" else 3 * KILLED_EVERY
    first = seeds.seed() % every
    for place, interruption in enumerate(exhaustive.interruptions(plan, (kind,))):
        if place % every == first:
            result = exhaustive.run(plan, interruption)
            assert result.violation is None, f"{interruption}\n{result.text()}"
