"""Every operation that generates against every guard: a new one needs its row before it passes."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from tests.hostile.test_stalled_readers import JUDGED_STREAMS, STREAMS
from tests.ledger.invariants import assert_conserved
from tests.support.deployment import MODEL
from tests.support.judged_deployment import BODIES, MESSAGES, JudgedDeployment
from tests.support.limits import set_limit
from tests.support.routes import table
from tollhouse.api import routes as given
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.router import Route
from tollhouse.base.traffic import TrafficLimits
from tollhouse.contract.operation import Guard, MisdeclaredOperation

PATHS = list(BODIES)
GENERATING = [
    route
    for route in table(given.routes, messages_under_v1=True)
    if route.operation.guards == frozenset(Guard)
]
FORBIDDEN = "secret"


def test_the_rows_are_the_operations_with_all_guards() -> None:
    paths = {route.operation.path for route in GENERATING}

    assert paths == {*PATHS, MESSAGES.removeprefix("/compat/anthropic")}


@pytest.mark.parametrize("route", GENERATING, ids=lambda route: route.operation.path)
def test_none_can_be_made_without_the_pipeline(route: Route) -> None:
    async def past_the_pipeline(call: OperationCall[Any, Any, Any]) -> OperationAnswer:
        raise AssertionError(call)

    assert route.endpoint is not None
    with pytest.raises(MisdeclaredOperation):
        Route(operation=route.operation, handler=past_the_pipeline)


def test_readers_that_stall_are_tested_at_each() -> None:
    for stalls in (STREAMS, JUDGED_STREAMS):
        assert {stall.path for stall in stalls} == set(PATHS)


async def authentication(judged: JudgedDeployment, path: str) -> None:
    reader = await judged.deployment.org.project_key(judged.deployment.project, ("models:read",))
    gateway = judged.deployment.gateway
    for key, status in ((None, 401), ("thp_unknown", 401), (reader.value, 403)):
        async with gateway.client(key) as client:
            answer = await client.post(path, json=BODIES[path]())
        assert answer.status_code == status, answer.text
    async with judged.deployment.administrator() as client:
        assert (await client.post(path, json=BODIES[path]())).status_code == 403


async def limits(judged: JudgedDeployment, path: str) -> None:
    before = judged.asked_of_backend
    await set_limit(judged.deployment.org, TrafficLimits(requests_per_minute=1))
    key = await judged.deployment.org.project_key(judged.deployment.project)
    async with judged.deployment.gateway.client(key.value) as client:
        assert (await client.post(path, json=BODIES[path]())).is_success
        refused = await client.post(path, json=BODIES[path]())
    assert refused.status_code == httpx2.codes.TOO_MANY_REQUESTS.value
    assert "retry-after" in refused.headers
    assert judged.asked_of_backend == before + 1


async def admission(judged: JudgedDeployment, path: str) -> None:
    before = judged.asked_of_backend
    await judged.deployment.leave_credit(1)
    refused = await judged.send(path, BODIES[path]())
    assert refused.status_code == httpx2.codes.PAYMENT_REQUIRED.value
    assert judged.asked_of_backend == before
    assert await judged.deployment.admitted() == 0


async def policies(judged: JudgedDeployment, path: str) -> None:
    before = judged.asked_of_backend
    await judged.forbid(FORBIDDEN)
    refused = await judged.send(path, BODIES[path](f"A {FORBIDDEN}."))
    assert refused.status_code == httpx2.codes.FORBIDDEN.value, refused.text
    assert judged.asked_of_backend == before
    judged.answers(f"The {FORBIDDEN}.")
    for stream in (False, True):
        kept = await judged.send(path, BODIES[path](stream=stream))
        assert FORBIDDEN not in kept.text


async def settlement(judged: JudgedDeployment, path: str) -> None:
    for stream in (False, True):
        assert (await judged.send(path, BODIES[path](stream=stream))).is_success
    credit = await judged.deployment.settled(2)
    assert credit.settled_pico_usd > 0
    await assert_conserved(judged.deployment.org.database)


async def activity(judged: JudgedDeployment, path: str) -> None:
    answer = await judged.send(path, BODIES[path]())
    record = await judged.deployment.record(answer.headers["x-request-id"])
    (route,) = [each for each in GENERATING if each.operation.path == path]
    assert record["operation"] == route.operation.id
    assert record["model"] == MODEL
    assert record["status"] == 200


COLUMNS: list[Callable[[JudgedDeployment, str], Awaitable[None]]] = [
    authentication,
    limits,
    admission,
    policies,
    settlement,
    activity,
]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.__name__)
@pytest.mark.parametrize("path", PATHS)
async def test_each_passes_each_guard(
    judged: JudgedDeployment, path: str, column: Callable[[JudgedDeployment, str], Awaitable[None]]
) -> None:
    await column(judged, path)
