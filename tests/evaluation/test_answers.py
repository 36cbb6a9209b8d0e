"""Response policies through the whole gateway: what leaves, what it costs, and when."""

import asyncio
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.support.deployment import COMPLETION_PICO_USD, PROMPT_PICO_USD
from tests.support.judge import Fault
from tests.support.judged_deployment import (
    BODIES,
    CHAT,
    RESPONSES,
    JudgedDeployment,
    OpenJudged,
    buffering,
    decisions_dropped,
    events_of,
    sending_at_once,
)
from tollhouse.base.policies import Direction, Mode
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATHS = pytest.mark.parametrize("path", [*BODIES])
STREAMS = pytest.mark.parametrize("is_stream", [False, True])


@pytest_asyncio.fixture(loop_scope="module")
async def impatient(open_judged: OpenJudged, offered: Settings) -> JudgedDeployment:
    """A gateway that sends the status line at once and may buffer little."""
    return await open_judged(buffering(sending_at_once(offered), 20_000, 160_000))


def error_of(answer: httpx2.Response) -> dict[str, Any]:
    error: dict[str, Any] = answer.json()["error"]
    assert error["type"] == "policy_error"
    return error


@PATHS
@STREAMS
async def test_an_answer_that_matches_does_not_leave_and_is_charged(
    judged: JudgedDeployment, path: str, *, is_stream: bool
) -> None:
    policy_id = await judged.forbid("bread", direction=Direction.RESPONSE)
    judged.answers("You will find bread there.")

    answer = await judged.send(path, BODIES[path]("Hi", stream=is_stream))

    assert answer.status_code == 403, answer.text
    assert error_of(answer)["code"] == "policy_violation"
    assert error_of(answer)["message"] == (
        f"The answer was withheld by policy {policy_id}. The model's work is charged. "
        "Change the request, or ask an administrator of the organization, who sees the policy's "
        "name."
    )
    assert "bread" not in answer.text
    assert "there" not in answer.text
    assert (await judged.deployment.settled(1)).settled_pico_usd > 0


@pytest.mark.guarantee("T37")
@PATHS
async def test_the_last_piece_is_judged_although_it_ends_the_answer(
    judged: JudgedDeployment, path: str
) -> None:
    """Some engines put `finish_reason` and usage on the last record that says something."""
    await judged.forbid("bread", direction=Direction.RESPONSE)
    judged.answers("You will find bread", ends_with_last_piece=True)

    answer = await judged.send(path, BODIES[path]("Hi", stream=True))

    assert answer.status_code == 403, answer.text
    assert error_of(answer)["code"] == "policy_violation"


@PATHS
@STREAMS
async def test_an_answer_that_does_not_match_leaves_whole(
    judged: JudgedDeployment, path: str, *, is_stream: bool
) -> None:
    judged.answers("You will find wine there.")
    body = BODIES[path]("Hi", stream=is_stream)
    unjudged = await judged.send(path, body)
    await judged.forbid("bread", direction=Direction.RESPONSE)
    key = await judged.deployment.org.project_key(judged.deployment.project)

    async with judged.deployment.gateway.client(key.value) as client:
        answer = await client.post(path, json=body)

    assert answer.status_code == 200
    assert _without_ids(answer, is_stream=is_stream) == _without_ids(unjudged, is_stream=is_stream)
    assert "fp_test" not in answer.text, "no policy reads a fingerprint"
    assert len(judged.judge.received) == 1


@PATHS
@STREAMS
async def test_a_judge_that_fails_lets_no_answer_through_and_nobody_pays(
    judged: JudgedDeployment, path: str, *, is_stream: bool
) -> None:
    await judged.forbid("bread", direction=Direction.RESPONSE)
    judged.answers("You will find wine there.")
    judged.judge.fails = lambda _: Fault.LOW_COVERAGE

    answer = await judged.send(path, BODIES[path]("Hi", stream=is_stream))

    assert answer.status_code == 503
    assert error_of(answer)["code"] == "policy_evaluator_unavailable"
    assert answer.headers["x-should-retry"] == "false"
    assert "wine" not in answer.text
    credit = await judged.deployment.settled(1)
    assert (credit.settled_pico_usd, credit.reserved_pico_usd) == (0, 0)


@pytest.mark.parametrize(
    "script",
    [
        {"text": "bread " * 3, "reasoning_tokens": 0},
        {"reasoning_tokens": 5},
        {"tool_calls": 2},
        {"refuses": True},
    ],
)
@STREAMS
async def test_every_channel_is_judged(
    judged: JudgedDeployment, script: dict[str, Any], *, is_stream: bool
) -> None:
    """Whatever the caller would read is in front of the judge."""
    judged.answers(**{"text": "Well.", **script})
    tool = {"type": "function", "function": {"name": "look"}}
    body = BODIES[CHAT]("Hi", stream=is_stream, tools=[tool], n=2)
    seen = await judged.send(CHAT, body)
    told = _texts(seen, is_stream=is_stream)
    await judged.forbid("no such word", direction=Direction.RESPONSE)
    key = await judged.deployment.org.project_key(judged.deployment.project)

    async with judged.deployment.gateway.client(key.value) as client:
        assert (await client.post(CHAT, json=body)).status_code == 200

    (question,) = judged.judge.received
    shown = "\n".join(question.texts)
    assert told
    assert all(text in shown for text in told)


async def test_log_probabilities_are_judged(judged: JudgedDeployment) -> None:
    await judged.forbid("bread", direction=Direction.RESPONSE)
    guesses = [{"token": "br", "logprob": -1.0}, {"token": "ead", "logprob": -1.0}]
    content = [
        {"token": word, "logprob": -0.1, "top_logprobs": [{"token": word, "logprob": -0.1}, guess]}
        for word, guess in zip(("wi", "ne"), guesses, strict=True)
    ]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "wine"},
        "logprobs": {"content": content},
        "finish_reason": "stop",
    }
    judged.answers("", body={"choices": [choice]})

    answer = await judged.send(CHAT, BODIES[CHAT]("Hi", logprobs=True, top_logprobs=2))

    assert answer.status_code == 403


@PATHS
async def test_after_the_status_line_a_match_is_an_event_and_the_wait_is_commented(
    impatient: JudgedDeployment, path: str
) -> None:
    policy_id = await impatient.forbid("bread", direction=Direction.RESPONSE)
    impatient.answers("You will find bread there.")
    impatient.judge.holds_answers = True
    received = b""

    async with (
        impatient.deployment.customer() as client,
        client.stream("POST", path, json=BODIES[path]("Hi", stream=True)) as answer,
    ):
        assert answer.status_code == 200
        async for piece in answer.aiter_bytes():
            received += piece
            if received.count(b": keep-alive") == 2:
                impatient.judge.let_all()

    text = received.decode()
    assert "bread" not in text
    assert "there" not in text
    last = events_of(text)[-1]
    error = last["response"]["error"] if path == RESPONSES else last["error"]
    assert error["type"] == "policy_error"
    assert policy_id in error["message"]
    assert "[DONE]" not in text
    assert (await impatient.deployment.settled(1)).settled_pico_usd > 0


@STREAMS
async def test_an_answer_longer_than_may_be_held_is_charged_and_does_not_leave(
    impatient: JudgedDeployment, *, is_stream: bool
) -> None:
    """All that is buffered is counted: the text and also log probabilities."""
    await impatient.forbid("bread", direction=Direction.RESPONSE)
    impatient.answers("word " * 4_000)

    answer = await impatient.send(CHAT, BODIES[CHAT]("Hi", stream=is_stream, max_tokens=4_000))

    assert "word" not in answer.text
    assert "policy_answer_too_long" in answer.text
    assert (await impatient.deployment.settled(1)).settled_pico_usd > 0


async def test_an_organization_holds_at_most_its_share_and_pays_for_the_rest(
    impatient: JudgedDeployment,
) -> None:
    """Else it could have the house pay as often as it likes."""
    await impatient.forbid("bread", direction=Direction.RESPONSE)
    impatient.answers("word " * 40)
    impatient.judge.holds_answers = True
    body = BODIES[CHAT]("Hi", stream=True)

    buffered = asyncio.ensure_future(impatient.send(CHAT, body))
    await impatient.judge.has_received(1)
    refused = await impatient.send(CHAT, body)
    impatient.judge.let_all()
    passed = await buffered

    assert "word" not in refused.text
    assert "policy_buffer_exceeded" in refused.text
    assert passed.text.count("word") == 40
    assert (await impatient.deployment.settled(2)).settled_pico_usd > 40 * COMPLETION_PICO_USD
    again = await impatient.send(CHAT, body)
    assert "[DONE]" in again.text, "the buffer was released"


async def test_who_leaves_before_the_verdict_is_judged_and_charged_all_the_same(
    impatient: JudgedDeployment,
) -> None:
    await impatient.forbid("bread", direction=Direction.RESPONSE)
    impatient.answers("You will find wine there.")
    impatient.judge.holds_answers = True
    dropped_before = decisions_dropped()

    async with (
        impatient.deployment.customer() as client,
        client.stream("POST", CHAT, json=BODIES[CHAT]("Hi", stream=True)) as answer,
    ):
        assert answer.status_code == 200
        await impatient.judge.has_received(1)
    impatient.judge.let_all()

    charged = (await impatient.deployment.settled(1)).settled_pico_usd
    assert charged == 2 * PROMPT_PICO_USD + 5 * COMPLETION_PICO_USD
    await impatient.has_recorded_or_dropped(1, dropped_before=dropped_before)


async def test_a_long_answer_is_read_by_the_judge_while_it_grows(judged: JudgedDeployment) -> None:
    """What a checkpoint finds counts for nothing: an absence would match every prefix."""
    await judged.forbid("the end", direction=Direction.RESPONSE)
    judged.answers("word " * 400 + "wine.", cut={"how": "stall", "after": 395})
    judged.judge.answers = lambda question: 0.05 if "wine" in question.content else 0.95
    body = BODIES[CHAT]("Hi", stream=True, max_tokens=1_000)

    asked = asyncio.create_task(judged.send(CHAT, body))
    exchange = await judged.deployment.upstream.seen.arrival(nth=judged.asked_of_backend + 1)
    await judged.judge.has_received(1)
    exchange.release()
    answer = await asked

    assert answer.status_code == 200
    assert "[DONE]" in answer.text
    *_, last = said = sorted((question.content for question in judged.judge.received), key=len)
    assert last.endswith("wine.")
    assert all(last.startswith(each) for each in said)
    assert len({question.delimiter for question in judged.judge.received}) == 1
    heads = {question.prompt.split('"}]}')[0][:200] for question in judged.judge.received}
    assert len(heads) == 1, "what the judge has read is how the next prompt begins"


@STREAMS
async def test_monitoring_delays_nothing_and_sees_everything(
    impatient: JudgedDeployment, *, is_stream: bool
) -> None:
    await impatient.forbid("bread", direction=Direction.RESPONSE, mode=Mode.MONITORING)
    impatient.answers("You will find bread there.")
    impatient.judge.holds_answers = True

    answer = await impatient.send(CHAT, BODIES[CHAT]("Hi", stream=is_stream))
    await impatient.judge.has_received(1)
    impatient.judge.let_all()

    assert answer.status_code == 200
    assert "bread" in answer.text
    assert impatient.judge.received[0].texts == ["You will find bread there."]


def _texts(answer: httpx2.Response, *, is_stream: bool) -> list[str]:
    """All that a caller reads of all choices, pieces put together."""
    if not is_stream:
        messages = [choice["message"] for choice in answer.json()["choices"]]
        found = [message.get(name) for message in messages for name in ("content", "reasoning")]
        found += [message.get("refusal") for message in messages]
        found += [
            call["function"]["arguments"]
            for message in messages
            for call in message.get("tool_calls") or ()
        ]
        return [text for text in found if text]
    joined: dict[tuple[int, str, int], str] = {}
    for event in events_of(answer.text):
        for choice in event["choices"] if event != "[DONE]" else ():
            delta, index = choice["delta"], choice["index"]
            for name in ("content", "reasoning", "refusal"):
                place = index, name, 0
                joined[place] = joined.get(place, "") + (delta.get(name) or "")
            for call in delta.get("tool_calls") or ():
                place = index, "call", call["index"]
                joined[place] = joined.get(place, "") + call["function"]["arguments"]
    return [text for text in joined.values() if text]


def _without_ids(answer: httpx2.Response, *, is_stream: bool) -> list[Any]:
    events = events_of(answer.text) if is_stream else [answer.json()]
    return [_anonymous(event) for event in events]


def _anonymous(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    hidden = {"id", "created", "created_at", "completed_at", "item_id", "system_fingerprint"}
    match value:
        case dict():
            return {
                name: _anonymous(member)
                for name, member in value.items()  # pyright: ignore[reportUnknownVariableType]
                if name not in hidden
            }
        case list():
            return [_anonymous(member) for member in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
