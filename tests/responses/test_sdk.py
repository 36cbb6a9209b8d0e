"""The official SDK, unmodified and strict about what it gets: every way to make a response."""

import asyncio
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import httpx2
import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.responses import Response
from pydantic import BaseModel

from tests.support.deployment import COMPLETION_PICO_USD, MODEL, PROMPT_PICO_USD, Deployment, chat

pytestmark = pytest.mark.asyncio(loop_scope="module")

WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "Look up the weather for a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}


class Toll(BaseModel):
    """What a parsed answer fits."""

    place: str
    cents: int


def options(deployment: Deployment) -> dict[str, Any]:
    return {
        "api_key": deployment.key.value,
        "base_url": f"{deployment.gateway.base_url}/v1",
        "max_retries": 0,
        "_strict_response_validation": True,
    }


async def in_thread(deployment: Deployment, work: Callable[[OpenAI], Any]) -> Any:  # noqa: ANN401 - what the SDK returns
    """The blocking client must not block the loop that the gateway runs on."""

    def run() -> Any:  # noqa: ANN401 - what the SDK returns
        with OpenAI(**options(deployment)) as client:
            return work(client)

    return await asyncio.to_thread(run)


def scripted(**fields: object) -> str:
    """An input that tells the upstream how to answer."""
    return json.dumps({"script": fields})


def asked(deployment: Deployment) -> dict[str, Any]:
    """What the upstream was sent last."""
    return json.loads(list(deployment.upstream.seen)[-1].body)


def cost(answer: Response) -> int:
    assert answer.usage is not None
    return (
        answer.usage.input_tokens * PROMPT_PICO_USD
        + answer.usage.output_tokens * COMPLETION_PICO_USD
    )


# Whole


async def test_an_answer_is_paid_for_to_the_last_token_and_written_down(
    deployment: Deployment,
) -> None:
    async with AsyncOpenAI(**options(deployment)) as client:
        answer = await client.responses.create(model=MODEL, input="Say something.")

    assert answer.status == "completed"
    assert answer.model == MODEL
    assert answer.output_text
    assert answer.completed_at is not None
    credit = await deployment.settled(1)
    assert credit.settled_pico_usd == cost(answer) > 0
    request_id = str(UUID(answer.id.removeprefix("resp_")))
    assert getattr(answer, "_request_id") == request_id  # noqa: B009 - where the SDK keeps it
    record = await deployment.record(request_id)
    assert record["status"] == httpx2.codes.OK
    assert record["model"] == MODEL
    assert record["operation"] == "createResponse"


async def test_the_blocking_client_gets_the_same(deployment: Deployment) -> None:
    answer = await in_thread(
        deployment, lambda client: client.responses.create(model=MODEL, input="Hi")
    )

    assert answer.output_text


async def test_an_answer_that_meets_its_bound_is_incomplete(deployment: Deployment) -> None:
    async with AsyncOpenAI(**options(deployment)) as client:
        answer = await client.responses.create(model=MODEL, input="Hi", max_output_tokens=3)

    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert answer.max_output_tokens == 3
    assert answer.usage is not None
    assert answer.usage.output_tokens == 3


async def test_an_answer_can_be_parsed_and_sent_back(deployment: Deployment) -> None:
    async with AsyncOpenAI(**options(deployment)) as client:
        answer = await client.responses.parse(model=MODEL, input="Hi", text_format=Toll)
        form = asked(deployment)["response_format"]
        history: list[Any] = [*answer.output, {"role": "user", "content": "Go on."}]
        await client.responses.create(model=MODEL, input=history)

    assert isinstance(answer.output_parsed, Toll)
    assert form["type"] == "json_schema"
    assert form["json_schema"]["strict"] is True
    assert asked(deployment)["messages"] == [
        {"role": "assistant", "content": answer.output_text},
        {"role": "user", "content": "Go on."},
    ]


async def test_a_function_is_called_and_its_output_is_sent_back(deployment: Deployment) -> None:
    question: Any = {"role": "user", "content": "How is the weather?"}
    async with AsyncOpenAI(**options(deployment)) as client:
        first: Any = await client.responses.create(
            model=MODEL, input=[question], tools=[WEATHER], tool_choice="required"
        )
        (call,) = first.output
        output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "Rain."}
        second = await client.responses.create(
            model=MODEL,
            input=[question, call.to_dict(), output],
            tools=[WEATHER],
            instructions="Be brief.",
        )

    assert call.type == "function_call"
    assert call.name == "get_weather"
    assert set(json.loads(call.arguments)) == {"city"}
    assert second.output_text
    assert asked(deployment)["messages"] == [
        {"role": "system", "content": "Be brief."},
        question,
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": call.arguments},
                }
            ],
        },
        {"role": "tool", "tool_call_id": call.call_id, "content": "Rain."},
    ]


async def test_the_whole_output_can_be_the_next_input(deployment: Deployment) -> None:
    """As a caller does who keeps the conversation itself."""
    script = scripted(reasoning_tokens=3, tool_calls=2)
    async with AsyncOpenAI(**options(deployment)) as client:
        first = await client.responses.create(model=MODEL, input=script, tools=[WEATHER])
        history: list[Any] = [item.to_dict() for item in first.output]
        history += [
            {"type": "function_call_output", "call_id": item["call_id"], "output": "Rain."}
            for item in history
            if item["type"] == "function_call"
        ]
        await client.responses.create(
            model=MODEL, input=[*history, {"role": "user", "content": "Go on."}]
        )

    sent = asked(deployment)["messages"]
    assert [message["role"] for message in sent] == ["assistant", "tool", "tool", "user"]
    assert len(sent[0]["tool_calls"]) == 2
    assert sent[0]["reasoning"] == sent[0]["reasoning_content"] != ""


async def test_reasoning_is_an_item_of_its_own(deployment: Deployment) -> None:
    async with AsyncOpenAI(**options(deployment)) as client:
        answer: Any = await client.responses.create(
            model=MODEL, input="Hi", reasoning={"effort": "low", "summary": "auto"}
        )

    reasoning, message = answer.output
    assert reasoning.type == "reasoning"
    assert reasoning.content[0].text
    assert message.type == "message"
    assert answer.usage.output_tokens_details.reasoning_tokens > 0
    assert asked(deployment)["reasoning_effort"] == "low"


async def test_log_probabilities_and_sources_come_with_the_text(deployment: Deployment) -> None:
    async with AsyncOpenAI(**options(deployment)) as client:
        answer: Any = await client.responses.create(
            model=MODEL,
            input="Hi",
            include=["message.output_text.logprobs"],
            top_logprobs=2,
            tools=[{"type": "web_search", "search_context_size": "low"}],
        )

    (text,) = answer.output[0].content
    assert "".join(token.token for token in text.logprobs) == text.text
    assert all(len(token.top_logprobs) == 2 for token in text.logprobs)
    assert text.annotations[0].type == "url_citation"
    assert asked(deployment)["web_search_options"] == {"search_context_size": "low"}


async def test_a_refusal_is_told_as_one(deployment: Deployment) -> None:
    async with AsyncOpenAI(**options(deployment)) as client:
        answer: Any = await client.responses.create(model=MODEL, input=scripted(refuses=True))

    (part,) = answer.output[0].content
    assert part.type == "refusal"
    assert part.refusal


async def test_a_picture_and_a_file_reach_the_backend_as_parts(deployment: Deployment) -> None:
    content: list[Any] = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,AAAA", "filename": "a"},
    ]
    async with AsyncOpenAI(**options(deployment)) as client:
        await client.responses.create(model=MODEL, input=[{"role": "user", "content": content}])

    assert [part["type"] for part in asked(deployment)["messages"][0]["content"]] == [
        "text",
        "image_url",
        "file",
    ]


# Streamed


async def test_a_stream_says_the_same_and_costs_the_same(deployment: Deployment) -> None:
    async with AsyncOpenAI(**options(deployment)) as client:
        whole = await client.responses.create(model=MODEL, input="Hi")
        stream = await client.responses.create(model=MODEL, input="Hi", stream=True)
        told = [event async for event in stream]

    last: Any = told[-1]
    deltas = [event.delta for event in told if event.type == "response.output_text.delta"]
    assert stream.response.headers["content-type"] == "text/event-stream"
    assert [event.sequence_number for event in told] == list(range(len(told)))
    assert last.type == "response.completed"
    assert "".join(deltas) == whole.output_text == last.response.output_text
    assert last.response.usage == whole.usage
    credit = await deployment.settled(2)
    assert credit.settled_pico_usd == 2 * cost(whole)


async def test_the_blocking_client_reads_a_stream(deployment: Deployment) -> None:
    def work(client: OpenAI) -> list[str]:
        return [
            event.type for event in client.responses.create(model=MODEL, input="x", stream=True)
        ]

    kinds = await in_thread(deployment, work)

    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"


async def test_the_helper_adds_a_stream_up(deployment: Deployment) -> None:
    async with (
        AsyncOpenAI(**options(deployment)) as client,
        client.responses.stream(
            model=MODEL,
            input=scripted(reasoning_tokens=3, text='{"place":"here","cents":5}'),
            text_format=Toll,
        ) as stream,
    ):
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()

    assert final.output_parsed == Toll(place="here", cents=5)
    assert "response.reasoning_text.delta" in kinds


async def test_the_helper_adds_several_calls_up(deployment: Deployment) -> None:
    async with (
        AsyncOpenAI(**options(deployment)) as client,
        client.responses.stream(
            model=MODEL, input=scripted(tool_calls=3), tools=[WEATHER]
        ) as stream,
    ):
        final: Any = await stream.get_final_response()

    assert [item.type for item in final.output] == ["function_call"] * 3
    assert len({item.call_id for item in final.output}) == 3
    assert all(set(json.loads(item.arguments)) == {"city"} for item in final.output)


async def test_a_stream_that_meets_its_bound_ends_incomplete(deployment: Deployment) -> None:
    async with AsyncOpenAI(**options(deployment)) as client:
        stream = await client.responses.create(
            model=MODEL, input="Hi", max_output_tokens=3, stream=True
        )
        told: list[Any] = [event async for event in stream]

    assert told[-1].type == "response.incomplete"
    assert told[-1].response.incomplete_details.reason == "max_output_tokens"
    assert told[-1].response.output[0].status == "incomplete"
    assert told[-1].response.usage.output_tokens == 3


async def test_what_breaks_after_the_first_byte_ends_failed(deployment: Deployment) -> None:
    script = scripted(error={"message": "out of memory"}, error_after_events=3)
    async with AsyncOpenAI(**options(deployment)) as client:
        stream = await client.responses.create(model=MODEL, input=script, stream=True)
        told: list[Any] = [event async for event in stream]

    assert told[-1].type == "response.failed"
    assert told[-1].response.status == "failed"
    assert told[-1].response.error.code == "server_error"
    assert [event.sequence_number for event in told] == list(range(len(told)))
    credit = await deployment.settled(1)
    assert credit.settled_pico_usd > 0


# Beside chat


@pytest.mark.parametrize("is_stream", [False, True])
async def test_both_surfaces_cost_the_same_and_ask_the_same(
    deployment: Deployment, *, is_stream: bool
) -> None:
    async with deployment.customer() as client:
        body = {"model": MODEL, "input": "Say something.", "stream": is_stream}
        response = await client.post("/v1/responses", json=body)
        as_response, asked_by_response = await deployment.settled(1), asked(deployment)
        completion = await client.post("/v1/chat/completions", json=chat(stream=is_stream))
        both, asked_by_chat = await deployment.settled(2), asked(deployment)

    assert response.status_code == completion.status_code == httpx2.codes.OK
    assert asked_by_response == asked_by_chat
    assert as_response.settled_pico_usd > 0
    assert both.settled_pico_usd == 2 * as_response.settled_pico_usd


# Errors


@pytest.mark.parametrize(
    ("fields", "error", "code", "param"),
    [
        ({"model": "unknown"}, openai.NotFoundError, "model_not_found", "model"),
        ({"store": True}, openai.BadRequestError, "unsupported_value", "store"),
        (
            {"previous_response_id": "resp_1"},
            openai.BadRequestError,
            "unsupported_parameter",
            "previous_response_id",
        ),
        ({"background": True}, openai.BadRequestError, "unsupported_parameter", "background"),
        (
            {"truncation": "auto", "input": "x" * 8192},
            openai.InternalServerError,
            "unsupported_parameter",
            "truncation",
        ),
        (
            {"input": scripted(status=400)},
            openai.UnprocessableEntityError,
            "provider_validation_failed",
            None,
        ),
        ({"input": scripted(status=500)}, openai.InternalServerError, "backend_error", None),
        ({"policy_ids": ["pol_1"]}, openai.NotFoundError, "policy_not_found", "policy_ids"),
    ],
)
@pytest.mark.parametrize("is_stream", [False, True])
async def test_the_sdk_raises_what_went_wrong_before_the_first_byte(
    deployment: Deployment,
    fields: dict[str, Any],
    error: type[openai.APIStatusError],
    code: str,
    param: str | None,
    *,
    is_stream: bool,
) -> None:
    body = {"model": MODEL, "input": "Hi", "stream": is_stream, **fields}
    async with AsyncOpenAI(**options(deployment)) as client:
        with pytest.raises(error) as raised:
            await client.post("/responses", body=body, cast_to=object)

    assert raised.value.code == code
    assert raised.value.param == param
