"""A few random `kill -9` of real workers under load; `make kills` does a thousand.

The clock is not waited for: heartbeats and deadlines of the dead are set back.
"""

import os
from pathlib import Path

import pytest

from tests.endurance.kills import KillLoad, assert_only_kills, killed_instances
from tests.endurance.stage import running_stage
from tests.faults.test_many_kills import decide, reap
from tests.support import seeds

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
