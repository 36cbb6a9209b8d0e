"""Which tools are left out for a model that declares so, and which are refused."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from tollhouse.base.ids import RequestId
from tollhouse.catalog.types import Model
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.errors import UnsupportedOption
from tollhouse.contract.responses import ResponseRequest
from tollhouse.inference.chat import ChatEndpoint
from tollhouse.inference.dropped_tools import without_unsupported_tools
from tollhouse.inference.endpoint import TranslatedRequest
from tollhouse.inference.responses.endpoint import ResponsesEndpoint

FUNCTION: dict[str, Any] = {"type": "function", "name": "f"}
SEARCH: dict[str, Any] = {"type": "web_search"}
CODEX_SEARCH: dict[str, Any] = {"type": "web_search", "external_web_access": True}
HOSTED: dict[str, Any] = {"type": "code_interpreter"}


def model(*, drops: bool, features: tuple[str, ...] = ("tools",)) -> Model:
    return msgspec.convert(
        {
            "backend": "b",
            "pricing": {"prompt": "1", "completion": "1"},
            "context_length": 10,
            "max_output_length": 10,
            "features": list(features),
            "drops_unsupported_tools": drops,
        },
        Model,
    )


def response(**fields: object) -> TranslatedRequest:
    body = msgspec.convert({"model": "m", "input": "Hi", **fields}, ResponseRequest)
    return ResponsesEndpoint().translate(body, request_id=RequestId(uuid4()), now=datetime.now(UTC))


def chat(**fields: object) -> TranslatedRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **fields}
    return ChatEndpoint().translate(
        msgspec.convert(body, ChatRequest), request_id=RequestId(uuid4()), now=datetime.now(UTC)
    )


@pytest.mark.parametrize(
    ("tools", "dropped"),
    [
        ([FUNCTION], ()),
        ([FUNCTION, SEARCH], ("web_search",)),
        ([FUNCTION, CODEX_SEARCH], ("web_search",)),
        ([HOSTED, FUNCTION, SEARCH], ("code_interpreter", "web_search")),
        ([HOSTED, {"type": "mcp"}], ("code_interpreter", "mcp")),
    ],
)
def test_tools_of_a_provider_are_left_out(
    tools: list[dict[str, Any]], dropped: tuple[str, ...]
) -> None:
    request, left_out = without_unsupported_tools(response(tools=tools), model(drops=True))

    assert left_out == dropped
    offered = msgspec.to_builtins(request)
    assert "web_search_options" not in offered
    assert [each["function"]["name"] for each in offered.get("tools", ())] == (
        ["f"] if FUNCTION in tools else []
    )


@pytest.mark.parametrize("tool", [CODEX_SEARCH, HOSTED])
def test_a_model_that_drops_nothing_refuses_them(tool: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedOption) as refused:
        without_unsupported_tools(response(tools=[FUNCTION, tool]), model(drops=False))

    assert (refused.value.param or "").startswith("tools[1].")
    assert "'m'" in refused.value.message


def test_a_search_that_the_model_has_is_kept() -> None:
    searches = model(drops=True, features=("web_search",))

    request, left_out = without_unsupported_tools(response(tools=[SEARCH]), searches)

    assert (request.web_search_options, left_out) == ({}, ())


@pytest.mark.parametrize("choice", ["required", {"type": "web_search"}])
def test_a_demanded_search_stays_in_the_request(choice: object) -> None:
    """`check_options` refuses it."""
    request, left_out = without_unsupported_tools(
        response(tools=[SEARCH], tool_choice=choice), model(drops=True)
    )

    assert (request.web_search_options, left_out) == ({}, ())


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "f"}])
def test_a_choice_that_demands_a_tool_is_refused_beside_a_refused_tool(choice: object) -> None:
    with pytest.raises(UnsupportedOption):
        response(tools=[FUNCTION, HOSTED], tool_choice=choice)


def test_a_chat_drops_its_web_search_too() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}, {"type": "web_search"}]

    request, left_out = without_unsupported_tools(
        chat(tools=tools, web_search_options={}), model(drops=True)
    )

    assert left_out == ("web_search",)
    assert request.tools == tools[:1]
    assert msgspec.to_builtins(request).get("web_search_options") is None
