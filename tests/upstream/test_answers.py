"""A sound answer of the test upstream can be predicted to the token."""

import json
from typing import Any

import pytest

from tests.upstream.answers import CITATION, text_of
from tests.upstream.scripts import UpstreamScript
from tests.upstream.upstream import TOKENS_DEFAULT, ScriptedUpstream
from tests.upstream.wire import HELLO, HELLO_TOKENS, STREAM, ask

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
}
FUNCTION = {"name": "forecast", "parameters": PARAMETERS}
ARGUMENTS = '{"city": "toll", "days": 1}'
ARGUMENTS_TOKENS = 4
FORCED: dict[str, Any] = HELLO | {
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": "required",
}
CALLED: dict[str, Any] = HELLO | {"functions": [FUNCTION], "function_call": {"name": "forecast"}}


def usage(completion_tokens: int, **details: dict[str, int]) -> dict[str, Any]:
    return {
        "prompt_tokens": HELLO_TOKENS,
        "completion_tokens": completion_tokens,
        "total_tokens": HELLO_TOKENS + completion_tokens,
        **details,
    }


async def test_a_whole_answer_is_always_the_same(upstream: ScriptedUpstream) -> None:
    first, second = (
        await ask(upstream, HELLO | {"model": "m"}),
        await ask(upstream, HELLO | {"model": "m"}),
    )

    assert first.body == second.body
    assert first.json() == {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "m",
        "system_fingerprint": "fp_test",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": text_of(TOKENS_DEFAULT),
                    "refusal": None,
                },
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": usage(TOKENS_DEFAULT),
    }


async def test_every_word_is_a_token_and_every_message_one_more(
    upstream: ScriptedUpstream,
) -> None:
    parts = [{"type": "text", "text": "one two"}, {"type": "image_url"}, {"text": "three"}]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}]

    answer = await ask(upstream, {"messages": messages})

    assert answer.json()["usage"]["prompt_tokens"] == 3 + 4


async def test_the_last_piece_of_a_stream_can_bring_its_end_along(
    upstream: ScriptedUpstream,
) -> None:
    upstream.queue(UpstreamScript(tokens=3, ends_with_last_piece=True))

    stream = await ask(upstream, STREAM | {"n": 2})

    *others, first, second = stream.records()
    assert stream.said() == stream.said(choice=1) == text_of(3)
    for record in (first, second):
        (choice,) = record["choices"]
        assert choice["delta"]["content"]
        assert choice["finish_reason"] == "stop"
        assert record["usage"] == usage(3)
    assert all("usage" not in record for record in others)
    assert all(record["choices"][0]["finish_reason"] is None for record in others)
    assert stream.payloads()[-1] == "[DONE]"


async def test_a_stream_says_the_same_word_by_word(upstream: ScriptedUpstream) -> None:
    stream = await ask(upstream, STREAM)

    assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert stream.is_whole
    assert stream.payloads()[-1] == "[DONE]"
    assert stream.said() == text_of(TOKENS_DEFAULT)
    assert stream.deltas()[0] == {"role": "assistant", "content": ""}
    assert stream.deltas()[-1] == {}
    assert len(stream.records()) == TOKENS_DEFAULT + 3
    assert stream.records()[-1]["usage"] == usage(TOKENS_DEFAULT)
    assert all("usage" not in record for record in stream.records()[:-1])


async def test_a_stream_has_no_usage_that_was_not_asked_for(upstream: ScriptedUpstream) -> None:
    stream = await ask(upstream, HELLO | {"stream": True})

    assert b"usage" not in stream.body


async def test_the_bound_cuts_an_answer_short(upstream: ScriptedUpstream) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        answer = (await ask(upstream, HELLO | {name: 3})).json()

        assert answer["choices"][0]["message"]["content"] == text_of(3)
        assert answer["choices"][0]["finish_reason"] == "length"
        assert answer["usage"] == usage(3)


async def test_choices_are_all_paid_for_and_the_prompt_once(upstream: ScriptedUpstream) -> None:
    answer = (await ask(upstream, HELLO | {"n": 3, "max_tokens": 2})).json()

    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    assert answer["usage"] == usage(6)


@pytest.mark.parametrize("order", ["ascending", "descending"])
async def test_choices_of_a_stream_come_in_turn(upstream: ScriptedUpstream, order: str) -> None:
    upstream.queue(
        UpstreamScript(choice_order="descending" if order == "descending" else "ascending")
    )

    stream = await ask(upstream, STREAM | {"n": 2, "max_tokens": 2})

    turns = [record["choices"][0]["index"] for record in stream.records()[:-1]]
    assert turns == ([0, 1] if order == "ascending" else [1, 0]) * 4
    assert stream.said(choice=0) == stream.said(choice=1) == text_of(2)
    assert stream.records()[-1]["usage"] == usage(4)


async def test_usage_in_every_record_is_that_of_its_choice(upstream: ScriptedUpstream) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}

    stream = await ask(upstream, STREAM | {"stream_options": options, "n": 2, "max_tokens": 2})

    counts = [record["usage"]["completion_tokens"] for record in stream.records()]
    assert counts == [0, 0, 1, 1, 2, 2, 2, 2, 4]


async def test_usage_in_every_record_needs_usage_at_the_end(upstream: ScriptedUpstream) -> None:
    options = {"continuous_usage_stats": True}

    assert b"usage" not in (await ask(upstream, STREAM | {"stream_options": options})).body


async def test_a_tool_is_called_when_the_choice_asks(upstream: ScriptedUpstream) -> None:
    choice = (await ask(upstream, FORCED)).json()["choices"][0]
    unasked = (await ask(upstream, FORCED | {"tool_choice": "auto"})).json()["choices"][0]

    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"] == [
        {
            "id": "call_0",
            "type": "function",
            "function": {"name": "forecast", "arguments": ARGUMENTS},
        }
    ]
    assert "tool_calls" not in unasked["message"]


async def test_the_named_tool_is_the_one_called(upstream: ScriptedUpstream) -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("a", "b")]
    named = {"type": "function", "function": {"name": "b"}}

    answer = (await ask(upstream, HELLO | {"tools": tools, "tool_choice": named})).json()

    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "b", "arguments": "{}"}


async def test_a_streamed_call_has_its_name_once(upstream: ScriptedUpstream) -> None:
    upstream.queue(UpstreamScript(tool_calls=2))

    stream = await ask(upstream, FORCED | STREAM)

    pieces = [delta["tool_calls"][0] for delta in stream.deltas() if "tool_calls" in delta]
    assert [piece["index"] for piece in pieces] == [0] * 5 + [1] * 5
    assert [piece["id"] for piece in pieces if "id" in piece] == ["call_0", "call_1"]
    assert [piece["function"]["name"] for piece in pieces[::5]] == ["forecast"] * 2
    assert "".join(piece["function"]["arguments"] for piece in pieces) == ARGUMENTS * 2
    assert stream.records()[-1]["usage"] == usage(2 * ARGUMENTS_TOKENS)


async def test_an_old_function_is_called_too(upstream: ScriptedUpstream) -> None:
    choice = (await ask(upstream, CALLED)).json()["choices"][0]
    stream = await ask(upstream, CALLED | STREAM)

    assert choice["message"]["function_call"] == {"name": "forecast", "arguments": ARGUMENTS}
    assert choice["finish_reason"] == "function_call"
    pieces = [delta["function_call"] for delta in stream.deltas() if "function_call" in delta]
    assert pieces[0] == {"name": "forecast", "arguments": ""}
    assert "".join(piece["arguments"] for piece in pieces) == ARGUMENTS


async def test_json_is_answered_that_fits_the_schema(upstream: ScriptedUpstream) -> None:
    schema = {
        "type": "object",
        "$defs": {"Leg": {"type": "object", "properties": {"km": {"type": "number"}}}},
        "properties": {
            "legs": {"type": "array", "items": {"$ref": "#/$defs/Leg"}},
            "kind": {"enum": ["toll", "free"]},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "is_open": {"type": ["boolean", "null"]},
            "version": {"const": 2},
        },
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "road", "schema": schema}}

    answer = (await ask(upstream, HELLO | {"response_format": wanted})).json()
    anything = (await ask(upstream, HELLO | {"response_format": {"type": "json_object"}})).json()

    text = answer["choices"][0]["message"]["content"]
    assert json.loads(text) == {
        "legs": [{"km": 1.5}],
        "kind": "toll",
        "note": "toll",
        "is_open": True,
        "version": 2,
    }
    assert answer["usage"] == usage(len(text.split()))
    assert json.loads(anything["choices"][0]["message"]["content"]) == {"toll": "paid"}


@pytest.mark.parametrize(
    "asking",
    [
        {"reasoning_effort": "low"},
        {"reasoning": {"max_tokens": 100}},
        {"chat_template_kwargs": {"enable_thinking": True}},
    ],
)
async def test_reasoning_comes_first_and_is_part_of_the_bound(
    upstream: ScriptedUpstream, asking: dict[str, Any]
) -> None:
    answer = (await ask(upstream, HELLO | asking | {"max_tokens": 6})).json()
    stream = await ask(upstream, STREAM | asking | {"max_tokens": 6})

    message = answer["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == (text_of(4), text_of(2))
    assert answer["usage"] == usage(6, completion_tokens_details={"reasoning_tokens": 4})
    assert stream.said("reasoning_content") == text_of(4)
    assert stream.said() == text_of(2)
    assert stream.records()[-1]["usage"] == answer["usage"]


async def test_reasoning_can_have_its_other_name(upstream: ScriptedUpstream) -> None:
    upstream.queue(UpstreamScript(reasoning_tokens=2, reasoning_name="reasoning"), times=2)

    answer = (await ask(upstream)).json()
    stream = await ask(upstream, STREAM)

    assert answer["choices"][0]["message"]["reasoning"] == text_of(2)
    assert stream.said("reasoning") == text_of(2)


async def test_logprobs_have_as_many_rivals_as_asked_for(upstream: ScriptedUpstream) -> None:
    asking = {"logprobs": True, "top_logprobs": 2, "max_tokens": 2}

    answer = (await ask(upstream, HELLO | asking)).json()
    stream = await ask(upstream, STREAM | asking)

    content = answer["choices"][0]["logprobs"]["content"]
    assert [token["token"] for token in content] == ["The", " gate"]
    assert [len(token["top_logprobs"]) for token in content] == [2, 2]
    streamed = [record["choices"][0]["logprobs"] for record in stream.records()[1:3]]
    assert [logprobs["content"] for logprobs in streamed] == [[token] for token in content]


async def test_logprobs_of_the_prompt_begin_with_nothing(upstream: ScriptedUpstream) -> None:
    answer = (await ask(upstream, HELLO | {"prompt_logprobs": 0})).json()

    assert answer["prompt_logprobs"][0] is None
    assert answer["prompt_logprobs"][1]["1"]["decoded_token"] == "day"


async def test_a_search_brings_annotations(upstream: ScriptedUpstream) -> None:
    answer = (await ask(upstream, HELLO | {"web_search_options": {}})).json()
    stream = await ask(upstream, STREAM | {"web_search_options": {}})

    assert answer["choices"][0]["message"]["annotations"] == [CITATION]
    assert stream.deltas()[-2] == {"annotations": [CITATION]}


TASK = "Read a.txt, replace `x` with `y` and run `cp a.txt b.txt`."


def tool(name: str, *parameters: str) -> dict[str, Any]:
    texts = {each: {"type": "string"} for each in parameters}
    schema = {"type": "object", "properties": texts, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


STEPS = ("cat a.txt", "sed -i s/x/y/ a.txt", "cp a.txt b.txt")
SHELL = [tool("exec", "cmd")]
CODING = [
    tool("Bash", "command", "description"),
    tool("Edit", "file_path", "old_string", "new_string"),
    tool("Read", "file_path"),
]


@pytest.mark.parametrize(
    ("tools", "calls"),
    [
        (
            SHELL,
            [("exec", "cat a.txt"), ("exec", "sed -i s/x/y/ a.txt"), ("exec", "cp a.txt b.txt")],
        ),
        (CODING, [("Read", "a.txt"), ("Edit", "y"), ("Bash", "cp a.txt b.txt")]),
    ],
)
async def test_an_agent_s_task_is_played_to_its_end(
    upstream: ScriptedUpstream, tools: list[dict[str, Any]], calls: list[tuple[str, str]]
) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
    made: list[dict[str, Any]] = []
    for _ in calls:
        body = {"model": "test", "messages": messages, "tools": tools}
        message = (await ask(upstream, body)).json()["choices"][0]["message"]
        made += [call["function"] for call in message["tool_calls"]]
        messages += [message, {"role": "tool", "tool_call_id": "1", "content": "done"}]
    said = (await ask(upstream, {"model": "test", "messages": messages, "tools": tools})).json()

    assert [call["name"] for call in made] == [name for name, _ in calls]
    for call, (_, value) in zip(made, calls, strict=True):
        assert value in json.loads(call["arguments"]).values()
    assert said["choices"][0]["message"]["content"] == "I edited a.txt and ran the command."


async def test_an_agent_without_tools_gets_its_edit_as_text(upstream: ScriptedUpstream) -> None:
    system = {"role": "system", "content": "Answer with a *SEARCH/REPLACE* block."}
    messages = [system, {"role": "user", "content": TASK}]

    answer = await ask(upstream, {"model": "test", "messages": messages})

    said = answer.json()["choices"][0]["message"]["content"]
    assert "a.txt\n```\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```" in said
