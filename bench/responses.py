"""`python -m bench.responses [--json]`: what a streamed event costs in chat, responses, messages.

The same records of a backend are rendered in the form of each operation, in turns, one record at a
time as they come from a fast engine. The cost is that of the whole stream, with its beginning and
its end, for each event that the caller reads, and for each record of the backend. CPU of one core
in microseconds, medians.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from statistics import median
from typing import Any
from uuid import UUID

import msgspec

from tollhouse.backends.types import UpstreamChunk
from tollhouse.base.ids import RequestId
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.message_request import MessageRequest
from tollhouse.contract.responses import ResponseRequest
from tollhouse.inference.chat import ChatEncoder
from tollhouse.inference.endpoint import AnswerEncoder, Finish
from tollhouse.inference.messages.endpoint import MessagesEncoder
from tollhouse.inference.responses.endpoint import ResponsesEncoder
from tollhouse.ledger.pricing import Usage

REQUEST_ID = RequestId(UUID("018f0000-0000-7000-8000-000000000001"))
NOW = datetime(2024, 1, 1, tzinfo=UTC)
FINISH = Finish(usage=Usage(prompt_tokens=100, completion_tokens=200), at=NOW)
TOKEN: dict[str, Any] = {
    "token": " toll",
    "logprob": -0.25,
    "bytes": [32, 116, 111, 108, 108],
    "top_logprobs": [{"token": " toll", "logprob": -0.25, "bytes": [32, 116, 111, 108, 108]}],
}


def chunks(count: int, **choice: object) -> list[UpstreamChunk]:
    """The same piece many times, and a reason to stop."""
    pieces = [{"choices": [choice]}] * count
    end: dict[str, Any] = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    return msgspec.convert([*pieces, end], list[UpstreamChunk])


def streams(count: int) -> dict[str, tuple[dict[str, Any], list[UpstreamChunk]]]:
    """What is asked for in each stream, and what the backend says."""
    piece = {"index": 0, "id": "call_1", "function": {"name": "f", "arguments": '{"a"'}}
    logprobs = {"content": [TOKEN]}
    return {
        "text": ({}, chunks(count, delta={"content": " toll"})),
        "reasoning": ({}, chunks(count, delta={"reasoning": " toll"})),
        "a call": ({}, chunks(count, delta={"tool_calls": [piece]})),
        "log-probabilities": (
            {"top_logprobs": 1},
            chunks(count, delta={"content": " toll"}, logprobs=logprobs),
        ),
    }


def chat(asked: dict[str, Any]) -> AnswerEncoder:
    """A chat that streams its usage, as a response always does."""
    body: dict[str, Any] = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        **({"logprobs": True} if asked else {}),
        **asked,
    }
    return ChatEncoder(msgspec.convert(body, ChatRequest), REQUEST_ID, NOW)


def response(asked: dict[str, Any]) -> AnswerEncoder:
    """The same as a response."""
    body = {"model": "m", "input": "Hi", "stream": True, **asked}
    return ResponsesEncoder(msgspec.convert(body, ResponseRequest), REQUEST_ID, NOW)


def message(asked: dict[str, Any]) -> AnswerEncoder:
    """The same as a message, which has no log probabilities."""
    del asked
    said = [{"role": "user", "content": "Hi"}]
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": said,
        "stream": True,
        "thinking": {"type": "adaptive"},
    }
    return MessagesEncoder(msgspec.convert(body, MessageRequest), REQUEST_ID)


SURFACES: dict[str, Callable[[dict[str, Any]], AnswerEncoder]] = {
    "chat": chat,
    "response": response,
    "message": message,
}


def rendered(rendering: AnswerEncoder, said: list[UpstreamChunk]) -> int:
    """Render a stream; how many events it has."""
    count = rendering.opening(()).count(b"\n\n")
    for chunk in said:
        count += rendering.records([chunk]).count(b"\n\n")
    return count + b"".join(rendering.closing(FINISH)).count(b"\n\n")


def measured(
    make: Callable[[dict[str, Any]], AnswerEncoder],
    asked: dict[str, Any],
    said: list[UpstreamChunk],
) -> tuple[float, int]:
    """Microseconds of CPU for one stream, and its events."""
    begun = time.process_time_ns()
    events = rendered(make(asked), said)
    return (time.process_time_ns() - begun) / 1_000, events


def compared(asked: dict[str, Any], said: list[UpstreamChunk], *, rounds: int) -> dict[str, float]:
    """All in turns."""
    costs: dict[str, list[float]] = {name: [] for name in SURFACES}
    events = dict.fromkeys(SURFACES, 1)
    for _ in range(rounds):
        for name, make in SURFACES.items():
            cost_us, events[name] = measured(make, asked, said)
            costs[name].append(cost_us)
    per_event = {name: median(costs[name]) / events[name] for name in costs}
    per_record = {name: median(costs[name]) / len(said) for name in costs}
    return {
        "chat_event_us": per_event["chat"],
        "response_event_us": per_event["response"],
        "event_ratio": per_event["response"] / per_event["chat"],
        "record_ratio": per_record["response"] / per_record["chat"],
        "message_event_us": per_event["message"],
        "message_event_ratio": per_event["message"] / per_event["chat"],
    }


def main() -> int:
    """Print a line for each stream; with `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.responses")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--records", type=int, default=200)
    options = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    sys.stdout.write(
        f"{'stream':20} {'chat':>8} {'response':>9} {'events':>8} {'records':>8}"
        f" {'message':>8} {'events':>8}\n"
    )
    for name, (asked, said) in streams(options.records).items():
        figures[name] = found = compared(asked, said, rounds=options.rounds)
        sys.stdout.write(
            f"{name:20} {found['chat_event_us']:8.2f} {found['response_event_us']:9.2f}"
            f" {found['event_ratio']:7.2f}x {found['record_ratio']:7.2f}x"
            f" {found['message_event_us']:8.2f} {found['message_event_ratio']:7.2f}x\n"
        )
    if options.json:
        sys.stdout.write(json.dumps(figures) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
