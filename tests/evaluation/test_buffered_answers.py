"""Buffered answers that fail or are cut: the caller receives nothing, and the charge is right."""

import asyncio
import json
from typing import Any

import pytest

from tests.support.deployment import COMPLETION_PICO_USD, chat, offering
from tests.support.gateway import Gateway
from tests.support.judge import Fault
from tests.support.judged_deployment import (
    BODIES,
    CHAT,
    RESPONSES,
    JudgedDeployment,
    OpenJudged,
    buffering,
    decisions_dropped,
    sending_at_once,
)
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.policies import Direction, Mode
from tollhouse.observability import registry
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = "word " * 2_000 + "end"


@pytest.mark.parametrize("is_guarded", [False, True])
@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("path", [*BODIES])
async def test_words_of_a_backend_that_refuses_are_withheld(
    judged: JudgedDeployment, path: str, *, is_stream: bool, is_guarded: bool
) -> None:
    if is_guarded:
        await judged.forbid("forbidden", direction=Direction.RESPONSE)
    judged.answers("", status=400, body={"error": {"message": "the forbidden thing"}})

    answer = await judged.send(path, BODIES[path]("Hi", stream=is_stream))

    assert "provider_validation_failed" in answer.text
    assert ("the forbidden thing" in answer.text) is not is_guarded


async def test_a_name_in_pieces_that_repeat_is_judged_as_it_is_put_together(
    judged: JudgedDeployment,
) -> None:
    await judged.forbid("kill_kin", direction=Direction.RESPONSE)
    records: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"function_call": {"name": name}}}]}
        for name in ("ki", "ll_", "ki", "n")
    ]
    events = "".join(f"data: {json.dumps(record)}\n\n" for record in records)
    judged.answers("", body=f"{events}data: [DONE]\n\n", content_type="text/event-stream")

    answer = await judged.send(CHAT, chat("Hi", stream=True))

    assert "policy_violation" in answer.text


@pytest.mark.parametrize(
    "backend", [{}, {"bills_without_answer": True}, {"stops_when_cancelled": False}]
)
async def test_an_answer_too_long_to_hold_is_charged_at_what_is_known(
    open_judged: OpenJudged, settings: Settings, upstream: ScriptedUpstream, backend: dict[str, Any]
) -> None:
    """Read to its end if the backend bills to the end; nothing stays buffered."""
    offered = offering(settings, upstream.base_url, **backend)
    judged = await open_judged(buffering(offered, 4_000))
    await judged.forbid("forbidden", direction=Direction.RESPONSE)
    settled: list[int] = []
    for requests, is_stream in enumerate((False, True), start=1):
        judged.answers(LONG)
        body = chat("Hi", stream=is_stream, max_tokens=4_000)
        assert "policy_answer_too_long" in (await judged.send(CHAT, body)).text
        settled.append((await judged.deployment.settled(requests)).settled_pico_usd)
    whole, streamed = settled[0], settled[1] - settled[0]
    assert 0 < streamed <= whole
    assert (streamed == whole) is ("stops_when_cancelled" in backend)


async def test_a_judge_that_fails_after_the_caller_left_costs_nothing(
    impatient: JudgedDeployment,
) -> None:
    await impatient.forbid("forbidden", direction=Direction.RESPONSE)
    impatient.answers("some words that are said here")
    impatient.judge.holds_answers = True
    impatient.judge.fails = lambda _: Fault.ERROR_500

    async with (
        impatient.deployment.customer() as client,
        client.stream("POST", CHAT, json=chat("Hi", stream=True)) as answer,
    ):
        assert answer.status_code == 200
        await impatient.judge.has_received(1)
    impatient.judge.let_all()

    assert (await impatient.deployment.settled(1)).settled_pico_usd == 0


async def test_a_stop_during_the_verdict_costs_nothing_and_is_counted(
    impatient: JudgedDeployment,
) -> None:
    await impatient.forbid("forbidden", direction=Direction.RESPONSE)
    impatient.answers("some words that are said here")
    impatient.judge.holds_answers = True
    before = dropped("stopped")

    asked = asyncio.create_task(impatient.send(CHAT, chat("Hi", stream=True)))
    await impatient.judge.has_received(1)
    gateway = impatient.deployment.gateway
    assert isinstance(gateway, Gateway)
    gateway.application.end_streams()
    answer = await asked

    assert "words" not in answer.text
    assert (await impatient.deployment.settled(1)).settled_pico_usd == 0
    assert dropped("stopped") == before + 1
    impatient.judge.let_all()


def dropped(reason: str) -> float:
    name = f'tollhouse_policy_decisions_dropped_total{{reason="{reason}"}}'
    lines = registry.exposition(None).decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


async def test_of_a_watched_answer_no_more_is_kept_than_of_a_held_one(
    open_judged: OpenJudged, offered: Settings
) -> None:
    """It passes as it would unwatched, and what is not decided about it is counted."""
    judged = await open_judged(buffering(offered, 4_000))
    await judged.forbid("word", direction=Direction.RESPONSE, mode=Mode.MONITORING)
    judged.answers(LONG)
    before = dropped("no_room")

    answer = await judged.send(CHAT, chat("Hi", stream=True, max_tokens=4_000))

    assert answer.status_code == 200
    assert "end" in answer.text
    assert dropped("no_room") == before + 1
    assert judged.judge.received == []


@pytest.mark.parametrize("depth", [205, 5_000])
async def test_what_is_nested_too_deep_to_be_drawn_is_judged_without_its_escapes(
    judged: JudgedDeployment, depth: int
) -> None:
    """A model can be asked to say it: to give it away uncharged would be an invitation."""
    await judged.forbid("forbidden", direction=Direction.RESPONSE)
    deep = "[" * depth + '"\\u0066orbidden"' + "]" * depth
    judged.answers("", body={"choices": [{"index": 0, "message": {"content": deep}}]})

    answer = await judged.send(CHAT, chat("Hi"))

    assert answer.status_code == 403
    assert (await judged.deployment.settled(1)).settled_pico_usd > 0


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("path", [*BODIES])
async def test_an_answer_too_long_to_be_judged_is_charged(
    open_judged: OpenJudged,
    offered: Settings,
    path: str,
    *,
    is_stream: bool,
) -> None:
    judged = await open_judged(
        offered, context_length=3_000, question_tokens_max=500, request_tokens_max=3_000
    )
    await judged.forbid("forbidden", direction=Direction.RESPONSE)
    judged.answers(LONG)
    length = {"max_output_tokens" if path == RESPONSES else "max_tokens": 4_000}

    answer = await judged.send(path, BODIES[path]("Hi", stream=is_stream, **length))

    assert answer.status_code == 503
    error = answer.json()["error"]
    assert error["code"] == "policy_answer_too_long"
    assert "too long to be judged" in error["message"]
    assert "word" not in answer.text
    assert (await judged.deployment.settled(1)).settled_pico_usd > 0


@pytest.mark.parametrize(
    ("backend", "undecided", "is_cut"),
    [
        ({"stops_when_cancelled": False}, 0, False),
        ({"bills_without_answer": True, "takes": ["cache_salt"]}, 2, False),
        ({}, 2, True),
    ],
    ids=["bills to the end", "tells usage at the end", "stops"],
)
async def test_who_leaves_a_held_stream_pays_until_the_backend_stops(
    open_judged: OpenJudged,
    settings: Settings,
    upstream: ScriptedUpstream,
    backend: dict[str, Any],
    undecided: int,
    *,
    is_cut: bool,
) -> None:
    """What is not judged because it was cut short is counted; what came whole is judged."""
    offered = offering(settings, upstream.base_url, **backend)
    judged = await open_judged(sending_at_once(offered))
    deployment = judged.deployment
    await judged.forbid("forbidden", direction=Direction.RESPONSE)
    await judged.forbid("watched", direction=Direction.RESPONSE, mode=Mode.MONITORING)
    judged.answers("word " * 1_000, cut={"how": "stall", "after": 10})
    before = decisions_dropped()
    body = chat("Hi", stream=True, max_tokens=1_000)

    async with (
        deployment.customer() as client,
        client.stream("POST", CHAT, json=body) as answer,
    ):
        assert answer.status_code == 200
        exchange = await upstream.seen.arrival(nth=judged.asked_of_backend)
        await exchange.stall()
    exchange.release()

    await judged.has_recorded_or_dropped(2, dropped_before=before)
    record = await deployment.record(answer.headers["x-request-id"])
    assert not record["estimated"], "the backend has told its usage"
    assert decisions_dropped() - before == undecided
    charged = (await deployment.settled(1)).settled_pico_usd
    assert charged > 0
    assert (charged > 1_000 * COMPLETION_PICO_USD) is not is_cut
