"""A few random `kill -9` of real workers under load; `make kills` does a thousand.

The clock is not waited for: heartbeats and deadlines of the dead are set back.
"""

import os
from pathlib import Path

import pytest

from tests.endurance.kills import (
    UNSETTLED_SECONDS_MAX,
    KillLoad,
    assert_only_kills,
    killed_instances,
)
from tests.endurance.stage import running_stage
from tests.faults.test_many_kills import decide, reap
from tests.support import seeds
from tollhouse.ledger.reaper import REAP_EVERY
from tollhouse.storage.instances import DEAD_AFTER_SECONDS

KILLS = int(os.environ.get("TOLLHOUSE_KILLS", "5"))
WORKERS = 3


@pytest.mark.guarantee("T2")
async def test_after_random_kills_ledger_upstream_and_callers_agree(tmp_path: Path) -> None:
    async with running_stage(tmp_path, workers=WORKERS) as stage:
        load = KillLoad(stage, seeds.chance())
        await load.run(KILLS, is_hurried=True)
        assert_only_kills(stage.service)
        assert await stage.service.stop() == 0
        killed = await killed_instances(stage.database, living=0)
        await reap(stage.database)
        await decide(stage.database)

        comparison = await load.compared(killed)
        assert await load.is_resolved()
        assert comparison.faults == []
        assert comparison.difference_pico_usd == 0
        assert comparison.answered > 0


def test_a_reaper_that_dies_as_well_leaves_time_for_the_next_one() -> None:
    last_turn_seconds = DEAD_AFTER_SECONDS + REAP_EVERY.total_seconds()
    # The lease of a dead worker is another's after at most three periods.
    next_reaper_seconds = 3 * REAP_EVERY.total_seconds()

    assert last_turn_seconds + next_reaper_seconds < UNSETTLED_SECONDS_MAX
