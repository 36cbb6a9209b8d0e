"""Responses by OpenAI's SDK: each check compares what it reads with what was to be said."""

import json
from typing import Any
from uuid import UUID

from tests.journeys.drivers.checking import (
    Check,
    Client,
    entered,
    equal,
    forms,
    got,
    items,
    prompt_tokens,
    scripted,
)
from tests.journeys.drivers.openai_chat import EXTRA, PARSED, TEXT, WEATHER, Toll, tokens

TOOL = {"type": "function", "strict": True, **WEATHER}


def question(client: Client, **script: object) -> dict[str, Any]:
    return {"model": client.stage["model"], "input": scripted(**script)}


def is_whole(answer: Any, asked: dict[str, Any]) -> None:  # noqa: ANN401 - whatever the SDK has
    equal((answer.object, answer.status, answer.error), ("response", "completed", None))
    equal(answer.model, asked["model"])
    equal(answer.output_text, TEXT)
    equal([item.type for item in answer.output], ["message"])
    equal((answer.usage.input_tokens, answer.usage.output_tokens), counted(asked))


def counted(asked: dict[str, Any]) -> tuple[int, int]:
    return prompt_tokens(asked["input"]), tokens(TEXT)


async def create(client: Client) -> None:
    asked = question(client, text=TEXT)
    answer = await got(client.open().responses.create(**asked))

    is_whole(answer, asked)
    equal(str(UUID(answer.id.removeprefix("resp_"))), answer._request_id)  # noqa: SLF001 - where the SDK keeps it


async def stream(client: Client) -> None:
    asked = question(client, text=TEXT)
    told = await items(await got(client.open().responses.create(**asked, stream=True)))

    equal([event.sequence_number for event in told], list(range(len(told))))
    equal((told[0].type, told[-1].type), ("response.created", "response.completed"))
    deltas = [event.delta for event in told if event.type == "response.output_text.delta"]
    equal("".join(deltas), TEXT)
    is_whole(told[-1].response, asked)


async def helper(client: Client) -> None:
    asked = question(client, text=TEXT)
    async with entered(client.open().responses.stream(**asked)) as events:
        told = await items(events)
        final = await got(events.get_final_response())

    equal(told[-1].type, "response.completed")
    is_whole(final, asked)


async def helper_parse(client: Client) -> None:
    asked = question(client, text=PARSED)
    async with entered(client.open().responses.stream(**asked, text_format=Toll)) as events:
        await items(events)
        final = await got(events.get_final_response())

    equal(final.output_parsed, Toll(place="the gate", cents=5))


async def parse(client: Client) -> None:
    asked = question(client, text=PARSED)
    answer = await got(client.open().responses.parse(**asked, text_format=Toll))

    equal(answer.output_parsed, Toll(place="the gate", cents=5))


def calls_are(calls: list[Any], count: int) -> None:
    equal([call.type for call in calls], ["function_call"] * count)
    equal([call.call_id for call in calls], [f"call_{index}" for index in range(count)])
    equal({call.name for call in calls}, {"get_weather"})
    equal([sorted(json.loads(call.arguments)) for call in calls], [["city"]] * count)


async def tools(client: Client) -> None:
    """The whole output goes back with its results, as one does who keeps the conversation."""
    opened, asked = client.open(), question(client, tool_calls=3) | {"tools": [TOOL]}
    first = await got(opened.responses.create(**asked))
    calls_are(first.output, 3)

    results = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "Rain."}
        for call in first.output
    ]
    last = {"role": "user", "content": scripted(text=TEXT)}
    history = [*(call.to_dict() for call in first.output), *results, last]
    second = await got(opened.responses.create(**asked | {"input": history}))
    equal(second.output_text, TEXT)


async def taken_back(client: Client) -> None:
    """The items of every helper, in every form, are input of the next request."""
    opened = client.open().responses
    call = {"name": "get_weather", "extra_content": EXTRA}
    for script, options in (
        ({"text": TEXT, "reasoning_tokens": 3}, {}),
        ({"refuses": True}, {}),
        ({"calls": [call, call]}, {"tools": [TOOL]}),
    ):
        asked = question(client, **script) | options
        async with entered(opened.stream(**asked)) as events:
            await items(events)
            streamed = await got(events.get_final_response())
        whole, parsed = await got(opened.create(**asked)), await got(opened.parse(**asked))
        for answer in (whole, parsed, streamed):
            outputs = [
                {"type": "function_call_output", "call_id": item.call_id, "output": "Rain."}
                for item in answer.output
                if item.type == "function_call"
            ]
            for said in zip(*map(forms, answer.output), strict=True):
                history = [*said, *outputs, {"role": "user", "content": scripted(text=TEXT)}]
                again = await got(opened.create(**asked | {"input": history}))
                equal(again.output_text, TEXT)


async def tools_streamed(client: Client) -> None:
    asked = question(client, tool_calls=3) | {"tools": [TOOL]}
    async with entered(client.open().responses.stream(**asked)) as events:
        await items(events)
        final = await got(events.get_final_response())

    calls_are(final.output, 3)


async def reasoning(client: Client) -> None:
    asked = question(client, text=TEXT, reasoning_tokens=3)
    answer = await got(client.open().responses.create(**asked))

    equal([item.type for item in answer.output], ["reasoning", "message"])
    equal(answer.usage.output_tokens_details.reasoning_tokens, 3)
    equal(answer.output_text, TEXT)


async def incomplete(client: Client) -> None:
    opened, asked = client.open(), question(client, text=TEXT) | {"max_output_tokens": 3}
    whole = await got(opened.responses.create(**asked))
    told = await items(await got(opened.responses.create(**asked, stream=True)))

    equal(told[-1].type, "response.incomplete")
    for answer in (whole, told[-1].response):
        equal(answer.status, "incomplete")
        equal(answer.incomplete_details.reason, "max_output_tokens")
        equal(answer.output_text, "The toll is")
        equal(answer.usage.output_tokens, 3)


async def failed(client: Client) -> None:
    """The iterator goes on to the last event: nothing is raised on the way."""
    asked = question(client, error={"message": "out of memory"}, error_after_events=3)
    told = await items(await got(client.open(max_retries=2).responses.create(**asked, stream=True)))

    equal(told[-1].type, "response.failed")
    equal(told[-1].response.status, "failed")
    equal(told[-1].response.error.code, "server_error")
    client.requests = 1


CHECKS: dict[str, Check] = {
    "responses.create": create,
    "responses.stream": stream,
    "responses.helper": helper,
    "responses.helper_parse": helper_parse,
    "responses.parse": parse,
    "responses.tools": tools,
    "responses.taken_back": taken_back,
    "responses.tools_streamed": tools_streamed,
    "responses.reasoning": reasoning,
    "responses.incomplete": incomplete,
    "responses.failed": failed,
}
