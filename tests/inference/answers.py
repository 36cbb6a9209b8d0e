"""A backend's words, and what a caller of responses reads of them."""

import json
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

import msgspec
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tollhouse.backends.types import UpstreamChunk
from tollhouse.base.ids import RequestId
from tollhouse.contract.responses import ResponseRequest
from tollhouse.inference.endpoint import Finish
from tollhouse.inference.responses.endpoint import ResponsesEncoder
from tollhouse.ledger.pricing import Usage

REQUEST_ID = RequestId(UUID("018f0000-0000-7000-8000-000000000001"))
NOW = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
FINISH = Finish(
    usage=Usage(prompt_tokens=12, completion_tokens=5, cached_tokens=3, reasoning_tokens=2),
    at=NOW + timedelta(seconds=1),
)


def rendering(**fields: object) -> ResponsesEncoder:
    body = {"model": "example/model-a", "input": "Hi", **fields}
    return ResponsesEncoder(msgspec.convert(body, ResponseRequest), REQUEST_ID, NOW)


def chunk(**choice: object) -> UpstreamChunk:
    return msgspec.convert({"choices": [choice]}, UpstreamChunk)


def said(text: str, **choice: object) -> UpstreamChunk:
    return chunk(delta={"content": text}, **choice)


def call(index: int, arguments: str = "", **members: object) -> UpstreamChunk:
    """A piece of a call; the first of each needs `id` and `name`."""
    function = {"arguments": arguments, "name": members.pop("name", None)}
    piece = {"index": index, "function": function, **members}
    return chunk(delta={"tool_calls": [piece]})


@cache
def sdk_events() -> TypeAdapter[ResponseStreamEvent]:
    """The SDK's own type of events; it takes seconds to make."""
    return TypeAdapter(ResponseStreamEvent)


def events(data: bytes) -> list[dict[str, Any]]:
    """Every event of a stream; each fits the SDK's type for it, and its name stands before it."""
    pieces = data.split(b"\n\n")
    assert pieces.pop() == b"", "whole records only"
    found: list[dict[str, Any]] = []
    for piece in pieces:
        name, payload = piece.split(b"\n")
        event = json.loads(payload.removeprefix(b"data: "))
        assert name == b"event: " + event["type"].encode()
        read = sdk_events().validate_json(payload.removeprefix(b"data: "), strict=True)
        assert read.type == event["type"]
        found.append(event)
    return found


def streamed(answer: ResponsesEncoder, *chunks: UpstreamChunk) -> list[dict[str, Any]]:
    """A whole stream, with its chunks read one by one."""
    told = answer.opening(())
    for one in chunks:
        told += answer.records([one])
    return events(told + b"".join(answer.closing(FINISH)))


def kinds(told: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in told]
