"""Every field of the request over HTTP: refused as its line of the table says, else served."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.contract.tables import ACCEPTED, cases
from tests.contract.test_responses_fields import (
    INCLUDE,
    REASONING,
    REQUEST,
    STREAM_OPTIONS,
    TEXT,
    TEXT_FORMAT,
)
from tests.responses.conftest import PLAIN_MODEL
from tests.support.deployment import MODEL, customer_of
from tests.support.gateway import Gateway
from tests.support.organization_fixture import new_organization_fixture
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/responses"
OK = (200, None, None)
SERVED_OTHERWISE: dict[tuple[str, str], tuple[int, str | None, str | None]] = {
    ("max_tool_calls", "1"): (501, "unsupported_parameter", "max_tool_calls"),
    ("tool_choice", "required"): (400, "invalid_parameter_combination", "tool_choice"),
    ("tool_choice", "{'free': 1}"): (400, "missing_required_parameter", "tool_choice.type"),
    ("policy_ids", "['pol_1']"): (404, "policy_not_found", "policy_ids"),
    ("store", "True"): (400, "unsupported_value", "store"),
}
"""What fits its type and is refused for another reason."""
ABOVE_MODEL = {"max_output_tokens", "max_tokens", "max_completion_tokens"}
MODEL_MAX = 4096


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(
    gateway: Gateway, upstream: ScriptedUpstream, database: Database
) -> AsyncIterator[httpx2.AsyncClient]:
    """One customer for all cases."""
    deployment = await customer_of(gateway, upstream, await new_organization_fixture(database))
    async with deployment.customer() as opened:
        yield opened


def outcome(answer: httpx2.Response) -> tuple[int, str | None, str | None]:
    if answer.is_success:
        return answer.status_code, None, None
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


def expected(
    body: dict[str, Any], of_type: tuple[str, str | None]
) -> tuple[int, str | None, str | None]:
    """A body with one field that is tried, or none."""
    if of_type != ACCEPTED:
        return (400, *of_type)
    for name, value in body.items():
        if name in ABOVE_MODEL and (value or 0) > MODEL_MAX:
            return 400, "integer_above_max_value", name
        if name == "model" and value != MODEL:
            return 404, "model_not_found", "model"
        if name == "policy_ids" and value:
            return 404, "policy_not_found", "policy_ids"
        if (found := SERVED_OTHERWISE.get((name, str(value)))) is not None:
            return found
    return OK


@pytest.mark.parametrize(
    ("type_", "body", "of_type"), cases(REQUEST, REASONING, TEXT, TEXT_FORMAT, STREAM_OPTIONS)
)
async def test_each_field_is_refused_as_its_line_says_or_served(
    client: httpx2.AsyncClient, type_: object, body: dict[str, Any], of_type: tuple[str, str | None]
) -> None:
    answer = await client.post(PATH, json=body)

    assert outcome(answer) == expected(body, of_type)


@pytest.mark.parametrize("value", INCLUDE)
async def test_each_include_value_is_served(client: httpx2.AsyncClient, value: str) -> None:
    answer = await client.post(PATH, json={"model": MODEL, "input": "Hi", "include": [value]})

    assert outcome(answer) == OK


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": 1.0}, "temperature"),
        ({"top_p": 1.0}, "top_p"),
        ({"presence_penalty": 1.0}, "presence_penalty"),
        ({"frequency_penalty": 1.0}, "frequency_penalty"),
        ({"top_logprobs": 1}, "top_logprobs"),
        ({"include": ["message.output_text.logprobs"]}, "include"),
        ({"tools": [{"type": "function", "name": "f"}]}, "tools"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format"),
        ({"text": {"format": {"type": "json_schema", "name": "n", "schema": {}}}}, "text.format"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
        ({"reasoning": {"effort": "low"}}, "reasoning.effort"),
        ({"service_tier": "flex"}, "service_tier"),
        ({"prompt_cache_retention": "24h"}, "prompt_cache_retention"),
        (
            {
                "instructions": "Be brief.",
                "input": [
                    {"role": "user", "content": "Hi"},
                    {
                        "role": "user",
                        "content": [
                            {"type": "input_text", "text": "What is this?"},
                            {"type": "input_image", "image_url": "data:,x"},
                        ],
                    },
                ],
            },
            "input[1].content[1].image_url",
        ),
    ],
)
async def test_what_a_model_does_not_have_is_named_as_the_caller_named_it(
    client: httpx2.AsyncClient, fields: dict[str, Any], param: str
) -> None:
    answer = await client.post(PATH, json={"model": PLAIN_MODEL, "input": "Hi", **fields})

    assert outcome(answer) == (501, "unsupported_parameter", param)
    assert f"'{param}'" in answer.json()["error"]["message"]
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning": {"effort": "none"}},
        {"service_tier": "auto"},
        {"text": {"format": {"type": "text"}}},
        {"parallel_tool_calls": True},
        {"tool_choice": "auto", "tools": []},
        {"top_logprobs": 0},
        {"instructions": "Be brief."},
    ],
)
async def test_what_asks_for_nothing_is_served_by_every_model(
    client: httpx2.AsyncClient, fields: dict[str, Any]
) -> None:
    answer = await client.post(PATH, json={"model": PLAIN_MODEL, "input": "Hi", **fields})

    assert outcome(answer) == OK
