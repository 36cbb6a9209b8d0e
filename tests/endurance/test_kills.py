"""A few random `kill -9` of real workers under load; `make kills` does a thousand.

The clock is not waited for: heartbeats and deadlines of the dead are set back.
"""

import os
from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from tests.endurance.kills import (
    UNSETTLED_SECONDS_MAX,
    KillLoad,
    assert_only_kills,
    killed_instances,
)
from tests.endurance.stage import EnduranceStage, running_stage
from tests.faults.test_many_kills import decide, reap
from tests.identity.waiting import until
from tests.support import seeds
from tollhouse.ledger.reaper import REAP_EVERY
from tollhouse.storage.instances import DEAD_AFTER_SECONDS

pytestmark = pytest.mark.nightly

KILLS = int(os.environ.get("TOLLHOUSE_KILLS", "5"))
WORKERS = 3
SKIPPED = timedelta(seconds=25)


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


@pytest.mark.clock
@pytest.mark.guarantee("I9")
async def test_at_any_moment_a_hold_has_a_live_worker_or_is_unsettled(tmp_path: Path) -> None:
    """The workers' own reaper marks and decides; half a minute of its time is skipped."""
    async with running_stage(tmp_path, workers=WORKERS) as stage:
        load = KillLoad(stage, seeds.chance())
        await load.run(KILLS, is_hurried=True)
        await set_heartbeats_back(stage, await load.dead_instances())
        observer = load.observer

        async def are_marked() -> bool:
            return observer.open_now == observer.unsettled_now or bool(observer.faults)

        await until(are_marked)
        await stage.database.fetch_all(
            "UPDATE unsettled_holds SET decide_at = clock_timestamp() RETURNING 1"
        )

        async def are_resolved() -> bool:
            return await load.is_resolved() or bool(observer.faults)

        await until(are_resolved)
        await load.stop_looking()
        assert_only_kills(stage.service)

    assert observer.faults == []
    assert observer.unsettled_max > 0, "a kill left holds behind"


async def set_heartbeats_back(stage: EnduranceStage, dead: Collection[UUID]) -> None:
    await stage.database.fetch_all(
        "UPDATE instances SET heartbeat_at = heartbeat_at - $2::interval"
        " WHERE id = ANY($1) RETURNING 1",
        list(dead),
        SKIPPED,
    )


def test_a_reaper_that_dies_as_well_leaves_time_for_the_next_one() -> None:
    last_turn_seconds = DEAD_AFTER_SECONDS + REAP_EVERY.total_seconds()
    # The lease of a dead worker is another's after at most three periods.
    next_reaper_seconds = 3 * REAP_EVERY.total_seconds()

    assert last_turn_seconds + next_reaper_seconds < UNSETTLED_SECONDS_MAX
