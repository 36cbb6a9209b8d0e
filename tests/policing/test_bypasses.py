"""Twelve ways in which gateways were bypassed, each with the mistake that made it possible.

Every case first shows a naive guard that is deceived, then that ours is not.
"""

import asyncio
import json
from typing import Any

import pytest

from tests.support.courthouse import BODIES, CHAT, RESPONSES, Courthouse
from tests.support.judge import Fault
from tollhouse.policies.types import Direction, Mode

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORD = "bread"
Piece = tuple[int, str]
"""The number of a choice, and what a record adds to its content."""


def whole(*contents: str, **message: object) -> dict[str, Any]:
    """An answer in one piece, with a choice for each content."""
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": content, **message},
            "finish_reason": "stop",
        }
        for index, content in enumerate(contents)
    ]
    usage = {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}
    return {"choices": choices, "usage": usage}


def streamed(pieces: list[Piece], *deltas: dict[str, Any]) -> str:
    """Records in the order in which they come."""
    records: list[dict[str, Any]] = [
        {"choices": [{"index": index, "delta": {"content": text}}]} for index, text in pieces
    ]
    records += [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    usage = {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}
    records.append({"choices": [], "usage": usage})
    framed = "".join(f"data: {json.dumps(record)}\n\n" for record in records)
    return framed + "data: [DONE]\n\n"


async def is_withheld(courthouse: Courthouse, path: str, body: dict[str, Any]) -> bool:
    answer = await courthouse.send(path, body)
    return answer.status_code == 403 and WORD not in answer.text


def streams(courthouse: Courthouse, events: str) -> None:
    courthouse.answers("", body=events, content_type="text/event-stream")


async def test_1_a_stream_is_judged_too(courthouse: Courthouse) -> None:
    def naive(body: dict[str, Any], answer: str) -> bool:
        return not body.get("stream") and WORD in answer

    await courthouse.forbid(WORD, direction=Direction.RESPONSE)
    courthouse.answers(f"Here is {WORD} .")
    body = BODIES[CHAT]("Hi", stream=True)

    assert not naive(body, WORD)
    assert await is_withheld(courthouse, CHAT, body)


async def test_2_every_operation_is_judged(courthouse: Courthouse) -> None:
    def naive(path: str, answer: str) -> bool:
        return path == CHAT and WORD in answer

    await courthouse.forbid(WORD, direction=Direction.RESPONSE)
    courthouse.answers(f"Here is {WORD} .")

    assert not naive(RESPONSES, WORD)
    for is_stream in (False, True):
        body = BODIES[RESPONSES]("Hi", stream=is_stream)
        assert await is_withheld(courthouse, RESPONSES, body)


async def test_3_every_choice_is_judged(courthouse: Courthouse) -> None:
    def naive(answer: dict[str, Any]) -> bool:
        return WORD in answer["choices"][0]["message"]["content"]

    await courthouse.forbid(WORD, direction=Direction.RESPONSE)
    answer = whole("wine", WORD)
    courthouse.answers("", body=answer)

    assert not naive(answer)
    assert await is_withheld(courthouse, CHAT, BODIES[CHAT]("Hi", n=2))


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
async def test_4_arguments_of_calls_are_judged_in_streams(
    courthouse: Courthouse, path: str
) -> None:
    def naive(events: str) -> bool:
        records = [
            json.loads(line[6:]) for line in events.split("\n\n") if line.startswith("data: {")
        ]
        deltas = [choice["delta"] for record in records for choice in record["choices"]]
        return WORD in "".join(delta.get("content") or "" for delta in deltas)

    await courthouse.forbid(WORD, direction=Direction.RESPONSE)
    call = {"index": 0, "id": "c", "function": {"name": "buy", "arguments": '{"what":"br'}}
    rest = {"index": 0, "function": {"arguments": 'ead"}'}}
    events = streamed([], {"tool_calls": [call]}, {"tool_calls": [rest]})
    streams(courthouse, events)

    assert not naive(events)
    assert await is_withheld(courthouse, path, BODIES[path]("Hi", stream=True))


async def test_5_interleaved_choices_are_told_apart(courthouse: Courthouse) -> None:
    def naive(pieces: list[Piece]) -> bool:
        return WORD in "".join(text for _, text in pieces)

    await courthouse.forbid(WORD, direction=Direction.RESPONSE)
    pieces = [(0, "br"), (1, "wi"), (0, "ead"), (1, "ne")]
    streams(courthouse, streamed(pieces))

    assert not naive(pieces)
    assert await is_withheld(courthouse, CHAT, BODIES[CHAT]("Hi", n=2, stream=True))


@pytest.mark.parametrize("place", ["first", "last"])
async def test_6_nothing_is_clipped(courthouse: Courthouse, place: str) -> None:
    padding = "some words " * 10_000
    text = f"{WORD} {padding}" if place == "first" else f"{padding} {WORD}"

    def naive(content: str) -> bool:
        return WORD in (content[-2_000:] if place == "first" else content[:2_000])

    await courthouse.forbid(WORD, direction=Direction.REQUEST)
    asked = courthouse.asked_of_backend

    assert not naive(text)
    # Longer than the model's own context too: it is refused before anybody could find out.
    answer = await courthouse.send(CHAT, BODIES[CHAT](text))
    assert answer.status_code == 403
    assert courthouse.asked_of_backend == asked


async def test_7_a_word_in_two_records_is_one_word(courthouse: Courthouse) -> None:
    def naive(pieces: list[Piece]) -> bool:
        return any(WORD in text for _, text in pieces)

    await courthouse.forbid(WORD, direction=Direction.RESPONSE)
    pieces = [(0, letter) for letter in f"Here is {WORD}."]
    streams(courthouse, streamed(pieces))

    assert not naive(pieces)
    assert await is_withheld(courthouse, CHAT, BODIES[CHAT]("Hi", stream=True))


async def test_8_who_leaves_is_judged_and_charged(courthouse: Courthouse) -> None:
    class Naive:
        """It judges when the last record is sent, which never happens."""

        judged = 0

        def send(self, *, has_reader: bool) -> None:
            if has_reader:
                self.judged += 1

    naive = Naive()
    naive.send(has_reader=False)
    await courthouse.forbid(WORD, direction=Direction.RESPONSE)
    courthouse.answers(f"Here is {WORD} .")
    courthouse.judge.holds_answers = True

    leaver = asyncio.ensure_future(courthouse.send(CHAT, BODIES[CHAT]("Hi", stream=True)))
    await courthouse.judge.has_heard(1)
    leaver.cancel()
    courthouse.judge.let_all()

    assert naive.judged == 0
    assert len(courthouse.judge.heard) == 1
    assert (await courthouse.shop.settled(1)).settled_pico_usd > 0


@pytest.mark.parametrize("is_stream", [False, True])
async def test_9_monitoring_holds_nothing_back(courthouse: Courthouse, *, is_stream: bool) -> None:
    def naive(matching: list[Mode]) -> bool:
        return bool(matching)

    await courthouse.forbid(WORD, mode=Mode.MONITORING)
    courthouse.answers(f"Here is {WORD} .")

    assert naive([Mode.MONITORING])
    answer = await courthouse.send(CHAT, BODIES[CHAT](f"Where is {WORD}?", stream=is_stream))
    assert answer.status_code == 200
    assert WORD in answer.text


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault.NO_CHOICES, {"choices": []}),
        (Fault.NO_LOGPROBS, {"choices": [{"logprobs": None}]}),
    ],
)
async def test_10_a_failure_said_with_200_is_no_pass(
    courthouse: Courthouse, fault: Fault, said: dict[str, Any]
) -> None:
    def naive(status: int, answer: dict[str, Any]) -> bool:
        found = [each["logprobs"] for each in answer["choices"] if each["logprobs"]]
        return status != 200 or any(logprobs["yes"] > 0.5 for logprobs in found)

    await courthouse.forbid(WORD, direction=Direction.REQUEST)
    courthouse.judge.fails = lambda _: fault

    assert not naive(200, said)
    answer = await courthouse.send(CHAT, BODIES[CHAT](f"Where is {WORD}?"))
    assert answer.status_code == 503


async def test_11_what_is_held_is_counted_whole(courthouse: Courthouse) -> None:
    guess = {"token": "x" * 1_000, "logprob": -1.0}
    token = {"token": "a", "logprob": -0.1, "top_logprobs": [guess] * 20}
    record = {
        "choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [token]}}]
    }
    events = f"data: {json.dumps(record)}\n\n" * 500 + "data: [DONE]\n\n"

    def naive(text: str) -> bool:
        return len(text) > 8 * 1024 * 1024

    await courthouse.forbid(WORD, direction=Direction.RESPONSE)
    streams(courthouse, events)

    assert not naive("a" * 500)
    body = BODIES[CHAT]("Hi", stream=True, logprobs=True, top_logprobs=20)
    answer = await courthouse.send(CHAT, body)
    assert answer.json()["error"]["code"] == "policy_answer_too_long"
    assert (await courthouse.shop.settled(1)).settled_pico_usd > 0


@pytest.mark.parametrize("fault", [Fault.NEITHER_SIDE, Fault.EMPTY_LOGPROBS, Fault.UNDECIDED])
async def test_12_no_default_means_pass(courthouse: Courthouse, fault: Fault) -> None:
    def naive(found: dict[str, float]) -> bool:
        yes, no = found.get("Yes", 0.0), found.get("No", 0.0)
        return (yes / (yes + no) if yes + no else 0.5) > 0.5

    await courthouse.forbid(WORD, direction=Direction.REQUEST)
    courthouse.judge.fails = lambda _: fault

    assert not naive({})
    answer = await courthouse.send(CHAT, BODIES[CHAT](f"Where is {WORD}?"))
    assert answer.status_code == 503
