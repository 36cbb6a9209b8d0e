"""Machines die, freeze and are cut off under traffic; service returns and money is exact."""

import os

import pytest

from tests.availability.deployment import Deployment
from tests.availability.faults import FAULTS
from tests.availability.results import record
from tests.availability.setups import SETUPS

ROUNDS = int(os.environ.get("TOLLHOUSE_AVAILABILITY_ROUNDS", "0"))
"""With 0, only `test_two_servers.py` runs: it needs neither Patroni nor namespaces."""
AFTER_PROMOTION_SECONDS_MAX = 5.0


@pytest.mark.clock
@pytest.mark.nightly
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.skipif(ROUNDS == 0, reason="make test-availability runs the faults with Patroni")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("number", range(1, ROUNDS + 1))
async def test_service_returns_and_every_answer_is_charged_once(
    deployment: Deployment, fault: str, number: int
) -> None:
    if fault not in SETUPS[deployment.setup].faults:
        pytest.skip(f"not one of the faults of this setup (round {number})")

    shown = await deployment.run(fault)

    record(shown)
    assert shown.is_history_kept, "an older primary came back, and replaced what was committed"
    assert shown.money.is_exact, (shown, await deployment.describe())
    assert shown.replaced_workers == 0
    assert (shown.seconds_after_promotion or 0) < AFTER_PROMOTION_SECONDS_MAX, shown
