"""Every check of Anthropic's SDK for Python: messages, counting, and each status there."""

import contextlib
import importlib
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tests.journeys.drivers import anthropic_messages
from tests.journeys.drivers.checking import (
    Check,
    Client,
    asking,
    equal,
    got,
    holds,
    main,
    prompt_tokens,
    scripted,
)

SDK: Any = importlib.import_module("anthropic")
IS_RENAMED = SDK.__version__.startswith("2.")
"""Since 2.0 every status has a class of its own."""
TEXT = "How much is the toll for two carts?"
FLAG = "token-counting-2024-11-01"
INVALID = "invalid_request_error"
TOOL: dict[str, Any] = {
    "name": "get_weather",
    "description": "Look up the weather for a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Here"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Rain."}


def opened(client: Client, options: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the SDK has
    kind = SDK.Anthropic if client.mode == "sync" else SDK.AsyncAnthropic
    settings: dict[str, Any] = {
        "api_key": client.stage["keys"]["sound"],
        "base_url": client.stage["base_url"],
        "max_retries": 0,
        "default_headers": {"X-Client-Request-Id": client.label},
        "_strict_response_validation": True,
    }
    return kind(**settings | options)


def clients(stage: dict[str, Any]) -> list[Client]:
    return [Client(SDK, mode, stage, opened) for mode in ("sync", "async")]


async def count(client: Client) -> None:
    asked = {"model": client.stage["model"], "messages": asking(TEXT)}
    counted = await got(client.open().messages.count_tokens(**asked))

    equal(counted.input_tokens, prompt_tokens(TEXT))
    equal(str(UUID(counted._request_id)), counted._request_id)  # noqa: SLF001 - where the SDK keeps it


async def count_all_fields(client: Client) -> None:
    """The upstream counts the texts, so the conversation with a tool is as long as these."""
    counted = await got(
        client.open().messages.count_tokens(
            model=client.stage["model"],
            system="Be brief.",
            messages=[
                *asking(TEXT),
                {"role": "assistant", "content": [CALL]},
                {"role": "user", "content": [RESULT]},
            ],
            tools=[TOOL, {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}],
            tool_choice={"type": "auto"},
            thinking={"type": "enabled", "budget_tokens": 1024},
        )
    )

    equal(counted.input_tokens, prompt_tokens("Be brief.") + prompt_tokens(TEXT) + 2)


async def count_beta(client: Client) -> None:
    """The SDK names the flag a second time by itself."""
    asked = {"model": client.stage["model"], "messages": asking(TEXT)}
    counter = client.open().beta.messages
    for betas in ({}, {"betas": [FLAG]}):
        counted = await got(counter.count_tokens(**asked, **betas))
        equal(counted.input_tokens, prompt_tokens(TEXT))


async def count_raw(client: Client) -> None:
    bounded = client.open(api_key=client.stage["keys"]["bounded"])
    answer = await got(
        bounded.messages.with_raw_response.count_tokens(
            model=client.stage["model"], messages=asking(TEXT)
        )
    )

    equal(answer.headers["request-id"], answer.headers["x-request-id"])
    holds("x-tollhouse-estimated" not in answer.headers)
    limit = answer.headers["x-ratelimit-limit-requests"]
    equal(limit, str(client.stage["requests_per_minute"]))


async def count_by_guess(client: Client) -> None:
    """An engine that cannot be asked is no failure of counting."""
    for model, content in (
        ("model", scripted(status=500)),
        ("model", scripted(status=429)),
        ("plain_model", scripted(cut={"how": "close", "after": "request"})),
        ("hasty_model", TEXT),
    ):
        asked = {"model": client.stage[model], "messages": asking(content)}
        counted = await got(client.open().messages.count_tokens(**asked))
        holds(counted.input_tokens > 0)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A request that fails. The SDK may ask again twice, and should not."""

    status: int
    raised: str
    code: str
    type: str = INVALID
    param: str | None = None
    content: str = TEXT
    model: str = "model"
    key: str = "sound"
    options: dict[str, Any] = field(default_factory=dict[str, Any])


LIMITED = Case(
    status=429,
    raised="RateLimitError",
    code="rate_limit_exceeded",
    type="rate_limit_error",
    key="narrow",
)
CASES = (
    Case(
        status=400,
        raised="BadRequestError",
        code="invalid_value",
        param="anthropic-version",
        options={"extra_headers": {"anthropic-version": "2020-01-01"}},
    ),
    Case(
        status=401,
        raised="AuthenticationError",
        code="invalid_api_key",
        type="authentication_error",
        key="unknown",
    ),
    Case(
        status=403,
        raised="PermissionDeniedError",
        code="insufficient_permissions",
        type="permission_error",
        key="reader",
    ),
    Case(
        status=404,
        raised="NotFoundError",
        code="model_not_found",
        type="not_found_error",
        param="model",
        model="unknown_model",
    ),
    Case(
        status=413,
        raised="ContentTooLargeError" if IS_RENAMED else "RequestTooLargeError",
        code="request_too_large",
        type="request_too_large",
        content="x" * 100_000,
    ),
    Case(
        status=415,
        raised="APIStatusError",
        code="unsupported_media_type",
        options={"extra_headers": {"Content-Type": "text/plain"}},
    ),
    Case(
        status=422,
        raised="UnprocessableEntityError",
        code="provider_validation_failed",
        content=scripted(status=400),
    ),
    Case(
        status=501,
        raised="HTTPNotImplementedError" if IS_RENAMED else "InternalServerError",
        code="unsupported_parameter",
        param="tools[0].type",
        options={"tools": [{"type": "bash_20250124", "name": "bash"}]},
    ),
)


def fails(case: Case, *, retries: int = 2) -> Check:
    async def check(client: Client) -> None:
        key = client.stage["keys"][case.key]
        messages = client.open(api_key=key, max_retries=retries).messages
        asked = {"model": client.stage[case.model], "messages": asking(case.content)}
        try:
            await got(messages.count_tokens(**asked, **case.options))
        except client.sdk.APIStatusError as error:
            verify(error, case, client.mode)
        else:
            raise AssertionError("nothing was raised")
        client.requests = 1

    return check


def verify(raised: Any, case: Case, mode: str) -> None:  # noqa: ANN401 - whatever the SDK has
    is_forgotten = case.status == 413 and mode == "async" and SDK.__version__ == "0.72.0"
    name = "APIStatusError" if is_forgotten else case.raised
    equal((type(raised).__name__, raised.status_code), (name, case.status))
    equal(raised.request_id, raised.response.headers["request-id"])
    equal(raised.body["type"], "error")
    equal(raised.body["request_id"], raised.request_id)
    error = raised.body["error"]
    equal((error["code"], error["type"], error["param"]), (case.code, case.type, case.param))
    equal(error["request_id"], raised.request_id)


async def limited(client: Client) -> None:
    """Of two within a minute one is refused; a client that waits for it would wait for a minute."""
    key = client.stage["keys"][LIMITED.key]
    asked = {"model": client.stage["model"], "messages": asking(TEXT)}
    with contextlib.suppress(client.sdk.RateLimitError):
        await got(client.open(api_key=key).messages.count_tokens(**asked))
    await fails(LIMITED, retries=0)(client)
    client.requests = 2


CHECKS: dict[str, Check] = {
    "count_tokens": count,
    "count_tokens.all_fields": count_all_fields,
    "count_tokens.beta": count_beta,
    "count_tokens.raw": count_raw,
    "count_tokens.by_guess": count_by_guess,
    **{f"count_tokens.{case.status}": fails(case) for case in CASES},
    "count_tokens.429": limited,
    **anthropic_messages.CHECKS,
}

if __name__ == "__main__":
    main(CHECKS, clients)
