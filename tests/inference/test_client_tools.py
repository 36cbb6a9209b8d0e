"""Tools that a client runs, as functions of a chat, and their calls back again."""

import json
from typing import Any

import msgspec
import pytest

from tests.inference.answers import FINISH, NOW, REQUEST_ID, call, events, kinds, streamed
from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.response_tools import ToolIdentity
from tollhouse.contract.responses import ResponseRequest, check
from tollhouse.inference.responses.client_tools import (
    FUNCTION_NAME_LENGTH_MAX,
    as_functions,
    called_function,
    called_tool,
    function_name,
)
from tollhouse.inference.responses.endpoint import ResponsesEncoder
from tollhouse.inference.responses.translation import translate

FUNCTION: dict[str, Any] = {
    "type": "function",
    "name": "f",
    "parameters": {"type": "object"},
    "strict": False,
}
CUSTOM: dict[str, Any] = {
    "type": "custom",
    "name": "patch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"},
}
SHELL: dict[str, Any] = {"type": "local_shell"}
GROUP: dict[str, Any] = {
    "type": "namespace",
    "name": "ns",
    "description": "",
    "tools": [FUNCTION, CUSTOM],
}
LONG = "n" * 80


def request(**fields: object) -> ResponseRequest:
    return msgspec.convert({"model": "m", "input": "Hi", **fields}, ResponseRequest)


def chat(**fields: object) -> dict[str, Any]:
    body = request(**fields)
    return msgspec.to_builtins(translate(body, check(body)).chat)


NAMES = {
    ToolIdentity("function", "f"): "f",
    ToolIdentity("custom", "patch"): "patch",
    ToolIdentity("local_shell"): "local_shell",
    ToolIdentity("function", "f", "ns"): "ns__f",
    ToolIdentity("custom", "patch", "ns"): "ns__patch",
}


@pytest.mark.parametrize(("tool", "name"), NAMES.items())
def test_a_tool_has_one_name_as_a_function(tool: ToolIdentity, name: str) -> None:
    assert function_name(tool) == name


def test_a_long_name_is_cut_and_stays_distinct() -> None:
    one, other = (function_name(ToolIdentity("function", LONG + end, "ns")) for end in "ab")

    assert one != other
    assert {len(one), len(other)} == {FUNCTION_NAME_LENGTH_MAX}
    assert one == function_name(ToolIdentity("function", LONG + "a", "ns"))


def test_every_tool_becomes_a_function() -> None:
    functions = [each["function"] for each in chat(tools=[FUNCTION, SHELL, CUSTOM, GROUP])["tools"]]

    assert [each["name"] for each in functions] == [
        *("f", "local_shell", "patch", "ns__f", "ns__patch"),
    ]
    patch = functions[2]
    assert patch["description"].startswith("Edits files.\n\n")
    assert patch["description"].endswith("lark grammar:\nstart: X")
    assert patch["parameters"]["required"] == ["input"]
    assert functions[1]["parameters"]["required"] == ["command"]
    assert functions[3] == {"name": "ns__f", "parameters": {"type": "object"}, "strict": False}


COLLISIONS = [
    [FUNCTION, {"type": "custom", "name": "f"}],
    [{"type": "custom", "name": "f"}, FUNCTION],
    [{"type": "function", "name": "ns__f"}, GROUP],
    [SHELL, {"type": "function", "name": "local_shell"}],
    [GROUP, GROUP],
]


@pytest.mark.parametrize("tools", COLLISIONS)
def test_two_tools_with_one_name_are_refused(tools: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        as_functions(tools)

    assert (refused.value.code, refused.value.param) == ("invalid_parameter_combination", "tools")


def chosen(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


CHOICES: list[tuple[object, object]] = [
    ({"type": "custom", "name": "patch"}, chosen("patch")),
    ({"type": "local_shell"}, chosen("local_shell")),
    ({"type": "function", "name": "f", "namespace": "ns"}, chosen("ns__f")),
    ({"type": "function", "name": "f"}, chosen("f")),
    ("required", "required"),
]


@pytest.mark.parametrize(("choice", "becomes"), CHOICES)
def test_a_choice_names_the_function(choice: object, becomes: object) -> None:
    assert chat(tools=[FUNCTION, SHELL, CUSTOM, GROUP], tool_choice=choice)["tool_choice"] == (
        becomes
    )


def test_allowed_tools_are_the_only_functions() -> None:
    allowed = [{"type": "custom", "name": "patch", "namespace": "ns"}]

    found = chat(
        tools=[FUNCTION, CUSTOM, GROUP],
        tool_choice={"type": "allowed_tools", "mode": "auto", "tools": allowed},
    )

    assert [each["function"]["name"] for each in found["tools"]] == ["ns__patch"]


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "custom", "name": "f"},
        {"type": "function", "name": "f", "namespace": "other"},
        {"type": "local_shell"},
    ],
)
def test_a_choice_of_something_else_is_refused(choice: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check(request(tools=[FUNCTION, CUSTOM, GROUP], tool_choice=choice))

    assert refused.value.param == "tool_choice"


# Each item of `input`, the call that it becomes, and the members of the item that comes back.
ACTION = {"command": ["ls", "-l"], "env": {"A": "b"}, "timeout_ms": 9}
CALLS: list[tuple[dict[str, Any], ToolIdentity, dict[str, Any]]] = [
    (
        {"type": "custom_tool_call", "name": "patch", "input": 'a "b"\n'},
        ToolIdentity("custom", "patch"),
        {"input": 'a "b"\n'},
    ),
    (
        {"type": "custom_tool_call", "name": "patch", "namespace": "ns", "input": ""},
        ToolIdentity("custom", "patch", "ns"),
        {"input": ""},
    ),
    (
        {"type": "function_call", "name": "f", "namespace": "ns", "arguments": '{"a":1}'},
        ToolIdentity("function", "f", "ns"),
        {"a": 1},
    ),
    (
        {"type": "local_shell_call", "action": {"type": "exec", **ACTION}},
        ToolIdentity("local_shell"),
        ACTION,
    ),
]


@pytest.mark.parametrize(("item", "tool", "arguments"), CALLS)
def test_a_call_becomes_a_function_call_and_the_same_call_again(
    item: dict[str, Any], tool: ToolIdentity, arguments: dict[str, Any]
) -> None:
    called = called_function(item)

    assert called["name"] == function_name(tool)
    assert json.loads(called["arguments"]) == arguments
    members = {name: value for name, value in item.items() if name != "type"}
    assert called_tool(tool, called["arguments"]) == members


@pytest.mark.parametrize("text", ["", "*** Begin Patch", '{"input": 1}', "[1]", '{"inp'])
def test_text_that_is_no_input_is_the_input(text: str) -> None:
    assert called_tool(ToolIdentity("custom", "patch"), text)["input"] == text


@pytest.mark.parametrize("text", ["", "ls", '{"command": "ls"}', "[" * 100_000])
def test_a_malformed_command_is_empty(text: str) -> None:
    found = called_tool(ToolIdentity("local_shell"), text)

    assert found == {"action": {"type": "exec", "command": [], "env": {}}}


def test_a_session_of_tools_is_a_chat() -> None:
    found = chat(
        input=[
            {"role": "user", "content": "Go"},
            {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "x"},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
            {"type": "local_shell_call", "id": "c2", "action": {"command": ["ls"]}},
            {"type": "local_shell_call_output", "id": "c2", "output": "a"},
        ]
    )["messages"]

    assert [message["role"] for message in found] == [
        *("user", "assistant", "tool", "assistant", "tool"),
    ]
    calls = [message["tool_calls"][0] for message in found if "tool_calls" in message]
    assert [(each["id"], each["function"]["name"]) for each in calls] == [
        ("c1", "patch"),
        ("c2", "local_shell"),
    ]
    assert [message.get("tool_call_id") for message in found if message["role"] == "tool"] == [
        *("c1", "c2"),
    ]


MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"type": "custom_tool_call", "call_id": "c", "name": "patch"}, "input[0].input"),
    ({"type": "local_shell_call", "call_id": "c", "action": "ls"}, "input[0].action"),
    ({"type": "local_shell_call", "action": {}}, "input[0].id"),
    ({"type": "local_shell_call_output", "id": "c", "output": []}, "input[0].output"),
    (
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "", "namespace": 1},
        "input[0].namespace",
    ),
]


@pytest.mark.parametrize(("item", "param"), MALFORMED)
def test_a_malformed_item_is_refused(item: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check(request(input=[item]))

    assert refused.value.param == param


# Answers


def answer(*tools: dict[str, Any]) -> ResponsesEncoder:
    body = request(tools=list(tools))
    return ResponsesEncoder(body, REQUEST_ID, NOW, translate(body).tools)


def test_a_custom_call_is_streamed_with_its_input_at_the_end() -> None:
    told = streamed(
        answer(CUSTOM),
        call(0, '{"inp', id="c1", name="patch"),
        call(0, 'ut": "a\\nb"}'),
    )

    assert kinds(told)[2:-1] == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
    ]
    assert [told[3]["delta"], told[4]["input"]] == ["a\nb", "a\nb"]
    (item,) = told[-1]["response"]["output"]
    assert (item["type"], item["call_id"], item["name"], item["input"]) == (
        *("custom_tool_call", "c1", "patch", "a\nb"),
    )


def test_a_call_in_a_namespace_has_both_names() -> None:
    told = streamed(answer(GROUP), call(0, "{}", id="c1", name="ns__f"))

    (item,) = told[-1]["response"]["output"]
    assert (item["type"], item["namespace"], item["name"]) == ("function_call", "ns", "f")
    (done,) = [event for event in told if event["type"].endswith("arguments.done")]
    assert (done["name"], done["arguments"]) == ("f", "{}")


def test_a_shell_call_has_an_action() -> None:
    told = streamed(answer(SHELL), call(0, '{"command": ["ls"]}', id="c1", name="local_shell"))

    assert kinds(told)[2:-1] == ["output_item.added", "output_item.done"]
    (item,) = told[-1]["response"]["output"]
    assert (item["type"], item["call_id"]) == ("local_shell_call", "c1")
    assert item["action"] == {"type": "exec", "command": ["ls"], "env": {}}


def test_a_function_that_was_not_translated_stays_a_function() -> None:
    told = streamed(answer(FUNCTION, GROUP), call(0, "{}", id="c1", name="f"))

    (item,) = told[-1]["response"]["output"]
    assert item["type"] == "function_call"
    assert "namespace" not in item


def test_an_answer_names_the_model_that_answers_and_its_output_bound() -> None:
    encoder = answer(FUNCTION)
    encoder.answered_by("other", default_output_tokens=8_192)

    (created, _) = events(encoder.opening(()))

    shown = created["response"]
    assert (shown["model"], shown["max_output_tokens"]) == ("other", 8_192)
    assert b'"model":"other"' in b"".join(encoder.closing(FINISH))


def test_an_output_bound_of_the_caller_is_repeated() -> None:
    encoder = ResponsesEncoder(request(max_tokens=7), REQUEST_ID, NOW)
    encoder.answered_by("m", default_output_tokens=8_192)

    assert events(encoder.opening(()))[0]["response"]["max_output_tokens"] == 7
