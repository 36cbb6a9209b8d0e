"""The body of a request is freed at its end, even if the cyclic collector never runs."""

import asyncio
import gc
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.support import seeds
from tests.support.deployment import MODEL, chat
from tests.support.judge import Fault
from tests.support.judged_deployment import BODIES, CHAT, RESPONSES, JudgedDeployment
from tests.upstream.scripts import Cut, UpstreamScript
from tollhouse.backends.call import UpstreamCall

pytestmark = pytest.mark.asyncio(loop_scope="module")

COUNT_TOKENS = "/v1/messages/count_tokens"
PROJECTS = "/manage/v1/organization/projects"
CANARY = "a canary in a large body "
TEXT = CANARY * 20_000
"""500 KB: parsed beside the event loop."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A request that ends with `status`."""

    status: int
    body: dict[str, Any]
    path: str = CHAT
    script: UpstreamScript = field(default_factory=UpstreamScript)
    forbidden: str | None = None
    credit: int | None = None
    is_administrators: bool = False
    fault: Fault | None = None


def saying(text: str = TEXT, **fields: object) -> dict[str, Any]:
    return chat(text, **fields)


def stream(text: str = TEXT, **fields: object) -> dict[str, Any]:
    return chat(text, stream=True, **fields)


BROKEN = UpstreamScript(status=400, body={"error": {"message": "no", "code": "bad"}})
FAILED = UpstreamScript(status=500, body={"error": {"message": "no"}})
LOST = UpstreamScript(cut=Cut(how="reset"))
CUT = UpstreamScript(cut=Cut(how="reset", after=3))
ERROR = UpstreamScript(error={"message": "no"}, error_after_events=3)
CASES = {
    "answered": Case(status=200, body=saying()),
    "streamed": Case(status=200, body=stream()),
    "answered at responses": Case(status=200, path=RESPONSES, body={"model": MODEL, "input": TEXT}),
    "not what was asked for": Case(status=400, body=saying(seed="one")),
    "fields that do not go together": Case(
        status=400, body=saying(max_tokens=1, max_completion_tokens=1)
    ),
    "not enough credit": Case(status=402, body=saying(), credit=1),
    "not enough credit for a stream": Case(status=402, body=stream(), credit=1),
    "forbidden": Case(status=403, body=saying(TEXT + "bread"), forbidden="bread"),
    "forbidden as a stream": Case(status=403, body=stream(TEXT + "bread"), forbidden="bread"),
    "an unknown model": Case(status=404, body={**saying(), "model": "none"}),
    "an unknown policy": Case(
        status=404, body=saying(policy_ids=["pol_00000000000000000000000000000000"])
    ),
    "refused by the backend": Case(status=422, body=saying(), script=BROKEN),
    "a failed backend": Case(status=502, body=saying(), script=FAILED),
    "a lost backend": Case(status=502, body=saying(), script=LOST),
    "refused before a stream began": Case(status=422, body=stream(), script=BROKEN),
    "a failed backend before a stream": Case(status=502, body=stream(), script=FAILED),
    "a stream that is cut": Case(status=200, body=stream(), script=CUT),
    "a stream that ends with an error": Case(status=200, body=stream(), script=ERROR),
    "a stream of responses that is cut": Case(
        status=200, path=RESPONSES, body={"model": MODEL, "input": TEXT, "stream": True}, script=CUT
    ),
    "a judge that fails": Case(status=503, body=saying(), forbidden="bread", fault=Fault.ERROR_500),
    "a forbidden answer": Case(
        status=403, body=saying(), forbidden="bread", script=UpstreamScript(text="some bread")
    ),
    "a forbidden stream": Case(
        status=403, body=stream(), forbidden="bread", script=UpstreamScript(text="some bread")
    ),
    "an absurd name of a project": Case(
        status=400, path=PROJECTS, body={"name": TEXT}, is_administrators=True
    ),
    "an unknown member": Case(
        status=400, path=PROJECTS, body={"name": "x", "other": [TEXT]}, is_administrators=True
    ),
    "too large": Case(status=413, body=saying(CANARY * 1_400_000)),
    "a counted prompt": Case(
        status=200,
        path=COUNT_TOKENS,
        body={"model": MODEL, "messages": [{"role": "user", "content": TEXT}]},
    ),
}


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def no_collection() -> AsyncIterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


@contextmanager
def _saving_garbage() -> Generator[None]:
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        yield
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def unreleased() -> list[str]:
    """Objects of the gateway with the body's text that only the cyclic collector would free."""
    with _saving_garbage():
        return [
            f"{type(holder).__qualname__}: {repr(holder)[:300]}"
            for holder in gc.garbage
            if _is_gateways(holder) and any(map(_has_canary, gc.get_referents(holder)))
        ]


def unended_calls() -> list[UpstreamCall]:
    """Calls to engines and judges that are still in memory."""
    return [held for held in gc.get_objects() if isinstance(held, UpstreamCall)]


def _is_gateways(holder: object) -> bool:
    """The test's own client and engines are in this process too."""
    if isinstance(holder, FrameType):
        return "/src/tollhouse/" in holder.f_code.co_filename
    module = str(type(holder).__module__)
    return module.startswith("tollhouse.") and not module.startswith("tollhouse.trial.")


def _has_canary(held: object) -> bool:
    if isinstance(held, str):
        return CANARY * 2 in held
    return isinstance(held, bytes | bytearray) and CANARY.encode() * 2 in held


async def send(judged: JudgedDeployment, case: Case) -> httpx2.Response:
    deployment = judged.deployment
    async with (
        deployment.administrator() if case.is_administrators else deployment.customer() as client
    ):
        return await client.post(case.path, json=case.body, headers={"Idempotency-Key": "once"})


@pytest.mark.parametrize("name", seeds.partly_nightly(CASES, at_landings=len(CASES) // 4))
async def test_what_has_ended_releases_its_body(judged: JudgedDeployment, name: str) -> None:
    case = CASES[name]
    if case.forbidden is not None:
        await judged.forbid(case.forbidden)
    if case.credit is not None:
        await judged.deployment.leave_credit(case.credit)
    judged.judge.fails = lambda _: case.fault
    judged.deployment.upstream.queue(case.script, times=None)

    answer = await send(judged, case)

    assert answer.status_code == case.status, answer.text
    assert unended_calls() == []
    assert unreleased() == []


@pytest.mark.parametrize("path", [*BODIES])
async def test_an_open_stream_needs_its_request_no_more(
    judged: JudgedDeployment, path: str
) -> None:
    judged.deployment.upstream.queue(UpstreamScript(cut=Cut(how="stall", after=3)))
    nth = 1 + len([*judged.deployment.upstream.seen])
    body = BODIES[path](TEXT, stream=True)

    async with (
        judged.deployment.customer() as client,
        client.stream("POST", path, json=body) as answer,
    ):
        pieces = answer.aiter_bytes()
        await anext(pieces)
        exchange = await judged.deployment.upstream.seen.arrival(nth=nth)
        await exchange.stall()
        holders = [
            holder
            for holder in gc.get_objects()
            if _is_gateways(holder) and any(map(_has_canary, gc.get_referents(holder)))
        ]
        exchange.release()

    assert holders == []


@pytest.mark.parametrize("forbidden", [None, "bread"], ids=["sent", "withheld"])
async def test_a_stream_that_its_caller_left_releases_its_answer(
    judged: JudgedDeployment, forbidden: str | None
) -> None:
    if forbidden is not None:
        await judged.forbid(forbidden)
    script = UpstreamScript(text=CANARY * 40, cut=Cut(how="stall", after=30))
    judged.deployment.upstream.queue(script)
    nth = 1 + len([*judged.deployment.upstream.seen])
    body = chat("Say it.", stream=True, max_tokens=4_000)

    async with judged.deployment.customer() as client:
        asking = asyncio.ensure_future(client.post(CHAT, json=body))
        exchange = await judged.deployment.upstream.seen.arrival(nth=nth)
        await exchange.stall()
        asking.cancel()
        await asyncio.wait([asking])
    exchange.release()
    await judged.deployment.settled(1)

    assert unreleased() == []
