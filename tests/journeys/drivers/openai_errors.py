"""What OpenAI's SDK makes of every status, on both surfaces, and how often it asks again."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from tests.journeys.drivers.checking import (
    Check,
    Client,
    asking,
    equal,
    got,
    holds,
    items,
    scripted,
)

INVALID = "invalid_request_error"
SERVER = "server_error"
STALL = {"how": "stall", "after": "request"}
RETRY_AFTER_SECONDS_MAX = 60


@dataclass(frozen=True, kw_only=True)
class Case:
    """A request that fails. Of `retries` that the SDK may make it makes as many as it should.

    `is_second`: one like it may be served before.
    """

    status: int
    raised: str
    code: str
    type: str = INVALID
    param: str | None = None
    content: str = "Hi"
    model: str = "model"
    key: str = "sound"
    base_url: str = "base_url"
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    retries: int = 2
    requests: int | None = 1
    waits: bool = False
    is_second: bool = False


def named(client: Client, value: object) -> Any:  # noqa: ANN401 - of the same type
    """Values that only the stage knows are named with a leading `$`."""
    match value:
        case str() if value.startswith("$"):
            return client.stage[value[1:]]
        case list():
            return [named(client, part) for part in cast("list[Any]", value)]
        case dict():
            members = cast("dict[str, Any]", value)
            return {name: named(client, member) for name, member in members.items()}
        case _:
            return value


CASES = (
    Case(
        status=400,
        raised="BadRequestError",
        code="unknown_parameter",
        param="wish",
        options={"extra_body": {"wish": 1}},
    ),
    Case(status=401, raised="AuthenticationError", code="invalid_api_key", key="unknown"),
    Case(
        status=402,
        raised="APIStatusError",
        code="credit_balance_exhausted",
        type="insufficient_quota",
        key="poor",
    ),
    Case(status=403, raised="PermissionDeniedError", code="insufficient_permissions", key="reader"),
    Case(
        status=404,
        raised="NotFoundError",
        code="model_not_found",
        param="model",
        model="unknown_model",
    ),
    Case(status=413, raised="APIStatusError", code="request_too_large", content="x" * 100_000),
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
        status=429,
        raised="RateLimitError",
        code="rate_limit_exceeded",
        type="rate_limit_error",
        key="exhausted",
        retries=0,
        requests=None,
        waits=True,
        is_second=True,
    ),
    Case(
        status=500,
        raised="InternalServerError",
        code="server_error",
        type=SERVER,
        base_url="broken_base_url",
        key="broken",
        options={"extra_body": {"policy_ids": ["$paused_policy"]}},
        retries=1,
        requests=2,
    ),
    Case(
        status=501,
        raised="InternalServerError",
        code="unsupported_parameter",
        param="temperature",
        model="plain_model",
        options={"temperature": 0.5},
    ),
    Case(
        status=502,
        raised="InternalServerError",
        code="backend_error",
        type=SERVER,
        content=scripted(status=500),
        retries=1,
        requests=2,
    ),
    Case(
        status=503,
        raised="InternalServerError",
        code="server_is_overloaded",
        type="service_unavailable_error",
        content=scripted(status=429),
        retries=1,
        requests=2,
        waits=True,
    ),
    Case(
        status=504,
        raised="InternalServerError",
        code="deadline_exceeded",
        type=SERVER,
        model="hasty_model",
        content=scripted(cut=STALL),
    ),
)


TOO_LONG = Case(
    status=400,
    raised="BadRequestError",
    code="context_length_exceeded",
    content=scripted(
        status=400,
        body={"error": {"message": "prompt is too long: 4031 tokens > 2048 maximum"}},
    ),
)


async def chat(client: Client, opened: Any, case: Case, **options: object) -> Any:  # noqa: ANN401 - whatever the SDK has
    asked = {"model": client.stage[case.model], "messages": asking(case.content)}
    return await got(opened.chat.completions.create(**asked, **options))


async def response(client: Client, opened: Any, case: Case, **options: object) -> Any:  # noqa: ANN401 - whatever the SDK has
    asked = {"model": client.stage[case.model], "input": case.content}
    return await got(opened.responses.create(**asked, **options))


Surface = Callable[..., Any]
SURFACES: dict[str, Surface] = {"chat": chat, "responses": response}


def fails(case: Case, endpoint: Surface, *, is_stream: bool) -> Check:
    """Streams are refused before the first byte; waiting for retries is proved without them."""

    async def check(client: Client) -> None:
        retries = 0 if is_stream else case.retries
        opened = client.open(
            max_retries=retries,
            api_key=client.stage["keys"][case.key],
            base_url=client.stage[case.base_url] + "/v1",
        )
        options = named(client, case.options) | {"stream": is_stream}
        if case.is_second:
            with contextlib.suppress(client.sdk.APIStatusError):
                await endpoint(client, opened, case, **options)
        try:
            await endpoint(client, opened, case, **options)
        except client.sdk.APIStatusError as error:
            verify(error, case)
        else:
            raise AssertionError("nothing was raised")
        client.requests = case.requests and (1 if is_stream else case.requests)

    return check


def verify(raised: Any, case: Case) -> None:  # noqa: ANN401 - whatever the SDK has
    equal((type(raised).__name__, raised.status_code), (case.raised, case.status))
    equal((raised.code, raised.type, raised.param), (case.code, case.type, case.param))
    equal(raised.request_id, raised.response.headers["x-request-id"])
    equal(raised.request_id, raised.body["request_id"])
    equal(str(UUID(raised.request_id)), raised.request_id)
    if case.waits:
        wait_seconds = int(raised.response.headers["retry-after"])
        holds(1 <= wait_seconds <= RETRY_AFTER_SECONDS_MAX)


async def raised_by(client: Client, stream: Any) -> Any:  # noqa: ANN401 - whatever the SDK has
    """Read a stream to the error that it ends with, which has no status."""
    try:
        await items(stream)
    except client.sdk.APIError as error:
        raised = error
    else:
        raise AssertionError("nothing was raised")
    holds(not isinstance(raised, client.sdk.APIStatusError))
    equal(raised.body["request_id"], stream.response.headers["x-request-id"])
    client.requests = 1
    return raised


async def breaks_mid_stream(client: Client) -> None:
    script = scripted(error={"message": "out of memory"}, error_after_events=3)
    opened, asked = client.open(max_retries=2), asking(script)
    stream = await got(
        opened.chat.completions.create(model=client.stage["model"], messages=asked, stream=True)
    )
    raised = await raised_by(client, stream)
    equal((raised.code, raised.type, raised.param), ("backend_error", SERVER, None))


async def too_long_for_a_stream(client: Client) -> None:
    stream = await response(client, client.open(max_retries=2), TOO_LONG, stream=True)
    raised = await raised_by(client, stream)
    equal((raised.code, raised.type, raised.param), (TOO_LONG.code, INVALID, None))
    holds("4031" in raised.message and "2048" in raised.message)


async def unknown_model(client: Client) -> None:
    try:
        await got(client.open(max_retries=2).models.retrieve(client.stage["unknown_model"]))
    except client.sdk.NotFoundError as error:
        equal((error.code, error.type), ("model_not_found", INVALID))
        equal(error.request_id, error.body["request_id"])
    else:
        raise AssertionError("nothing was raised")
    client.requests = 1


CHECKS: dict[str, Check] = {
    f"{name}.{'stream.' if is_stream else ''}{case.status}": fails(
        case, endpoint, is_stream=is_stream
    )
    for name, endpoint in SURFACES.items()
    for is_stream in (False, True)
    for case in CASES
} | {
    "chat.breaks_mid_stream": breaks_mid_stream,
    "chat.too_long": fails(TOO_LONG, chat, is_stream=False),
    "chat.stream.too_long": fails(TOO_LONG, chat, is_stream=True),
    "responses.too_long": fails(TOO_LONG, response, is_stream=False),
    "responses.stream.too_long": too_long_for_a_stream,
    "models.404": unknown_model,
}
