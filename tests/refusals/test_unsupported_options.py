"""501 over HTTP names the model, the feature, and the field that the caller really sent."""

from typing import Any

import httpx2
import pytest

from tests.refusals.conftest import CHAT, COUNT_TOKENS, PLAIN_MODEL, RESPONSES
from tests.support.deployment import MODEL

pytestmark = pytest.mark.asyncio(loop_scope="module")

PIXEL = "data:image/png;base64,AAAA"
SCHEMA: dict[str, Any] = {"type": "json_schema", "json_schema": {"name": "s", "schema": {}}}
TOOL = {"type": "function", "function": {"name": "f"}}
FLAT_TOOL = {"type": "function", "name": "f"}


def parts(name: str, *content: dict[str, Any]) -> dict[str, Any]:
    return {name: [{"role": "user", "content": list(content)}]}


async def refused(
    client: httpx2.AsyncClient, path: str, model: str, fields: dict[str, Any]
) -> dict[str, Any]:
    name = "input" if path == RESPONSES else "messages"
    answer = await client.post(
        path, json={"model": model, name: [{"role": "user", "content": "Hi"}], **fields}
    )
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (501, "unsupported_parameter"), answer.text
    assert answer.headers["x-should-retry"] == "false"
    assert error["doc_url"] == "https://gateway.example/docs/errors/unsupported_parameter"
    return error


FEATURES = "supported_features"
SAMPLING = "supported_sampling_parameters"
# path, what is sent, the field that must be named, what the model lacks, where it would be listed
LACKING: list[tuple[str, dict[str, Any], str, str, str]] = [
    (CHAT, {"temperature": 1}, "temperature", "temperature", SAMPLING),
    (CHAT, {"n": 2}, "n", "n", SAMPLING),
    (CHAT, {"logprobs": True, "top_logprobs": 1}, "logprobs", "logprobs", SAMPLING),
    (CHAT, {"reasoning_effort": "low"}, "reasoning_effort", "reasoning", FEATURES),
    (CHAT, {"reasoning": {"effort": "low"}}, "reasoning.effort", "reasoning", FEATURES),
    (CHAT, {"reasoning": {"enabled": True}}, "reasoning.enabled", "reasoning", FEATURES),
    (CHAT, {"reasoning": {"max_tokens": 9}}, "reasoning.max_tokens", "reasoning_budget", FEATURES),
    (CHAT, {"thinking": True}, "thinking", "reasoning", FEATURES),
    (CHAT, {"tools": [TOOL]}, "tools", "tools", FEATURES),
    (CHAT, {"functions": [{"name": "f"}]}, "functions", "functions", FEATURES),
    (CHAT, {"web_search_options": {}}, "web_search_options", "web_search", FEATURES),
    (CHAT, {"response_format": SCHEMA}, "response_format", "structured_outputs", FEATURES),
    (CHAT, {"response_format": {"type": "json_object"}}, "response_format", "json_mode", FEATURES),
    (CHAT, {"verbosity": "low"}, "verbosity", "verbosity", FEATURES),
    (CHAT, {"modalities": ["text", "audio"]}, "modalities", "audio", "output_modalities"),
    (CHAT, {"audio": {"voice": "v"}}, "audio", "audio", "output_modalities"),
    (
        CHAT,
        parts("messages", {"type": "image_url", "image_url": {"url": PIXEL}}),
        "messages[0].content[0].image_url",
        "image",
        "input_modalities",
    ),
    (
        CHAT,
        parts("messages", {"image_url": PIXEL}),
        "messages[0].content[0].image_url",
        "image",
        "input_modalities",
    ),
    (
        CHAT,
        parts("messages", {"type": "input_audio", "input_audio": {"data": "AAAA"}}),
        "messages[0].content[0].input_audio",
        "audio",
        "input_modalities",
    ),
    (
        CHAT,
        parts("messages", {"type": "file", "file": {"file_data": "AAAA"}}),
        "messages[0].content[0].file",
        "file",
        "input_modalities",
    ),
    (
        CHAT,
        parts("messages", {"type": "image_url"}),
        "messages[0].content[0].type",
        "image",
        "input_modalities",
    ),
    (RESPONSES, {"top_p": 1}, "top_p", "top_p", SAMPLING),
    (RESPONSES, {"reasoning": {"effort": "low"}}, "reasoning.effort", "reasoning", FEATURES),
    (RESPONSES, {"tools": [FLAT_TOOL]}, "tools", "tools", FEATURES),
    (RESPONSES, {"tools": [{"type": "web_search"}]}, "tools[0].type", "web_search", FEATURES),
    (RESPONSES, {"text": {"verbosity": "low"}}, "text.verbosity", "verbosity", FEATURES),
    (
        RESPONSES,
        {"text": {"format": {"type": "json_object"}}},
        "text.format",
        "json_mode",
        FEATURES,
    ),
    (
        RESPONSES,
        parts("input", {"type": "input_image", "image_url": PIXEL}),
        "input[0].content[0].image_url",
        "image",
        "input_modalities",
    ),
    (
        RESPONSES,
        parts("input", {"type": "input_file", "file_data": "AAAA"}),
        "input[0].content[0].file_data",
        "file",
        "input_modalities",
    ),
]


@pytest.mark.parametrize(("path", "fields", "param", "feature", "listed_in"), LACKING)
async def test_what_a_model_lacks_is_named_with_the_place_where_others_list_it(
    client: httpx2.AsyncClient,
    path: str,
    fields: dict[str, Any],
    param: str,
    feature: str,
    listed_in: str,
) -> None:
    error = await refused(client, path, PLAIN_MODEL, fields)

    assert error["param"] == param
    assert error["message"].startswith(f"Unsupported parameter: '{param}'. ")
    assert f"The model '{PLAIN_MODEL}'" in error["message"]
    assert f"'{feature}' in '{listed_in}'" in error["message"]
    assert "Leave it out, or choose a model that has" in error["message"]


@pytest.mark.parametrize(("path", "fields", "param", "feature", "listed_in"), LACKING)
async def test_what_the_refusal_advises_to_look_up_is_listed_by_a_model_that_has_it(
    client: httpx2.AsyncClient,
    path: str,
    fields: dict[str, Any],
    param: str,
    feature: str,
    listed_in: str,
) -> None:
    listed = {each["id"]: each for each in (await client.get("/v1/models")).json()["data"]}

    assert feature not in listed[PLAIN_MODEL][listed_in]
    if listed_in != "output_modalities":
        assert feature in listed[MODEL][listed_in]


# path, what is sent, the field that must be named, words that say what to send instead
NOWHERE: list[tuple[str, dict[str, Any], str, str]] = [
    (CHAT, {"tools": [{"type": "code_interpreter"}]}, "tools[0].type", "'function'"),
    (CHAT, {"modalities": ["smell"]}, "modalities", "'text'"),
    (
        CHAT,
        parts("messages", {"type": "audio_url", "audio_url": {"url": "x"}}),
        "messages[0].content[0].type",
        "'input_audio'",
    ),
    (
        CHAT,
        {"prediction": {"type": "content", "content": [{"image_url": PIXEL}]}},
        "prediction.content[0].image_url",
        "Send text.",
    ),
    (RESPONSES, {"max_tool_calls": 1}, "max_tool_calls", "Leave it out."),
    (RESPONSES, {"moderation": {"a": 1}}, "moderation", "Leave it out."),
    (RESPONSES, {"tools": [{"type": "file_search"}]}, "tools[0].type", "'web_search'"),
    (
        RESPONSES,
        {"tools": [{"type": "web_search", "filters": {}}]},
        "tools[0].filters",
        "Leave it out.",
    ),
    (
        RESPONSES,
        {"tools": [FLAT_TOOL, {"type": "web_search"}], "tool_choice": "required"},
        "tool_choice",
        "Send 'auto', or only tools of one kind.",
    ),
    (RESPONSES, {"input": [{"type": "computer_call"}]}, "input[0].type", "'function_call'"),
    (
        RESPONSES,
        parts("input", {"type": "input_video"}),
        "input[0].content[0].type",
        "'input_image'",
    ),
    (
        RESPONSES,
        parts("input", {"type": "input_file", "file_url": "https://example.org/a.pdf"}),
        "input[0].content[0].file_url",
        "'file_data'",
    ),
    (COUNT_TOKENS, {"speed": "fast"}, "speed", "Leave it out."),
    (COUNT_TOKENS, {"mcp_servers": [{}]}, "mcp_servers", "Leave it out."),
    (
        COUNT_TOKENS,
        {"tools": [{"type": "bash_20250124", "name": "bash"}]},
        "tools[0].type",
        "'web_search_2025_03_05'",
    ),
    (
        COUNT_TOKENS,
        parts("messages", {"type": "video", "source": {}}),
        "messages[0].content[0].type",
        "'image'",
    ),
    (
        COUNT_TOKENS,
        parts("messages", {"type": "image", "source": {"type": "disk"}}),
        "messages[0].content[0].source.type",
        "'base64'",
    ),
]


@pytest.mark.parametrize(("path", "fields", "param", "instead"), NOWHERE)
async def test_what_no_model_has_is_told_with_what_to_send_instead(
    client: httpx2.AsyncClient, path: str, fields: dict[str, Any], param: str, instead: str
) -> None:
    error = await refused(client, path, MODEL, fields)

    assert error["param"] == param
    assert f"The model '{MODEL}' does not support" in error["message"]
    assert "no other model of this gateway does" in error["message"]
    assert instead in error["message"]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (CHAT, parts("messages", {"image_url": "https://example.org/a.png"})),
        (RESPONSES, parts("input", {"type": "input_image", "image_url": "https://a.example/"})),
        (
            COUNT_TOKENS,
            parts("messages", {"type": "image", "source": {"type": "url", "url": "https://a/"}}),
        ),
        (CHAT, parts("messages", {"image_url": "data:text/html;base64,AAAA"})),
        (
            COUNT_TOKENS,
            parts(
                "messages",
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "text/html", "data": "AAAA"},
                },
            ),
        ),
    ],
)
async def test_media_in_another_form_are_refused_with_the_model(
    client: httpx2.AsyncClient, path: str, fields: dict[str, Any]
) -> None:
    error = await refused(client, path, MODEL, fields)

    assert f"'{MODEL}'" in error["message"]
    assert "Send " in error["message"]
