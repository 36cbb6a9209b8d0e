"""The body of token counting, line by line, and what of it is served nowhere."""

from typing import Any

import msgspec
import pytest

from tests.contract.tables import OBJECT, Table, array, cases, check_case, decoded, row, string
from tollhouse.base.errors import Kind
from tollhouse.contract import messages
from tollhouse.contract.errors import UnsupportedOption

MESSAGE = {"role": "user", "content": "Hello"}
MINIMAL: dict[str, Any] = {"model": "example/model-a", "messages": [MESSAGE]}

REQUEST = Table(
    type_=messages.CountTokens,
    body=MINIMAL,
    rows=[
        row("model", string(1, 200), required=True),
        row("messages", array(MESSAGE, 1), required=True),
        row("system", string(), array({"type": "text", "text": "Be brief."})),
        row("thinking", OBJECT),
        row("tool_choice", OBJECT),
        row("tools", array({"name": "f", "input_schema": {}})),
        row("cache_control", OBJECT, null=True),
        row("output_config", OBJECT),
    ],
)


@pytest.mark.guarantee("T15")
@pytest.mark.parametrize(("type_", "body", "outcome"), cases(REQUEST))
def test_each_field_of_token_counting_keeps_its_line_of_the_table(
    type_: type[msgspec.Struct], body: dict[str, Any], outcome: tuple[str, str | None]
) -> None:
    check_case(type_, body, outcome)


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "f", "input_schema": {}},
        {"type": "custom", "name": "f", "input_schema": {}},
        {"type": "web_search_2025_03_05", "name": "web_search"},
        {"type": "web_fetch_2025_03_05", "name": "web_fetch"},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "web_fetch_20250910", "name": "web_fetch"},
    ],
)
def test_tools_are_accepted_in_both_spellings(tool: dict[str, Any]) -> None:
    messages.check(decoded(messages.CountTokens, MINIMAL | {"tools": [tool]}))


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"name": "f"}, {"type": "bash_20250124"}]}, "tools[1].type"),
        ({"tools": [{"type": ["custom"]}]}, "tools[0].type"),
        ({"speed": "fast"}, "speed"),
        ({"context_management": {"edits": []}}, "context_management"),
        ({"mcp_servers": ["a"]}, "mcp_servers"),
        ({"compaction": {"type": "x"}}, "compaction"),
    ],
)
def test_what_is_known_and_not_served_is_501(fields: dict[str, Any], param: str) -> None:
    request = decoded(messages.CountTokens, MINIMAL | fields)

    with pytest.raises(UnsupportedOption) as refused:
        messages.check(request)

    assert refused.value.kind is Kind.NOT_IMPLEMENTED
    assert refused.value.should_retry is False
    assert (refused.value.code, refused.value.param) == ("unsupported_parameter", param)
