"""Every shape of a provider's answer, on every endpoint: the answer, the charge and the record."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import msgspec
import pytest

from tests.faults.test_upstream_faults import PATHS, ending
from tests.faults.upstream_faults import ANSWERED, BROKEN
from tests.inference.provider_shapes import ANTHROPIC, OPENAI, Shape
from tests.ledger.invariants import assert_conserved
from tests.support.deployment import MESSAGES_MODEL, Deployment, model
from tests.upstream.scripts import UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHAPES = OPENAI | {f"anthropic: {name}": shape for name, shape in ANTHROPIC.items()}
PRICES = {
    "prompt": "0.000001",
    "completion": "0.000002",
    "input_cache_read": "0.00000025",
    "input_cache_write": "0.00000125",
}
PROMPT_PICO_USD, COMPLETION_PICO_USD = 1_000_000, 2_000_000
READ_PICO_USD, WRITE_PICO_USD = 250_000, 1_250_000
STOP_REASONS = {"stop": "end_turn", "content_filter": "refusal"}


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    return msgspec.structs.replace(
        settings,
        backends={
            "openai": {"replicas": [upstream.base_url]},
            "anthropic": {"replicas": [upstream.base_url], "dialect": "anthropic"},
        },
        models={
            name: model(backend=name, pricing=PRICES, **MESSAGES_MODEL)
            for name in ("openai", "anthropic")
        },
    )


def asked(endpoint: str, *, model_id: str, is_stream: bool) -> dict[str, Any]:
    shared: dict[str, Any] = {"model": model_id, "stream": is_stream}
    turns = [{"role": "user", "content": "Say something that takes a while to say. " * 4}]
    if endpoint == "chat":
        return shared | {
            "messages": turns,
            **({"stream_options": {"include_usage": True}} if is_stream else {}),
        }
    if endpoint == "messages":
        thinking = {"type": "adaptive"}
        return shared | {"messages": turns, "max_tokens": 1_024, "thinking": thinking}
    return shared | {"input": turns[0]["content"]}


def events(answer: httpx2.Response) -> Iterator[dict[str, Any]]:
    for line in answer.text.split("\n"):
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def said(endpoint: str, answer: httpx2.Response, *, is_stream: bool) -> tuple[str, str, str]:
    """The text, the reasoning and the reason to stop."""
    if endpoint == "chat":
        return said_in_chat(answer, is_stream=is_stream)
    if endpoint == "messages":
        return said_in_messages(answer, is_stream=is_stream)
    result: dict[str, Any] = [*events(answer)][-1]["response"] if is_stream else answer.json()
    texts = {"message": "", "reasoning": ""}
    items: list[dict[str, Any]] = result["output"]
    for item in items:
        texts[item["type"]] += joined(item["content"], "text")
    return texts["message"], texts["reasoning"], result["status"]


def said_in_chat(answer: httpx2.Response, *, is_stream: bool) -> tuple[str, str, str]:
    records = [*events(answer)] if is_stream else [answer.json()]
    choices: list[dict[str, Any]] = [each for record in records for each in record["choices"]]
    pieces = [choice["delta" if is_stream else "message"] for choice in choices]
    (end,) = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
    return joined(pieces, "content"), joined(pieces, "reasoning_content"), end


def said_in_messages(answer: httpx2.Response, *, is_stream: bool) -> tuple[str, str, str]:
    whole: dict[str, Any] = {} if is_stream else answer.json()
    pieces: list[dict[str, Any]] = whole.get("content", [])
    if is_stream:
        pieces = [each.get("delta", {}) for each in events(answer)]
    (end,) = [each["stop_reason"] for each in (whole, *pieces) if "stop_reason" in each]
    return joined(pieces, "text"), joined(pieces, "thinking"), end


def joined(pieces: list[dict[str, Any]], member: str) -> str:
    return "".join(piece.get(member) or "" for piece in pieces)


async def played(
    deployment: Deployment, shape: Shape, endpoint: str, *, is_stream: bool
) -> httpx2.Response:
    body = shape.events if is_stream and shape.status == 200 else shape.whole
    kind = "text/event-stream" if is_stream and shape.status == 200 else None
    script = UpstreamScript(status=shape.status, body=body, content_type=kind)
    deployment.upstream.queue(script)
    async with deployment.customer() as client:
        return await client.post(
            PATHS[endpoint], json=asked(endpoint, model_id=shape.dialect, is_stream=is_stream)
        )


async def assert_charged(deployment: Deployment, shape: Shape, request_id: str) -> None:
    record = await deployment.record(request_id)
    rows = await deployment.org.database.fetch_all(
        "SELECT * FROM ledger_entries WHERE reservation_id = $1 ORDER BY phase", request_id
    )
    hold, end = rows
    assert 0 <= end["posted_pico"] <= hold["held_pico"]
    if shape.ending not in (ANSWERED, BROKEN):
        assert end["posted_pico"] == 0
        return
    assert record["estimated"] is (shape.usage is None)
    if shape.usage is None:
        assert end["posted_pico"] > 0
        return
    prompt, read, written, output = shape.usage
    assert (end["input_tokens"], end["cached_input_tokens"]) == (prompt - read, read)
    assert end["output_tokens"] == output
    assert end["posted_pico"] == (
        (prompt - read - written) * PROMPT_PICO_USD
        + read * READ_PICO_USD
        + written * WRITE_PICO_USD
        + output * COMPLETION_PICO_USD
    )


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("endpoint", PATHS)
async def test_each_shape_is_answered_charged_and_recorded(
    deployment: Deployment, endpoint: str, *, is_stream: bool
) -> None:
    answers = dict[str, httpx2.Response]()
    for name, shape in SHAPES.items():
        if is_stream or shape.whole is not None:
            answers[name] = await played(deployment, shape, endpoint, is_stream=is_stream)

    await deployment.settled(len(answers))
    await assert_conserved(deployment.org.database)
    for name, answer in answers.items():
        shape = SHAPES[name]
        assert ending(answer) == shape.ending, (name, answer.text)
        if shape.ending == ANSWERED:
            text, thought, finish = said(endpoint, answer, is_stream=is_stream)
            assert (text, thought) == (shape.text, shape.thought), name
            expected = {"chat": shape.finish, "messages": STOP_REASONS[shape.finish]}
            assert finish == expected.get(endpoint, finish), name
        await assert_charged(deployment, shape, answer.headers["x-request-id"])


async def test_a_messages_client_sees_signatures_and_cache_figures(deployment: Deployment) -> None:
    thinking = await played(deployment, ANTHROPIC["thinking"], "messages", is_stream=False)
    streamed = await played(deployment, ANTHROPIC["thinking"], "messages", is_stream=True)
    cached = await played(deployment, ANTHROPIC["cached input"], "messages", is_stream=False)

    assert thinking.json()["content"][0]["signature"] == "c2ln"
    deltas = [each["delta"] for each in events(streamed) if each["type"] == "content_block_delta"]
    assert {"type": "signature_delta", "signature": "c2ln"} in deltas
    assert cached.json()["usage"] == {
        "input_tokens": 16,
        "cache_creation_input_tokens": 16,
        "cache_read_input_tokens": 8,
        "output_tokens": 12,
    }
