"""Checks of Anthropic's SDK for Python that generate: create, stream, the stream helper, tools."""

from typing import Any

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

COMPAT = "/compat/anthropic"
TEXT = "Say ten words."
TOOL: dict[str, Any] = {
    "name": "get_weather",
    "description": "Look up the weather for a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def opened(client: Client, **options: object) -> Any:  # noqa: ANN401 - whatever the SDK has
    return client.open(base_url=client.stage["base_url"] + COMPAT, **options).messages


def asked(client: Client, content: str = TEXT, **fields: object) -> dict[str, Any]:
    question = {"model": client.stage["model"], "messages": asking(content), "max_tokens": 64}
    return question | fields


async def models(client: Client) -> None:
    opened_models = client.open(base_url=client.stage["base_url"] + COMPAT).models
    listed = await items(await got(opened_models.list(limit=1)))
    read = await got(opened_models.retrieve(client.stage["model"]))

    equal({model.id for model in listed}, set(client.stage["models"]))
    equal((read.id, read.type), (client.stage["model"], "model"))
    equal(int(read.created_at.timestamp()), client.stage["created"])
    try:
        await got(opened_models.retrieve(client.stage["unknown_model"]))
    except client.sdk.NotFoundError as error:
        equal(error.body["error"]["type"], "not_found_error")
    else:
        raise AssertionError("an unknown model was read")


async def create(client: Client) -> None:
    message = await got(opened(client).create(**asked(client, system="Be brief.")))

    equal((message.type, message.role, message.stop_reason), ("message", "assistant", "end_turn"))
    equal([block.type for block in message.content], ["text"])
    holds(message.content[0].text)
    equal(message.usage.input_tokens, prompt_tokens("Be brief.") + prompt_tokens(TEXT))
    holds(message.usage.output_tokens > 0)
    holds(message._request_id)  # noqa: SLF001 - where the SDK keeps it


async def create_bounded(client: Client) -> None:
    message = await got(opened(client).create(**asked(client, max_tokens=3)))

    equal((message.stop_reason, message.usage.output_tokens), ("max_tokens", 3))


async def create_cached(client: Client) -> None:
    message = await got(opened(client).create(**asked(client, scripted(cached_tokens=2))))

    equal(message.usage.cache_read_input_tokens, 2)
    equal(message.usage.cache_creation_input_tokens, 0)


async def bearer(client: Client) -> None:
    """`ANTHROPIC_AUTH_TOKEN` is sent in the other header."""
    key = client.stage["keys"]["sound"]
    message = await got(opened(client, api_key=None, auth_token=key).create(**asked(client)))

    holds(message.content[0].text)


async def stream(client: Client) -> None:
    events = await items(await got(opened(client).create(**asked(client), stream=True)))

    equal((events[0].type, events[-1].type), ("message_start", "message_stop"))
    texts = [event.delta.text for event in events if event.type == "content_block_delta"]
    holds(len(texts) > 1)
    equal(events[-2].usage.input_tokens, prompt_tokens(TEXT))


async def stream_helper(client: Client) -> None:
    async with entered(opened(client).stream(**asked(client))) as open_stream:
        text = "".join(await items(open_stream.text_stream))
        message = await got(open_stream.get_final_message())

    equal(text, message.content[0].text)
    equal(message.usage.input_tokens, prompt_tokens(TEXT))
    equal(message.stop_reason, "end_turn")


async def thinking(client: Client) -> None:
    question = asked(client, thinking={"type": "enabled", "budget_tokens": 20})
    async with entered(opened(client).stream(**question)) as open_stream:
        message = await got(open_stream.get_final_message())

    equal([block.type for block in message.content], ["thinking", "text"])
    holds(message.content[0].thinking)


async def tools(client: Client) -> None:
    """A call, streamed and whole, and the turn that sends its result back."""
    forced = {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "get_weather"}}
    async with entered(opened(client).stream(**asked(client), **forced)) as open_stream:
        streamed = await got(open_stream.get_final_message())
    whole = await got(opened(client).create(**asked(client), **forced))
    for message in (streamed, whole):
        equal((message.stop_reason, message.content[0].type), ("tool_use", "tool_use"))
        equal(list(message.content[0].input), ["city"])
    call = whole.content[0]
    history = [
        *asking(TEXT),
        {"role": "assistant", "content": whole.content},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "Rain."}],
        },
    ]
    answer = await got(opened(client).create(**asked(client) | {"messages": history}, tools=[TOOL]))

    equal(answer.content[0].type, "text")


async def taken_back(client: Client) -> None:
    """The blocks of an answer, whole and by the helper, are the next request's in every form."""
    call = {"name": "get_weather", "extra_content": {"google": {"thought_signature": "c2ln"}}}
    for script, fields in (
        ({"text": TEXT}, {"thinking": {"type": "enabled", "budget_tokens": 20}}),
        ({"refuses": True}, {}),
        ({"calls": [call, call]}, {"tools": [TOOL]}),
    ):
        question = asked(client, scripted(**script), **fields)
        async with entered(opened(client).stream(**question)) as open_stream:
            streamed = await got(open_stream.get_final_message())
        for message in (streamed, await got(opened(client).create(**question))):
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": "Rain."}
                for block in message.content
                if block.type == "tool_use"
            ]
            last = [*results, {"type": "text", "text": scripted(text=TEXT)}]
            for said in zip(*map(forms, message.content), strict=True):
                answer = {"role": "assistant", "content": list(said)}
                turns = [*question["messages"], answer, {"role": "user", "content": last}]
                again = await got(opened(client).create(**question | {"messages": turns}))
                equal(again.content[-1].text, TEXT)


async def counted(client: Client) -> None:
    question = {"model": client.stage["model"], "messages": asking(TEXT)}
    found = await got(opened(client).count_tokens(**question))

    equal(found.input_tokens, prompt_tokens(TEXT))


async def broken_off(client: Client) -> None:
    """An engine that fails after its first words ends the stream with an error."""
    question = asked(client, scripted(error={"message": "m"}, error_after_events=3), stream=True)
    try:
        await items(await got(opened(client).create(**question)))
    except client.sdk.APIStatusError as error:
        equal(error.body["error"]["type"], "api_error")
        equal(error.body["error"]["code"], "backend_error")
    else:
        raise AssertionError("nothing was raised")


def refused(status: int, type_: str, **changed: str) -> Check:
    async def check(client: Client) -> None:
        key = client.stage["keys"][changed.get("key", "sound")]
        model = client.stage[changed.get("model", "model")]
        try:
            await got(opened(client, api_key=key).create(**asked(client) | {"model": model}))
        except client.sdk.APIStatusError as error:
            equal((error.status_code, error.body["error"]["type"]), (status, type_))
            equal(error.body["request_id"], error.response.headers["request-id"])
        else:
            raise AssertionError("nothing was raised")
        client.requests = 1

    return check


def too_long(*, is_stream: bool) -> Check:
    """The engine's own words differ from those that clients of this dialect look for."""
    script = {"error": {"message": "request (9031 tokens) exceeds the available context size"}}

    async def check(client: Client) -> None:
        question = asked(client, scripted(status=400, body=script), stream=is_stream)
        try:
            await got(opened(client, max_retries=2).create(**question))
        except client.sdk.BadRequestError as error:
            equal(error.status_code, 400)
            equal(error.body["error"]["type"], "invalid_request_error")
            equal(error.body["error"]["code"], "context_length_exceeded")
            words = "prompt is too long: 9031 tokens > 8192 maximum"
            equal(error.body["error"]["message"], words)
        else:
            raise AssertionError("nothing was raised")
        client.requests = 1

    return check


CHECKS: dict[str, Check] = {
    "models": models,
    "messages": create,
    "messages.bounded": create_bounded,
    "messages.cached": create_cached,
    "messages.bearer": bearer,
    "messages.stream": stream,
    "messages.stream_helper": stream_helper,
    "messages.thinking": thinking,
    "messages.tools": tools,
    "messages.taken_back": taken_back,
    "messages.count_tokens": counted,
    "messages.broken_off": broken_off,
    "messages.too_long": too_long(is_stream=False),
    "messages.stream.too_long": too_long(is_stream=True),
    "messages.401": refused(401, "authentication_error", key="unknown"),
    "messages.403": refused(403, "permission_error", key="reader"),
    "messages.404": refused(404, "not_found_error", model="unknown_model"),
}
