"""The master of a Redis with Sentinels is killed under load through the whole gateway."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.faults.test_redis_gone import AMPLE, ANSWERS_BETWEEN, Load, turned
from tests.inference.test_chat import cost
from tests.ledger.invariants import assert_conserved
from tests.support.deployment import Deployment, offering, open_deployment
from tests.support.limits import set_limit
from tests.support.organization_fixture import OrganizationFixture
from tests.support.redis_groups import Group, Node, running_cluster, running_sentinels
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import RedisSettings, Settings

ANSWER_SECONDS = 2.0


@pytest.fixture(params=[running_sentinels, running_cluster])
def group(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Group]:
    with request.param(tmp_path, replicas=1) as running:
        yield running


@pytest.fixture
async def deployment(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture, group: Group
) -> AsyncIterator[Deployment]:
    redis = RedisSettings(url=group.url, answer_seconds=ANSWER_SECONDS)
    offered = msgspec.structs.replace(offering(settings, upstream.base_url), redis=redis)
    async with open_deployment(offered, upstream, org) as opened:
        await set_limit(org, AMPLE)
        yield opened


def scripts_run(node: Node) -> int:
    return node.ask("INFO", "commandstats")["cmdstat_evalsha"]["calls"]


@pytest.mark.nightly
async def test_no_request_fails_and_the_new_master_counts(
    deployment: Deployment, group: Group
) -> None:
    key = (
        f"tollhouse:{{{deployment.org.organization_id}}}:requests:{deployment.org.organization_id}"
    )
    async with deployment.customer() as client:
        load = Load(client)
        await load.go_on()
        lost = group.master(key)
        assert scripts_run(lost) > 0
        lost.kill()
        await turned(alone=True)
        await load.go_on()
        found = await asyncio.to_thread(group.await_failover, lost, key)
        await turned(alone=False)
        before = scripts_run(found)
        await load.go_on()
        assert scripts_run(found) >= before + ANSWERS_BETWEEN
        usages = await load.stop()

    credit = await deployment.settled(len(usages))
    assert credit.settled_pico_usd == sum(map(cost, usages))
    await assert_conserved(deployment.org.database)
