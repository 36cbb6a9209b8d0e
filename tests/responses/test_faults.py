"""What a backend can do wrong, and what a caller of responses sees of it, whole and streamed."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.inference.answers import events
from tests.responses.conftest import HASTY_MODEL, RESTLESS_MODEL
from tests.support.shop import MODEL, Shop
from tollhouse.testing.exchanges import Outcome

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/responses"
BACKEND = (502, "backend_error")
BUSY = (503, "server_is_overloaded")
LATE = (504, "deadline_exceeded")
COMPLETED = "response.completed"
FAILED = "response.failed"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A script of the upstream, and how each form of the answer ends: as a failure or an event."""

    script: dict[str, Any]
    whole: tuple[int, str] | str
    streamed: tuple[int, str] | str
    model: str = MODEL


def status(code: int, refusal: tuple[int, str]) -> Fault:
    return Fault(script={"status": code}, whole=refusal, streamed=refusal)


def cut(how: str, after: int | str, *, inside: bool = False) -> dict[str, Any]:
    return {"cut": {"how": how, "after": after, "inside": inside}}


FAULTS = {
    "refuses the request": status(400, (422, "provider_validation_failed")),
    "denies us": status(401, BACKEND),
    "knows no such model": status(404, BACKEND),
    "is busy": status(429, BUSY),
    "fails": status(500, BACKEND),
    "is down": status(503, BACKEND),
    "hangs up": Fault(script=cut("close", "request"), whole=BACKEND, streamed=BACKEND),
    "resets": Fault(script=cut("reset", "request"), whole=BACKEND, streamed=BACKEND),
    "breaks off in a record": Fault(
        script=cut("close", 3, inside=True), whole=COMPLETED, streamed=FAILED
    ),
    "breaks off in its only record": Fault(
        script=cut("reset", 0, inside=True), whole=BACKEND, streamed=BACKEND
    ),
    "says nonsense": Fault(script={"body": "<html>"}, whole=BACKEND, streamed=BACKEND),
    "fails with 200": Fault(
        script={"error": {"message": "oom"}, "error_after_events": 3},
        whole=BACKEND,
        streamed=FAILED,
    ),
    "says nonsense between records": Fault(
        script={"inserted": "data: {]\n\n", "inserted_after_events": 3},
        whole=COMPLETED,
        streamed=FAILED,
    ),
    "stands still before its answer": Fault(
        script=cut("stall", "request"), whole=LATE, streamed=LATE, model=HASTY_MODEL
    ),
    "stands still after its head": Fault(
        script=cut("stall", 0), whole=LATE, streamed=LATE, model=HASTY_MODEL
    ),
    "counts nothing": Fault(script={"usage": None}, whole=COMPLETED, streamed=COMPLETED),
    "counts nonsense": Fault(
        script={"usage": {"prompt_tokens": -1}}, whole=COMPLETED, streamed=COMPLETED
    ),
    "sends too long a record": Fault(
        script={"padding_bytes": 9 * 1024 * 1024}, whole=COMPLETED, streamed=BACKEND
    ),
    "ends without an end marker": Fault(
        script={"done": False}, whole=COMPLETED, streamed=COMPLETED
    ),
}


def ending(answer: httpx2.Response, *, is_stream: bool) -> tuple[int, str] | str:
    if not answer.is_success:
        assert answer.json()["error"]["request_id"] == answer.headers["x-request-id"]
        return answer.status_code, answer.json()["error"]["code"]
    if not is_stream:
        return f"response.{answer.json()['status']}"
    told = events(answer.content)
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    return told[-1]["type"]


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("name", FAULTS)
async def test_each_fault_of_a_backend_has_its_answer_and_leaves_nothing_behind(
    shop: Shop, name: str, *, is_stream: bool
) -> None:
    fault = FAULTS[name]
    script = json.dumps({"script": fault.script})
    async with shop.customer() as client:
        body = {"model": fault.model, "input": script, "stream": is_stream}
        answer = await client.post(PATH, json=body)
        # It is served as before, which also forgives the replica.
        sound = await client.post(PATH, json=body | {"model": MODEL, "input": "Hi"})

    expected = fault.streamed if is_stream else fault.whole
    assert ending(answer, is_stream=is_stream) == expected
    assert ending(sound, is_stream=is_stream) == COMPLETED
    credit = await shop.settled(2)
    assert credit.reserved_pico_usd == 0
    assert credit.settled_pico_usd > 0


async def test_a_failure_after_the_first_byte_says_why(shop: Shop) -> None:
    script = {"script": cut("close", 3, inside=True)}
    async with shop.customer() as client:
        body = {"model": MODEL, "stream": True, "input": json.dumps(script)}
        answer = await client.post(PATH, json=body)

    last = events(answer.content)[-1]["response"]
    assert last["error"] == {"code": "server_error", "message": "The backend's answer broke off."}
    assert last["output"] == []


async def test_a_backend_that_pauses_too_long_in_its_answer_has_failed(shop: Shop) -> None:
    script = json.dumps({"script": cut("stall", 3)})
    async with shop.customer() as client:
        body = {"model": RESTLESS_MODEL, "stream": True, "input": script}
        answer = await client.post(PATH, json=body)

    last = events(answer.content)[-1]
    assert last["type"] == FAILED
    assert last["response"]["error"]["message"] == "The backend did not answer in time."


async def test_a_caller_who_leaves_is_charged_for_what_was_used(shop: Shop) -> None:
    body = {
        "model": MODEL,
        "stream": True,
        "input": json.dumps({"script": {"cut": {"how": "stall", "after": 5}}}),
    }
    async with shop.customer() as client, client.stream("POST", PATH, json=body) as answer:
        async for line in answer.aiter_lines():
            if "output_text.delta" in line:
                break
    exchange = list(shop.upstream.seen)[-1]
    async with asyncio.timeout(120):
        await exchange.stall()
        exchange.release()
        assert await exchange.end() in (Outcome.COMPLETE, Outcome.CALLER_LEFT)

    assert (await shop.settled(1)).settled_pico_usd > 0
