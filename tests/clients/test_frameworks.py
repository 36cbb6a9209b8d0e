"""Libraries, unmodified, against a live gateway whose engine follows a script."""

import json

import pytest

from tests.clients.framework import drive
from tests.clients.recording import Shows
from tests.clients.sessions import TOO_LONG, cost, sent_to_engine, step
from tests.support.deployment import Deployment
from tests.upstream.scripts import UpstreamScript
from tools import clients

pytestmark = [pytest.mark.clients, pytest.mark.asyncio(loop_scope="module")]

FRAMEWORKS = (
    *("langchain", "llamaindex", "pydantic-ai", "instructor", "openai-agents", "litellm"),
    "vercel-ai",
)
TEXT = "The gate is open and the toll is paid."
WEATHER = {"city": "Paris", "degrees": 21}
CALLED = {"llamaindex": "Weather", "pydantic-ai": "final_result", "instructor": "Weather"}
"""Clients that ask for a structure by a tool of this name; the others send its schema."""


LITELLM_GAP = (
    "specification: messages with unknown members are refused, and LiteLLM sends its answers back"
    " with `provider_specific_fields`. Send `role`, `content` and `tool_calls` of an answer, which"
    " works"
)


@pytest.fixture(scope="module", autouse=True)
def are_prepared() -> None:
    assert all(map(clients.is_prepared, FRAMEWORKS)), "run `make test-clients`"


def structure(client: str) -> UpstreamScript:
    if client in CALLED:
        return step(200, (CALLED[client], WEATHER))
    return step(200, text=json.dumps(WEATHER))


@pytest.mark.parametrize("client", FRAMEWORKS)
async def test_chat(deployment: Deployment, client: str, shows: Shows) -> None:
    shows(client, "chat")
    deployment.upstream.queue(step(100, text=TEXT))

    driven = await drive(deployment, client, "chat")

    assert driven.result == {"text": TEXT}, driven.error
    assert (await deployment.settled(1)).settled_pico_usd == cost(100)


@pytest.mark.parametrize("client", FRAMEWORKS)
async def test_stream(deployment: Deployment, client: str, shows: Shows) -> None:
    shows(client, "stream")
    is_structured = client == "instructor"
    script = structure(client) if is_structured else step(200, text=TEXT)
    deployment.upstream.queue(script)

    driven = await drive(deployment, client, "stream")

    assert driven.result is not None, driven.error
    assert driven.result.pop("pieces") > 1
    assert driven.result == (WEATHER if is_structured else {"text": TEXT})
    assert (await deployment.settled(1)).settled_pico_usd == cost(200)


@pytest.mark.parametrize(
    ("client", "ability", "raised"),
    [
        ("langchain", "chat", "OpenAIContextOverflowError"),
        ("langchain", "stream", "OpenAIContextOverflowError"),
        ("llamaindex", "chat", "openai.BadRequestError"),
        ("llamaindex", "stream", "openai.BadRequestError"),
        ("pydantic-ai", "chat", "ModelContextWindowExceededError"),
        ("pydantic-ai", "stream", "ModelContextWindowExceededError"),
        ("instructor", "chat", "openai.BadRequestError"),
        ("instructor", "stream", "InstructorRetryException"),
        ("openai-agents", "chat", "openai.BadRequestError"),
        ("openai-agents", "stream", "openai.APIError"),
        ("litellm", "chat", "litellm.ContextWindowExceededError"),
        ("litellm", "stream", "litellm.ContextWindowExceededError"),
        ("vercel-ai", "chat", "AI_APICallError"),
        ("vercel-ai", "stream", "AI_APICallError"),
    ],
)
async def test_a_prompt_that_is_too_long(
    deployment: Deployment, client: str, ability: str, raised: str, shows: Shows
) -> None:
    shows(client, "long prompt")
    before = len(deployment.upstream.seen)
    deployment.upstream.queue(TOO_LONG, times=None)

    driven = await drive(deployment, client, ability)

    assert raised in driven.error
    assert "131072 tokens. The prompt has 140031 tokens" in driven.error
    assert len(sent_to_engine(deployment, before)) == 1
    assert (await deployment.settled(1)).settled_pico_usd == 0


@pytest.mark.parametrize("ability", ["tools", "turns"])
async def test_what_litellm_sends_back_is_refused_by_the_specification(
    deployment: Deployment, ability: str
) -> None:
    deployment.upstream.queue(step(100, ("get_weather", {"city": "Paris"})))

    driven = await drive(deployment, "litellm", ability)

    assert driven.result is None
    assert "Unknown parameter: 'messages[1].provider_specific_fields'" in driven.error


@pytest.mark.parametrize("client", [each for each in FRAMEWORKS if each != "instructor"])
async def test_tools(deployment: Deployment, client: str, shows: Shows) -> None:
    shows(client, "tools", gap=LITELLM_GAP if client == "litellm" else None)
    before = len(deployment.upstream.seen)
    deployment.upstream.queue(step(100, ("get_weather", {"city": "Paris"})))
    deployment.upstream.queue(step(120, text="It is sunny."))

    driven = await drive(deployment, client, "tools_plain" if client == "litellm" else "tools")

    assert driven.result == {"text": "It is sunny."}, driven.error
    _, second = sent_to_engine(deployment, before)
    (result,) = [message for message in second["messages"] if message["role"] == "tool"]
    assert "sunny in Paris" in result["content"]
    assert (await deployment.settled(2)).settled_pico_usd == cost(100, 120)


@pytest.mark.parametrize("client", FRAMEWORKS)
async def test_structured_output(deployment: Deployment, client: str, shows: Shows) -> None:
    shows(client, "structured output")
    before = len(deployment.upstream.seen)
    deployment.upstream.queue(structure(client))

    driven = await drive(deployment, client, "structured")

    assert driven.result == WEATHER, driven.error
    (sent,) = sent_to_engine(deployment, before)
    assert ("tools" if client in CALLED else "response_format") in sent
    assert (await deployment.settled(1)).settled_pico_usd == cost(200)


@pytest.mark.parametrize("client", FRAMEWORKS)
async def test_several_turns(deployment: Deployment, client: str, shows: Shows) -> None:
    shows(client, "multi-turn", gap=LITELLM_GAP if client == "litellm" else None)
    before = len(deployment.upstream.seen)
    deployment.upstream.queue(step(100, text="First."))
    deployment.upstream.queue(step(110, text="Second."))

    driven = await drive(deployment, client, "turns_plain" if client == "litellm" else "turns")

    assert driven.result == {"text": "Second."}, driven.error
    _, second = sent_to_engine(deployment, before)
    said = [message for message in second["messages"] if message["role"] == "assistant"]
    assert "First." in json.dumps(said)
    assert (await deployment.settled(2)).settled_pico_usd == cost(100, 110)
