"""One request at three doors: a naive guard with a mistake, the same guard without, the gateway."""

import asyncio
import json
from typing import Any, NamedTuple

import httpx2

from tests.support.judged_deployment import BODIES, CHAT, JudgedDeployment
from tests.support.naive_guard import Mistake, NaiveGuard, running_guard
from tests.support.reading import read_by_caller
from tests.upstream.exchanges import RecordedExchange
from tollhouse.base.policies import Direction, Mode

WORD = "bread"
"""The word that policies forbid."""
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


class Passage(NamedTuple):
    """What came of a request."""

    status: int
    has_word: bool
    has_reached_backend: bool


PASSED = Passage(200, has_word=True, has_reached_backend=True)
WITHHELD = Passage(403, has_word=False, has_reached_backend=True)
REFUSED = Passage(403, has_word=False, has_reached_backend=False)
UNDECIDED = Passage(503, has_word=False, has_reached_backend=False)


def guard_of(
    judged: JudgedDeployment,
    mistake: Mistake | None,
    direction: Direction = Direction.RESPONSE,
    mode: Mode = Mode.ENFORCING,
) -> NaiveGuard:
    """Before the gateway's backend, and with its judge."""
    return NaiveGuard(
        backend_url=f"{judged.deployment.upstream.base_url}/chat/completions",
        judge_url=f"{judged.judge.base_url}/chat/completions",
        word=WORD,
        direction=direction,
        mode=mode,
        mistake=mistake,
    )


async def passages(
    judged: JudgedDeployment,
    mistake: Mistake,
    body: dict[str, Any],
    *,
    path: str = CHAT,
    direction: Direction = Direction.RESPONSE,
    mode: Mode = Mode.ENFORCING,
) -> list[Passage]:
    """The same request through the mistaken guard, through the sound one, and the gateway."""
    await judged.forbid(WORD, direction=direction, mode=mode)
    guards = [guard_of(judged, each, direction, mode) for each in (mistake, None)]
    found: list[Passage] = []
    for door in (*map(running_guard, guards), judged.deployment.customer()):
        asked = judged.asked_of_backend
        async with door as client:
            answer = await client.post(path, json=body)
        has_asked = judged.asked_of_backend > asked
        has_word = any(WORD in text for text in (answer.text, *read_by_caller(answer.text)))
        found.append(Passage(answer.status_code, has_word, has_asked))
    return found


def streams(judged: JudgedDeployment, *choices: dict[str, Any], **script: object) -> None:
    """Let the backend say these choices, each in a record of its own."""
    records: list[dict[str, Any]] = [{"choices": [choice]} for choice in choices]
    records.append({"choices": [], "usage": USAGE})
    framed = "".join(f"data: {json.dumps(record)}\n\n" for record in records)
    judged.answers("", body=framed + "data: [DONE]\n\n", content_type="text/event-stream", **script)


def piece(text: str, choice: int = 0) -> dict[str, Any]:
    return {"index": choice, "delta": {"content": text}}


def piece_of_call(**function: str) -> dict[str, Any]:
    call = {"index": 0, "id": "c", "function": function}
    return {"index": 0, "delta": {"tool_calls": [call]}}


async def left_in_the_middle(
    judged: JudgedDeployment, client: httpx2.AsyncClient, *, reads_head: bool
) -> tuple[RecordedExchange, bytes]:
    """Hang up while the backend stalls; what it was asked, and what had come until then."""
    asked = judged.asked_of_backend
    request = client.build_request("POST", CHAT, json=BODIES[CHAT]("Hi", stream=True))
    fields = (b"%b: %b\r\n" % field for field in request.headers.raw)
    reader, writer = await asyncio.open_connection(request.url.host, request.url.port)
    writer.write(b"POST %b HTTP/1.1\r\n" % request.url.raw_path + b"".join(fields) + b"\r\n")
    writer.write(request.content)
    exchange = await judged.deployment.upstream.seen.arrival(nth=asked + 1)
    await exchange.stall()
    head = await reader.readuntil(b"\r\n\r\n") if reads_head else b""
    writer.transport.abort()
    return exchange, head + await reader.read()
