"""Faults of a backend, on every surface, whole and streamed; and that many leave nothing behind."""

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from tests.faults.upstream_faults import (
    ANSWERED,
    BROKEN,
    FAULTS,
    HASTY_MODEL,
    Fault,
    Refusal,
)
from tests.identity.waiting import until
from tests.support.shop import MODEL, Shop, model, offering, open_shop
from tests.support.world import World
from tollhouse.settings import Settings
from tollhouse.testing.upstream import ScriptedUpstream

FAULTS_IN_A_ROW = int(os.environ.get("TOLLHOUSE_FAULTS", "120"))
"""The full run has ten thousand."""
SEED = int(os.environ.get("TOLLHOUSE_SEED", "3"))
AT_ONCE = 6
SLOW_FAULTS = {"sends too long a record"}
"""Which say nothing new when they are repeated, and take seconds."""
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}


@pytest.fixture
async def shop(settings: Settings, upstream: ScriptedUpstream, world: World) -> AsyncIterator[Shop]:
    offered = offering(
        settings,
        upstream.base_url,
        models={MODEL: model(), HASTY_MODEL: model(backend="hasty", features=[])},
    )
    hasty = {"replicas": [upstream.base_url], "first_event_seconds": 0.2, "total_seconds": 0.5}
    offered = msgspec.structs.replace(offered, backends=offered.backends | {"hasty": hasty})
    async with open_shop(offered, upstream, world) as opened:
        yield opened


def body(surface: str, content: str, *, model_id: str, is_stream: bool) -> dict[str, Any]:
    shared = {"model": model_id, "stream": is_stream}
    if surface == "chat":
        return shared | {"messages": [{"role": "user", "content": content}]}
    return shared | {"input": content}


def ending(answer: httpx2.Response) -> Refusal | str:
    if not answer.is_success:
        error = answer.json()["error"]
        assert error["request_id"] == answer.headers["x-request-id"]
        return answer.status_code, error["code"]
    is_broken = '"error":{' in answer.text or "response.failed" in answer.text
    return BROKEN if is_broken else ANSWERED


async def suffer(
    client: httpx2.AsyncClient, fault: Fault, surface: str, *, is_stream: bool
) -> httpx2.Response:
    script = json.dumps({"script": fault.script})
    asked = body(surface, script, model_id=fault.model, is_stream=is_stream)
    return await client.post(PATHS[surface], json=asked)


@pytest.mark.parametrize("surface", PATHS)
async def test_each_fault_ends_as_it_should_and_blames_whom_it_should(
    shop: Shop, surface: str
) -> None:
    requests = 0
    async with shop.customer() as client:
        for name, fault in FAULTS.items():
            for is_stream in (False, True):
                answer = await suffer(client, fault, surface, is_stream=is_stream)

                assert ending(answer) == fault.ending(is_stream=is_stream), (name, is_stream)
                # A sound one forgives the replica.
                sound = body(surface, "Hi", model_id=MODEL, is_stream=is_stream)
                assert ending(await client.post(PATHS[surface], json=sound)) == ANSWERED
                requests += 2
                if ending(answer) != ANSWERED:
                    record = await shop.record(answer.headers["x-request-id"])
                    expected = "caller" if name == "refuses the request" else "backend"
                    assert record["failed_by"] == expected, name

    await shop.settled(requests)


async def test_many_faults_leave_no_task_socket_or_hold_behind(shop: Shop) -> None:
    chance = random.Random(SEED)  # noqa: S311 - a seed that can be repeated
    names = sorted(set(FAULTS) - SLOW_FAULTS)
    room = asyncio.Semaphore(AT_ONCE)
    tasks_before, sockets_before = running_tasks(), open_sockets()

    async def one(client: httpx2.AsyncClient, name: str, surface: str, *, is_stream: bool) -> None:
        async with room:
            await suffer(client, FAULTS[name], surface, is_stream=is_stream)

    async with shop.customer() as client:
        await asyncio.gather(
            *(
                one(
                    client,
                    chance.choice(names),
                    chance.choice(sorted(PATHS)),
                    is_stream=chance.random() < 0.5,
                )
                for _ in range(FAULTS_IN_A_ROW)
            )
        )

    await until(lambda: nothing_is_left(shop, tasks_before, sockets_before))


async def nothing_is_left(shop: Shop, tasks: Counter[str], sockets: int) -> bool:
    """Idle connections to the upstream are let go after seconds."""
    credit = await shop.credit()
    return credit.reserved_pico_usd == 0 and running_tasks() <= tasks and open_sockets() <= sockets


def running_tasks() -> Counter[str]:
    """By name, without the number that asyncio gives to those without one."""
    current = asyncio.current_task()
    names = (task.get_name() for task in asyncio.all_tasks() if task is not current)
    return Counter(name for name in names if not name.startswith("Task-"))


def open_sockets() -> int:
    return sum(entry.is_socket() for entry in Path("/proc/self/fd").iterdir())
