"""Whatever a backend says in whatever order: the last event is what all events add up to."""

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import omit
from openai.lib.streaming.responses._responses import ResponseStreamState

from tests.inference.answers import FINISH, events, rendering, sdk_events
from tollhouse.backends.types import UpstreamChunk

EXAMPLES = int(os.environ.get("TOLLHOUSE_EXAMPLES", "60"))
TEXTS = st.text(max_size=8)
CITATION = {"url": "u", "title": "t", "start_index": 0, "end_index": 1}
ANNOTATION = {"type": "url_citation", "url_citation": CITATION}
TOKEN = {"token": "a", "bytes": [97], "logprob": -0.5, "top_logprobs": []}

Piece = tuple[str, Any]
pieces = st.one_of(
    st.tuples(st.just("content"), TEXTS),
    st.tuples(st.just("refusal"), TEXTS),
    st.tuples(st.just("reasoning"), TEXTS),
    st.tuples(st.just("reasoning_content"), TEXTS),
    st.tuples(st.just("annotations"), st.just([ANNOTATION])),
    st.tuples(st.just("call"), st.tuples(st.integers(0, 3), TEXTS)),
)
answers = st.lists(pieces, max_size=20)
CUTS = st.lists(st.integers(0, 30))
PLACES = st.integers(0, 20)
FINISHES = st.sampled_from([None, "stop", "tool_calls", "length", "content_filter"])


@dataclass
class Caller:
    """Adds up the deltas, and holds every event against those before it."""

    items: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    ended_parts: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    ended: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    last: dict[str, Any] | None = None

    def read(self, event: dict[str, Any]) -> None:
        assert self.last is None, "nothing follows the end"
        name = event["type"].removeprefix("response.").replace(".", "_")
        getattr(self, f"on_{name}")(event)

    def on_created(self, event: dict[str, Any]) -> None:
        assert event["sequence_number"] == 0
        assert event["response"]["output"] == []

    def on_in_progress(self, event: dict[str, Any]) -> None:
        assert event["sequence_number"] == 1

    def on_output_item_added(self, event: dict[str, Any]) -> None:
        assert event["output_index"] == len(self.items), "items are added in order, once"
        assert event["item"]["status"] == "in_progress"
        self.items[event["output_index"]] = event["item"]

    def on_content_part_added(self, event: dict[str, Any]) -> None:
        content = self._item(event)["content"]
        assert event["content_index"] == len(content)
        content.append(event["part"])

    def on_output_text_delta(self, event: dict[str, Any]) -> None:
        part = self._part(event)
        part["text"] += event["delta"]
        part["logprobs"] += event["logprobs"]

    def on_output_text_annotation_added(self, event: dict[str, Any]) -> None:
        annotations = self._part(event)["annotations"]
        assert event["annotation_index"] == len(annotations)
        annotations.append(event["annotation"])

    def on_refusal_delta(self, event: dict[str, Any]) -> None:
        self._part(event)["refusal"] += event["delta"]

    def on_reasoning_text_delta(self, event: dict[str, Any]) -> None:
        self._part(event)["text"] += event["delta"]

    def on_function_call_arguments_delta(self, event: dict[str, Any]) -> None:
        self._item(event)["arguments"] += event["delta"]

    def on_output_text_done(self, event: dict[str, Any]) -> None:
        part = self._part(event)
        assert (event["text"], event["logprobs"]) == (part["text"], part["logprobs"])

    def on_refusal_done(self, event: dict[str, Any]) -> None:
        assert event["refusal"] == self._part(event)["refusal"]

    def on_reasoning_text_done(self, event: dict[str, Any]) -> None:
        assert event["text"] == self._part(event)["text"]

    def on_function_call_arguments_done(self, event: dict[str, Any]) -> None:
        item = self._item(event)
        assert (event["arguments"], event["name"]) == (item["arguments"], item["name"])

    def on_content_part_done(self, event: dict[str, Any]) -> None:
        assert event["part"] == self._part(event)
        self.ended_parts.add((event["output_index"], event["content_index"]))

    def on_output_item_done(self, event: dict[str, Any]) -> None:
        index = event["output_index"]
        assert index not in self.ended, "an item ends once"
        ended = self.items[index] | {"status": event["item"]["status"]}
        assert event["item"] == ended
        assert {(index, i) for i in range(len(ended.get("content", [])))} <= self.ended_parts
        self.ended[index] = event["item"]

    def on_completed(self, event: dict[str, Any]) -> None:
        self.last = event["response"]

    on_incomplete = on_completed

    def _item(self, event: dict[str, Any]) -> dict[str, Any]:
        index = event["output_index"]
        assert index not in self.ended, "nothing grows after its end"
        assert event["item_id"] == self.items[index]["id"]
        return self.items[index]

    def _part(self, event: dict[str, Any]) -> dict[str, Any]:
        assert (event["output_index"], event["content_index"]) not in self.ended_parts
        return self._item(event)["content"][event["content_index"]]


def chunks(said: list[Piece], finish_reason: str | None, finish_at: int) -> Iterator[UpstreamChunk]:
    """One piece in each; the first of a call has its ID and name, as it must.

    The end is told by the record of a piece, also of one that is not the last, or by its own.
    """
    begun: set[int] = set()
    for place, (kind, value) in enumerate(said):
        choice: dict[str, Any] = {"delta": {kind: value}}
        if kind == "content" and value:
            choice["logprobs"] = {"content": [TOKEN]}
        if kind == "call":
            index, arguments = value
            piece: dict[str, Any] = {"index": index, "function": {"arguments": arguments}}
            if index not in begun:
                begun.add(index)
                piece["id"] = f"call_{index}"
                piece["function"]["name"] = f"f{index}"
            choice = {"delta": {"tool_calls": [piece]}}
        if place == finish_at:
            choice["finish_reason"] = finish_reason
        yield msgspec.convert({"choices": [choice]}, UpstreamChunk)
    if finish_at >= len(said):
        last: dict[str, Any] = {"choices": [{"delta": {}, "finish_reason": finish_reason}]}
        yield msgspec.convert(last, UpstreamChunk)


def told(
    said: list[Piece], finish_reason: str | None, cuts: list[int], finish_at: int
) -> list[dict[str, Any]]:
    """The events of a stream whose records arrived in groups."""
    answer = rendering(stream=True, top_logprobs=1)
    found = list(chunks(said, finish_reason, finish_at))
    data = answer.opening(())
    edges = sorted({0, *(cut % len(found) for cut in cuts), len(found)})
    for begin, end in pairwise(edges):
        data += answer.records(found[begin:end])
    return events(data + b"".join(answer.closing(FINISH)))


@settings(max_examples=EXAMPLES)
@given(said=answers, finish_reason=FINISHES, cuts=CUTS, finish_at=PLACES)
def test_the_last_event_is_what_all_events_add_up_to(
    said: list[Piece], finish_reason: str | None, cuts: list[int], finish_at: int
) -> None:
    stream = told(said, finish_reason, cuts, finish_at)

    caller = Caller()
    for event in stream:
        caller.read(event)

    assert [event["sequence_number"] for event in stream] == list(range(len(stream)))
    assert caller.last is not None
    assert caller.ended.keys() == caller.items.keys()
    assert caller.last["output"] == [caller.ended[index] for index in sorted(caller.ended)]
    assert said_by(caller.last["output"]) == spoken(said)
    is_cut = finish_reason in ("length", "content_filter")
    assert stream[-1]["type"] == f"response.{'incomplete' if is_cut else 'completed'}"


@settings(max_examples=EXAMPLES)
@given(said=answers, cuts=CUTS, finish_at=PLACES)
def test_the_sdk_adds_it_up_to_the_same(said: list[Piece], cuts: list[int], finish_at: int) -> None:
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=omit, text_format=omit)

    heard: list[Any] = []
    for event in told(said, "stop", cuts, finish_at):
        heard += state.handle_event(sdk_events().validate_python(event))

    assert heard[-1].type == "response.completed"
    assert heard[-1].response.output_text == spoken(said).get("text", "")


def spoken(said: list[Piece]) -> dict[str, str]:
    """What the backend said of each kind, whatever came between."""
    found: defaultdict[str, str] = defaultdict(str)
    for kind, value in said:
        match kind:
            case "content":
                found["text"] += value
            case "refusal":
                found["refusal"] += value
            case "reasoning" | "reasoning_content":
                found["reasoning"] += value
            case "call":
                found[f"f{value[0]}"] += value[1]
            case _:
                pass
    return {kind: text for kind, text in found.items() if text}


def said_by(output: list[dict[str, Any]]) -> dict[str, str]:
    found: defaultdict[str, str] = defaultdict(str)
    for item in output:
        if item["type"] == "function_call":
            found[item["name"]] += item["arguments"]
        for part in item.get("content", []):
            name = {"output_text": "text", "reasoning_text": "reasoning"}.get(part["type"])
            found[name or "refusal"] += part.get("text", part.get("refusal"))
    return {kind: text for kind, text in found.items() if text}
