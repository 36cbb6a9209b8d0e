"""Each deadline of a call over HTTP, on both surfaces and in both forms: told, and settled once."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import msgspec
import pytest
import pytest_asyncio

from tests.identity.waiting import until
from tests.ledger.invariants import assert_conserved
from tests.support.deployment import Deployment, customer_of, model, offering, open_deployment
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tests.upstream.exchanges import ExchangeOutcome
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.observability import registry
from tollhouse.settings import InferenceSettings, Settings
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHORT_SECONDS = 0.3
HEAD_WAIT_SECONDS = 2.0
"""So much longer that a machine that stands still for a moment changes no status."""
LATE = (504, "deadline_exceeded")
UNREACHABLE = (502, "backend_error")
DEADLINES = {
    "connect": "connect_seconds",
    "first": "first_event_seconds",
    "idle": "idle_seconds",
    "total": "total_seconds",
}
SURFACES = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
EACH_SURFACE = pytest.mark.parametrize("endpoint", SURFACES)


@dataclass(frozen=True, kw_only=True)
class Late:
    """Which deadline of a backend passes, and how: before the first byte, or after it."""

    deadline: str
    is_stream: bool
    script: dict[str, Any]
    told: tuple[int, str] = LATE
    has_begun: bool = False


def stall(after: int | str, *, inside: bool = False) -> dict[str, Any]:
    return {"cut": {"how": "stall", "after": after, "inside": inside}}


CASES = {
    "connect, whole": Late(deadline="connect", is_stream=False, script={}, told=UNREACHABLE),
    "connect, streamed": Late(deadline="connect", is_stream=True, script={}, told=UNREACHABLE),
    "no head, whole": Late(deadline="total", is_stream=False, script=stall("request")),
    "no head, streamed": Late(deadline="first", is_stream=True, script=stall("request")),
    "a head and no event": Late(deadline="first", is_stream=True, script=stall(0)),
    "half an event": Late(deadline="first", is_stream=True, script=stall(0, inside=True)),
    "half a body": Late(deadline="total", is_stream=False, script=stall(0, inside=True)),
    "a pause between events": Late(
        deadline="idle", is_stream=True, script=stall(3), has_begun=True
    ),
    "a pause inside an event": Late(
        deadline="idle", is_stream=True, script=stall(3, inside=True), has_begun=True
    ),
    "a stream without end": Late(
        deadline="total",
        is_stream=True,
        script={"tokens": 4_000, "between_events_ms": 5},
        has_begun=True,
    ),
}


@pytest.fixture
def deaf_replica() -> Iterator[str]:
    """Its queue of connections is full, so that the next one is not even refused."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for waiting in (first, second):
            waiting.settimeout(0)
            waiting.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


@pytest_asyncio.fixture(loop_scope="module")
async def deployment(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture, deaf_replica: str
) -> AsyncIterator[Deployment]:
    """A model for each deadline, whose backend has no other that could pass."""
    offered = offering(
        settings,
        upstream.base_url,
        models={f"example/{name}": model(backend=name, features=[]) for name in DEADLINES},
    )
    patient = dict.fromkeys(DEADLINES.values(), 600.0)
    backends = {
        name: {"replicas": [upstream.base_url], **patient, field: SHORT_SECONDS}
        for name, field in DEADLINES.items()
    }
    backends["connect"]["replicas"] = [deaf_replica]
    inference = InferenceSettings(head_wait_seconds=HEAD_WAIT_SECONDS, keep_alive_seconds=0.1)
    offered = msgspec.structs.replace(
        offered, backends=offered.backends | backends, inference=inference
    )
    upstream.seen.clear()
    async with open_deployment(offered, upstream, org) as opened:
        yield opened


def asked(
    endpoint: str, model_id: str, script: dict[str, Any], *, is_stream: bool
) -> dict[str, Any]:
    text = json.dumps({"script": script})
    content = {"messages": [{"role": "user", "content": text}]}
    said: dict[str, Any] = content if endpoint == "chat" else {"input": text}
    return {"model": model_id, "max_tokens": 4_000, "stream": is_stream, **said}


def error_of(answer: httpx2.Response) -> dict[str, Any]:
    """Of a refusal, or of the last event of a stream; a response tells less of it."""
    if not answer.is_success:
        return answer.json()["error"]
    last = answer.text.strip().rpartition("data: ")[2]
    told = json.loads(last)
    return told["response"]["error"] if "response" in told else told["error"]


@EACH_SURFACE
@pytest.mark.clock
async def test_a_deadline_that_passes_is_told_and_settled_once(
    deployment: Deployment, database: Database, endpoint: str
) -> None:
    """Each by a customer of its own and none after the other, so that they take as long as one."""
    async with asyncio.TaskGroup() as group:
        for late in CASES.values():
            org = await new_organization_fixture(database)
            customer = await customer_of(deployment.gateway, deployment.upstream, org)
            group.create_task(pass_by(customer, endpoint, late))

    await assert_conserved(database)


async def pass_by(deployment: Deployment, endpoint: str, late: Late) -> None:
    body = asked(endpoint, f"example/{late.deadline}", late.script, is_stream=late.is_stream)
    begun_seconds = time.monotonic()
    async with deployment.customer() as client:
        answer = await client.post(SURFACES[endpoint], json=body)

    assert time.monotonic() - begun_seconds >= SHORT_SECONDS, late
    error = error_of(answer)
    if late.has_begun:
        assert answer.status_code == httpx2.codes.OK, late
        assert error["message"].startswith("The backend did not answer in time.")
    else:
        assert (answer.status_code, error["code"]) == late.told, late
    credit = await deployment.settled(1)
    assert (credit.settled_pico_usd > 0) == late.has_begun, late
    record = await deployment.record(answer.headers["x-request-id"])
    assert record["failed_by"] == "backend", late


async def test_the_head_waits_for_the_first_event_ten_seconds_by_default() -> None:
    assert InferenceSettings().head_wait_seconds == 10.0


@EACH_SURFACE
async def test_the_head_leaves_before_a_first_event_that_takes_longer(
    deployment: Deployment, endpoint: str
) -> None:
    """And nothing but comments after it, until the event comes."""
    body = asked(endpoint, "example/idle", stall(0), is_stream=True)
    async with (
        deployment.customer() as client,
        client.stream("POST", SURFACES[endpoint], json=body) as answer,
    ):
        exchange = await deployment.upstream.seen.arrival()
        await exchange.stall()
        lines = answer.aiter_lines()
        read: list[str] = []
        async for line in lines:
            read.append(line)
            if line.startswith(":"):
                break
        exchange.release()
        read += [line async for line in lines]

    assert answer.status_code == httpx2.codes.OK
    assert ": keep-alive" in read
    assert "[DONE]" in read[-2] or "response.completed" in read[-2]
    assert (await deployment.settled(1)).settled_pico_usd > 0


def bodies_held_bytes() -> float:
    """The memory of request bodies, as the gauge shows it."""
    page = registry.exposition(None).decode()
    return float(page.partition("\ntollhouse_bodies_held_bytes ")[2].partition("\n")[0])


@pytest.mark.nightly
@pytest.mark.clock
async def test_a_body_is_released_when_a_late_first_event_arrives(deployment: Deployment) -> None:
    script = stall(0) | {"tokens": 150, "between_events_ms": 100}
    body = asked("chat", "example/idle", script, is_stream=True)
    body["messages"].insert(0, {"role": "user", "content": "word " * 400})

    async def is_held() -> bool:
        return bodies_held_bytes() > 0

    async def is_released() -> bool:
        return bodies_held_bytes() == 0

    async with (
        deployment.customer() as client,
        client.stream("POST", SURFACES["chat"], json=body) as answer,
    ):
        assert answer.status_code == httpx2.codes.OK
        exchange = await deployment.upstream.seen.arrival()
        await exchange.stall()
        await until(is_held)
        exchange.release()
        await until(is_released)
        assert exchange.outcome is ExchangeOutcome.UNDER_WAY


@EACH_SURFACE
@pytest.mark.parametrize("is_late", [False, True])
async def test_a_failure_keeps_its_status_only_until_the_head_has_left(
    deployment: Deployment, endpoint: str, *, is_late: bool
) -> None:
    waiting = {"before_head_ms": int(2_000 * HEAD_WAIT_SECONDS)} if is_late else {}
    body = asked(endpoint, "example/idle", {"status": 500} | waiting, is_stream=True)
    async with deployment.customer() as client:
        answer = await client.post(SURFACES[endpoint], json=body)

    expected = httpx2.codes.OK if is_late else httpx2.codes.BAD_GATEWAY
    assert answer.status_code == expected
    assert error_of(answer)["message"].startswith("The backend failed to answer.")
    assert (await deployment.settled(1)).settled_pico_usd == 0
