"""Chat by OpenAI's SDK: each check compares what it reads with what was to be said."""

import json
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from tests.journeys.drivers.checking import (
    Check,
    Client,
    asking,
    entered,
    equal,
    forms,
    got,
    holds,
    items,
    prompt_tokens,
    scripted,
)

TEXT = "The toll is paid, señor: 5 €\u2028[DONE]"
PARSED = '{"place": "the gate", "cents": 5}'
WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Look up the weather for a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
TOOL = {"type": "function", "function": {**WEATHER, "strict": True}}


class Toll(BaseModel):
    place: str
    cents: int


def question(client: Client, **script: object) -> dict[str, Any]:
    return {"model": client.stage["model"], "messages": asking(scripted(**script))}


def said(chunks: list[Any], index: int = 0) -> str:
    return "".join(
        choice.delta.content or ""
        for chunk in chunks
        for choice in chunk.choices
        if choice.index == index
    )


def usage_is(usage: Any, asked: dict[str, Any], completion_tokens: int) -> None:  # noqa: ANN401 - whatever the SDK has
    prompt = prompt_tokens(asked["messages"][0]["content"])
    equal(
        (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens),
        (prompt, completion_tokens, prompt + completion_tokens),
    )


def tokens(text: str) -> int:
    return len(text.split())


async def create(client: Client) -> None:
    asked = question(client, text=TEXT)
    answer = await got(client.open().chat.completions.create(**asked))

    equal(answer.object, "chat.completion")
    equal(answer.model, client.stage["model"])
    (choice,) = answer.choices
    equal((choice.index, choice.finish_reason), (0, "stop"))
    equal((choice.message.role, choice.message.content), ("assistant", TEXT))
    usage_is(answer.usage, asked, tokens(TEXT))
    equal(str(UUID(answer._request_id)), answer._request_id)  # noqa: SLF001 - where the SDK keeps it


async def raw(client: Client) -> None:
    limited = client.open(api_key=client.stage["keys"]["bounded"])
    answer = await got(limited.chat.completions.with_raw_response.create(**question(client)))

    headers = answer.headers
    equal(headers["x-ratelimit-limit-requests"], str(client.stage["requests_per_minute"]))
    holds(int(headers["x-ratelimit-remaining-requests"]) >= 0)
    holds(headers["x-ratelimit-reset-requests"] != "")
    equal(headers["x-ratelimit-limit-tokens"], str(client.stage["tokens_per_minute"]))
    parsed = await got(answer.parse())
    equal(headers["x-request-id"], parsed._request_id)  # noqa: SLF001 - where the SDK keeps it


async def stream(client: Client) -> None:
    asked = question(client, text=TEXT)
    chunks = await items(await got(client.open().chat.completions.create(**asked, stream=True)))

    equal({chunk.object for chunk in chunks}, {"chat.completion.chunk"})
    equal({chunk.model for chunk in chunks}, {client.stage["model"]})
    equal(len({(chunk.id, chunk.created) for chunk in chunks}), 1)
    equal(chunks[0].choices[0].delta.role, "assistant")
    equal(said(chunks), TEXT)
    equal(chunks[-1].choices[0].finish_reason, "stop")
    equal([chunk.usage for chunk in chunks if chunk.usage], [])


async def stream_with_usage(client: Client) -> None:
    asked = question(client, text=TEXT)
    options = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = await items(await got(client.open().chat.completions.create(**asked, **options)))

    equal(chunks[-1].choices, [])
    equal([chunk.usage for chunk in chunks[:-1] if chunk.usage], [])
    usage_is(chunks[-1].usage, asked, tokens(TEXT))


async def stream_of_three(client: Client) -> None:
    """The upstream tells its choices in the order that breaks the helper."""
    asked = question(client, text=TEXT, choice_order="descending")
    opened = client.open()
    chunks = await items(await got(opened.chat.completions.create(**asked, n=3, stream=True)))
    equal([said(chunks, index) for index in range(3)], [TEXT] * 3)

    async with entered(opened.chat.completions.stream(**asked, n=3)) as events:
        await items(events)
        final = await got(events.get_final_completion())
    equal([choice.index for choice in final.choices], [0, 1, 2])
    equal([choice.message.content for choice in final.choices], [TEXT] * 3)


async def helper(client: Client) -> None:
    asked = question(client, text=TEXT)
    manager = client.open().chat.completions.stream(**asked, stream_options={"include_usage": True})
    async with entered(manager) as events:
        told = await items(events)
        final = await got(events.get_final_completion())

    deltas = [event.delta for event in told if event.type == "content.delta"]
    equal("".join(deltas), TEXT)
    equal(final.choices[0].message.content, TEXT)
    usage_is(final.usage, asked, tokens(TEXT))


async def helper_parse(client: Client) -> None:
    asked = question(client, text=PARSED)
    manager = client.open().chat.completions.stream(**asked, response_format=Toll)
    async with entered(manager) as events:
        await items(events)
        final = await got(events.get_final_completion())

    equal(final.choices[0].message.parsed, Toll(place="the gate", cents=5))


async def parse(client: Client) -> None:
    asked = question(client, text=PARSED)
    answer = await got(client.open().chat.completions.parse(**asked, response_format=Toll))

    equal(answer.choices[0].message.parsed, Toll(place="the gate", cents=5))


async def parse_tool(client: Client) -> None:
    asked = question(client) | {"tools": [client.sdk.pydantic_function_tool(Toll)]}
    answer = await got(client.open().chat.completions.parse(**asked, tool_choice="required"))

    (call,) = answer.choices[0].message.tool_calls
    equal(call.function.name, "Toll")
    holds(isinstance(call.function.parsed_arguments, Toll))


def calls_are(calls: list[Any], count: int) -> None:
    equal([call.id for call in calls], [f"call_{index}" for index in range(count)])
    equal({call.type for call in calls}, {"function"})
    equal({call.function.name for call in calls}, {"get_weather"})
    equal([sorted(json.loads(call.function.arguments)) for call in calls], [["city"]] * count)


async def tools(client: Client) -> None:
    asked = question(client, tool_calls=3) | {"tools": [TOOL]}
    answer = await got(client.open().chat.completions.create(**asked))

    equal(answer.choices[0].finish_reason, "tool_calls")
    equal(answer.choices[0].message.content, None)
    calls_are(answer.choices[0].message.tool_calls, 3)


async def tools_streamed(client: Client) -> None:
    asked = question(client, tool_calls=3) | {"tools": [TOOL]}
    async with entered(client.open().chat.completions.stream(**asked)) as events:
        await items(events)
        final = await got(events.get_final_completion())

    equal(final.choices[0].finish_reason, "tool_calls")
    calls_are(final.choices[0].message.tool_calls, 3)


async def tools_answered(client: Client) -> None:
    opened, asked = client.open(), question(client, tool_calls=2) | {"tools": [TOOL]}
    first = (await got(opened.chat.completions.create(**asked))).choices[0].message
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "Rain."} for call in first.tool_calls
    ]
    history = [*asked["messages"], first, *results, *asking(scripted(text=TEXT))]
    second = await got(opened.chat.completions.create(**asked | {"messages": history}))

    equal(second.choices[0].message.content, TEXT)


EXTRA = {"google": {"thought_signature": "c2lnbmF0dXJl"}}
CONVERSATIONS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"text": PARSED}, {"response_format": Toll}),
    ({"text": TEXT}, {"web_search_options": {}, "reasoning_effort": "low"}),
    ({"refuses": True}, {}),
    ({"tool_calls": 2}, {"tools": [TOOL]}),
    ({"calls": [{"name": "get_weather", "extra_content": EXTRA}]}, {"tools": [TOOL]}),
    ({}, {"functions": [WEATHER], "function_call": {"name": "get_weather"}}),
)
"""Scripts and options, so that every kind of answer is sent back."""


async def taken_back(client: Client) -> None:
    """The answer of every helper, in every form, is a message of the next request."""
    opened = client.open().chat.completions
    for script, options in CONVERSATIONS:
        asked = question(client, **script) | options
        for message in await answers(opened, asked):
            for form in forms(message):
                history = [
                    *asked["messages"],
                    form,
                    *results(message),
                    *asking(scripted(text=TEXT)),
                ]
                again = await got(opened.create(model=asked["model"], messages=history))
                equal(again.choices[0].message.content, TEXT)


async def answers(opened: Any, asked: dict[str, Any]) -> list[Any]:  # noqa: ANN401 - whatever the SDK has
    parsed = await got(opened.parse(**asked))
    async with entered(opened.stream(**asked)) as events:
        await items(events)
        streamed = await got(events.get_final_completion())
    found = [parsed, streamed]
    if "response_format" not in asked:
        found.append(await got(opened.create(**asked)))
    return [answer.choices[0].message for answer in found]


def results(message: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - whatever the SDK has
    if called := message.function_call:
        return [{"role": "function", "name": called.name, "content": "Rain."}]
    calls = message.tool_calls or ()
    return [{"role": "tool", "tool_call_id": call.id, "content": "Rain."} for call in calls]


async def joined_deltas(client: Client) -> None:
    """A loop without a helper joins what the records have, and sends that back."""
    for script in ({"text": TEXT}, {"refuses": True}):
        asked = question(client, **script)
        opened = client.open().chat.completions
        message: dict[str, Any] = {}
        for chunk in await items(await got(opened.create(**asked, stream=True))):
            for name, piece in chunk.choices[0].delta.to_dict().items():
                message[name] = piece if name == "role" else message.get(name, "") + piece
        history = [*asked["messages"], message, *asking(scripted(text=TEXT))]
        again = await got(opened.create(**asked | {"messages": history}))
        equal(again.choices[0].message.content, TEXT)


async def functions(client: Client) -> None:
    """What came before tools."""
    named = {"functions": [WEATHER], "function_call": {"name": "get_weather"}}
    opened, asked = client.open(), question(client) | named
    answer = await got(opened.chat.completions.create(**asked))
    (choice,) = answer.choices
    equal(choice.finish_reason, "function_call")
    equal(choice.message.function_call.name, "get_weather")
    equal(sorted(json.loads(choice.message.function_call.arguments)), ["city"])

    chunks = await items(await got(opened.chat.completions.create(**asked, stream=True)))
    pieces = [chunk.choices[0].delta.function_call for chunk in chunks]
    arguments = "".join(piece.arguments or "" for piece in pieces if piece)
    equal([piece.name for piece in pieces if piece and piece.name], ["get_weather"])
    equal(arguments, choice.message.function_call.arguments)


async def log_probabilities(client: Client) -> None:
    asked = question(client, text=TEXT) | {"logprobs": True, "top_logprobs": 2}
    opened = client.open()
    answer = await got(opened.chat.completions.create(**asked))
    content = answer.choices[0].logprobs.content
    equal("".join(token.token for token in content), TEXT)
    equal({len(token.top_logprobs) for token in content}, {2})

    chunks = await items(await got(opened.chat.completions.create(**asked, stream=True)))
    told = [chunk.choices[0].logprobs for chunk in chunks if chunk.choices[0].logprobs]
    equal("".join(token.token for part in told for token in part.content), TEXT)


async def refusal(client: Client) -> None:
    answer = await got(client.open().chat.completions.create(**question(client, refuses=True)))

    equal(answer.choices[0].message.content, None)
    holds(bool(answer.choices[0].message.refusal))


async def bounded(client: Client) -> None:
    asked = question(client, text=TEXT) | {"max_completion_tokens": 3}
    answer = await got(client.open().chat.completions.create(**asked))

    equal(answer.choices[0].finish_reason, "length")
    equal(answer.choices[0].message.content, "The toll is")
    usage_is(answer.usage, asked, 3)


CHECKS: dict[str, Check] = {
    "chat.create": create,
    "chat.raw": raw,
    "chat.stream": stream,
    "chat.stream_with_usage": stream_with_usage,
    "chat.stream_of_three": stream_of_three,
    "chat.helper": helper,
    "chat.helper_parse": helper_parse,
    "chat.parse": parse,
    "chat.parse_tool": parse_tool,
    "chat.tools": tools,
    "chat.tools_streamed": tools_streamed,
    "chat.tools_answered": tools_answered,
    "chat.taken_back": taken_back,
    "chat.joined_deltas": joined_deltas,
    "chat.functions": functions,
    "chat.log_probabilities": log_probabilities,
    "chat.refusal": refusal,
    "chat.bounded": bounded,
}
