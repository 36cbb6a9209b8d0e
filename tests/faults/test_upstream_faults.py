"""Faults of a backend, on every surface, whole and streamed; and that many leave nothing behind."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
import pytest_asyncio

from tests.faults.upstream_faults import (
    ANSWERED,
    BACKEND,
    BROKEN,
    BUSY,
    FAULTS,
    IMPATIENT_MODEL,
    LATE,
    Fault,
    Refusal,
)
from tests.identity.waiting import until
from tests.ledger.invariants import assert_conserved
from tests.support import seeds
from tests.support.deployment import MESSAGES_MODEL, MODEL, TAKES, Deployment, customer_of, model
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_deployment import upstream
from tests.support.shared_gateway import (
    Gateways,
    database,
    database_url,
    gateways,
    org,
    settings,
)
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

__all__ = ["database", "database_url", "gateways", "org", "settings", "upstream"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

FAULTS_IN_A_ROW = int(os.environ.get("TOLLHOUSE_FAULTS", "120"))
"""The full run has ten thousand."""
LANES = 6
"""So many at once, each with backends of its own: a sound answer after every fault closes their
breakers, which would otherwise keep most faults from happening."""
SLOW_FAULTS = {"sends too long a record"}
"""Which say nothing new when they are repeated, and take seconds."""
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/compat/anthropic/v1/messages",
}
COUNTING = "/v1/messages/count_tokens"


DIALECTS = pytest.mark.parametrize("dialect", ["openai", "anthropic"])


@pytest.fixture
def dialect() -> str:
    return "openai"


@pytest_asyncio.fixture(loop_scope="module")
async def deployment(
    gateways: Gateways,
    settings: Settings,
    upstream: ScriptedUpstream,
    org: OrganizationFixture,
    dialect: str,
) -> Deployment:
    lanes = range(LANES)
    shared: dict[str, Any] = {
        "replicas": [upstream.base_url],
        "dialect": dialect,
        "counts_tokens_by": "messages",
    }
    patient = shared | ({"takes": TAKES} if dialect == "openai" else {})
    impatient = shared | {"first_event_seconds": 0.2, "total_seconds": 0.5}
    abilities: dict[str, Any] = MESSAGES_MODEL if dialect == "anthropic" else {}
    unable: dict[str, Any] = abilities | {"features": []}
    offered = msgspec.structs.replace(
        settings,
        backends={f"patient-{lane}": patient for lane in lanes}
        | {f"impatient-{lane}": impatient for lane in lanes},
        models={
            in_lane(MODEL, lane): model(backend=f"patient-{lane}", **abilities) for lane in lanes
        }
        | {
            in_lane(IMPATIENT_MODEL, lane): model(backend=f"impatient-{lane}", **unable)
            for lane in lanes
        },
    )
    return await customer_of(await gateways.offering(offered), upstream, org)


def in_lane(model_id: str, lane: int) -> str:
    return f"{model_id}-{lane}"


def body(endpoint: str, content: str, *, model_id: str, is_stream: bool) -> dict[str, Any]:
    shared = {"model": model_id, "stream": is_stream}
    if endpoint == "chat":
        return shared | {"messages": [{"role": "user", "content": content}]}
    if endpoint == "messages":
        said = [{"role": "user", "content": content}]
        return shared | {"messages": said, "max_tokens": 1_024}
    return shared | {"input": content}


def ending(answer: httpx2.Response) -> Refusal | str:
    if not answer.is_success:
        error = answer.json()["error"]
        assert error["request_id"] == answer.headers["x-request-id"]
        return answer.status_code, error["code"]
    is_broken = '"error":{' in answer.text or "response.failed" in answer.text
    return BROKEN if is_broken else ANSWERED


async def suffer(
    client: httpx2.AsyncClient, fault: Fault, endpoint: str, *, is_stream: bool, lane: int = 0
) -> httpx2.Response:
    """The fault, and then a sound answer, which forgives the replica; lateness needs no pardon."""
    script = json.dumps({"script": fault.script})
    asked = body(endpoint, script, model_id=in_lane(fault.model, lane), is_stream=is_stream)
    answer = await client.post(PATHS[endpoint], json=asked)
    sound = body(endpoint, "Hi", model_id=in_lane(MODEL, lane), is_stream=is_stream)
    assert ending(await client.post(PATHS[endpoint], json=sound)) == ANSWERED
    return answer


@pytest.mark.guarantee("T41")
@DIALECTS
@pytest.mark.parametrize("endpoint", seeds.partly_nightly(PATHS, at_landings=1))
async def test_each_fault_ends_as_it_should_and_blames_whom_it_should(
    deployment: Deployment, endpoint: str
) -> None:
    waiting = product(FAULTS.items(), (False, True))

    async def run(client: httpx2.AsyncClient, lane: int) -> None:
        for (name, fault), is_stream in waiting:
            answer = await suffer(client, fault, endpoint, is_stream=is_stream, lane=lane)

            assert ending(answer) == fault.ending(is_stream=is_stream), (name, is_stream)
            if ending(answer) != ANSWERED:
                record = await deployment.record(answer.headers["x-request-id"])
                expected = "caller" if name == "refuses the request" else "backend"
                assert record["failed_by"] == expected, name

    async with deployment.customer() as client:
        await asyncio.gather(*(run(client, lane) for lane in range(LANES)))

    await deployment.settled(4 * len(FAULTS))


@pytest.mark.guarantee("T41")
@DIALECTS
async def test_tokens_are_estimated_where_a_fault_keeps_the_backend_from_counting(
    deployment: Deployment,
) -> None:
    tasks_before, sockets_before = running_tasks(), open_sockets()
    async with deployment.customer() as client:
        for name, fault in FAULTS.items():
            answer = await count(client, fault.model, json.dumps({"script": fault.script}))
            if fault.whole in (ANSWERED, BACKEND, BUSY, LATE):
                assert answer.is_success, name
                is_counted = answer.json()["input_tokens"] == words_in(answer)
                assert is_counted is (fault.whole == ANSWERED), name
            else:
                assert ending(answer) == fault.whole, name
            sound = await count(client, MODEL, "Hi there")
            assert sound.json()["input_tokens"] == words_in(sound)

    assert await deployment.admitted() == 0
    await until(lambda: nothing_is_left(tasks_before, sockets_before))


async def count(client: httpx2.AsyncClient, model_id: str, content: str) -> httpx2.Response:
    said = [{"role": "user", "content": content}]
    return await client.post(COUNTING, json={"model": in_lane(model_id, 0), "messages": said})


def words_in(answer: httpx2.Response) -> int:
    """Return what the upstream counts in a request of one message."""
    (message,) = json.loads(answer.request.content)["messages"]
    return 1 + len(message["content"].split())


@pytest.mark.guarantee("T41")
async def test_many_faults_leave_no_task_socket_or_hold_behind(deployment: Deployment) -> None:
    waiting = many_faults()
    tasks_before, sockets_before = running_tasks(), open_sockets()

    async def run(client: httpx2.AsyncClient, lane: int) -> None:
        # All lanes draw from the same many.
        for name, endpoint, is_stream in waiting:
            fault = FAULTS[name]
            answer = await suffer(client, fault, endpoint, is_stream=is_stream, lane=lane)
            told = ending(answer)
            assert told == fault.ending(is_stream=is_stream), (name, endpoint, is_stream)

    async with deployment.customer() as client:
        await asyncio.gather(*(run(client, lane) for lane in range(LANES)))

    await deployment.settled(2 * FAULTS_IN_A_ROW)
    await assert_conserved(deployment.org.database)
    await until(lambda: nothing_is_left(tasks_before, sockets_before))


def many_faults() -> Iterator[tuple[str, str, bool]]:
    """Every fault on every surface in both forms, again and again, each time in another order."""
    chance = seeds.chance()
    combinations = list(product(sorted(set(FAULTS) - SLOW_FAULTS), PATHS, (False, True)))
    drawn: list[tuple[str, str, bool]] = []
    while len(drawn) < FAULTS_IN_A_ROW:
        drawn += chance.sample(combinations, len(combinations))
    return iter(drawn[:FAULTS_IN_A_ROW])


async def nothing_is_left(tasks: Counter[str], sockets: int) -> bool:
    """Idle connections to the upstream are let go after seconds."""
    return running_tasks() <= tasks and open_sockets() <= sockets


def running_tasks() -> Counter[str]:
    """By name; those that asyncio has numbered count as one."""
    current = asyncio.current_task()
    names = (task.get_name() for task in asyncio.all_tasks() if task is not current)
    return Counter("Task" if name.startswith("Task-") else name for name in names)


def open_sockets() -> int:
    return sum(entry.is_socket() for entry in Path("/proc/self/fd").iterdir())
