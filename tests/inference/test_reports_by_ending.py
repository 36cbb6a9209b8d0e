"""Through the gateway: the output that is charged for each form of report, by how a stream ends."""

import json
from typing import Any

import msgspec
import pytest

from tests.inference.test_chat import records
from tests.support.deployment import (
    MODEL,
    TAKES,
    Deployment,
    chat,
    model,
    offering,
    open_deployment,
)
from tests.support.organization_fixture import OrganizationFixture
from tests.support.redis_groups import free_ports
from tests.upstream.scripts import Cut, UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.inference.meter import tokens_of
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/chat/completions"
TEXT = "one two three four five six seven eight nine ten eleven twelve"
BOUND = 200
EVENTS = 6
WORD_CHARACTERS = 40
LARGE = 50
"""More tokens than the text has characters by four, and below the bound."""


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    """A stall that no caller waits for is soon over."""
    return offering(settings, upstream.base_url, idle_seconds=5.0)


def script(report: dict[str, int] | None, *, after: int, **ending: Any) -> UpstreamScript:  # noqa: ANN401 - fields of a script
    """A stream whose only report comes after so many events."""
    usage: dict[str, Any] = {"choices": [], "usage": report}
    inserted = None if report is None else f"data: {json.dumps(usage)}\n\n"
    return UpstreamScript(
        text=TEXT, usage=None, inserted=inserted, inserted_after_events=after, **ending
    )


FORMS: dict[str, tuple[dict[str, int] | None, int | None]] = {
    "missing": (None, None),
    "partial": ({"prompt_tokens": 7}, None),
    "below the count": ({"prompt_tokens": 7, "completion_tokens": 0}, None),
    "above the count": ({"prompt_tokens": 7, "completion_tokens": LARGE}, LARGE),
    "above the bound": ({"prompt_tokens": 7, "completion_tokens": 10 * BOUND}, BOUND),
}
"""Each with the output that is charged, or None for what was counted."""


def content(told: list[Any]) -> str:
    """The text that a caller received."""
    choices = [choice for record in told if "choices" in record for choice in record["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


async def read_and_leave(deployment: Deployment, *, characters: int) -> str:
    """Ask for a stream, leave it after at least so many characters, and return them."""
    received = ""
    asked = chat(stream=True, max_tokens=BOUND)
    async with deployment.customer() as client, client.stream("POST", PATH, json=asked) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                received += content([json.loads(line.removeprefix("data: "))])
            if len(received) >= characters:
                break
    return received


async def charged(deployment: Deployment) -> int:
    """The output tokens of the only settled request."""
    await deployment.settled(1)
    (row,) = await deployment.org.database.fetch_all(
        "SELECT output_tokens FROM ledger_entries WHERE organization_id = $1 AND phase = 1",
        deployment.org.organization_id,
    )
    return row["output_tokens"]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("after", [1, 3])
async def test_a_complete_stream_with_an_early_report(
    deployment: Deployment, name: str, after: int
) -> None:
    report, expected = FORMS[name]
    deployment.upstream.queue(script(report, after=after))
    async with deployment.customer() as client:
        answer = await client.post(PATH, json=chat(stream=True, max_tokens=BOUND))

    assert content(records(answer.text)[:-1]) == TEXT
    assert await charged(deployment) == (expected or tokens_of(len(TEXT)))


@pytest.mark.parametrize("name", FORMS)
async def test_a_stream_that_fails_after_a_report(deployment: Deployment, name: str) -> None:
    report, expected = FORMS[name]
    failing = {"error": {"message": "out of memory"}, "error_after_events": EVENTS}
    deployment.upstream.queue(script(report, after=1, **failing))
    async with deployment.customer() as client:
        answer = await client.post(PATH, json=chat(stream=True, max_tokens=BOUND))

    told = records(answer.text)
    assert told[-1]["error"]["code"] == "backend_error"
    received = content(told)
    assert 0 < len(received) < len(TEXT)
    assert await charged(deployment) == (expected or tokens_of(len(received)))


@pytest.mark.parametrize("name", [name for name in FORMS if name != "missing"])
async def test_a_caller_who_leaves_after_a_report(deployment: Deployment, name: str) -> None:
    """Without any report the gateway reads on to the end of the answer, as if it were complete."""
    report, expected = FORMS[name]
    deployment.upstream.queue(script(report, after=1, cut=Cut(how="stall", after=EVENTS)))
    received = await read_and_leave(deployment, characters=len("one two three"))

    output_tokens = await charged(deployment)
    if expected is None:
        assert tokens_of(len(received)) <= output_tokens <= tokens_of(len(TEXT))
    else:
        assert output_tokens == expected


async def test_a_caller_who_leaves_pays_by_the_count_that_came_with_the_text(
    deployment: Deployment,
) -> None:
    """Its words are longer than four characters, so that the gateway would count more."""
    long_words = UpstreamScript(
        tokens=LARGE, word_characters=WORD_CHARACTERS, cut=Cut(how="stall", after=EVENTS)
    )
    deployment.upstream.queue(long_words)
    received = await read_and_leave(deployment, characters=2 * WORD_CHARACTERS)

    output_tokens = await charged(deployment)
    assert len(received) // WORD_CHARACTERS <= output_tokens <= EVENTS
    assert output_tokens < tokens_of(len(received))


@pytest.mark.parametrize(("of_model", "of_fallback"), [(TAKES, []), ([], TAKES)])
async def test_a_fallback_is_believed_by_what_its_own_backend_takes(
    settings: Settings,
    upstream: ScriptedUpstream,
    org: OrganizationFixture,
    of_model: list[str],
    of_fallback: list[str],
) -> None:
    (closed_port,) = free_ports(1)
    nothing: dict[str, list[str]] = {"features": [], "sampling_parameters": []}
    offered = msgspec.structs.replace(
        settings,
        backends={
            "down": {"replicas": [f"http://127.0.0.1:{closed_port}/v1"], "takes": of_model},
            "spare": {"replicas": [upstream.base_url], "takes": of_fallback},
        },
        models={
            MODEL: model(backend="down", fallbacks=["example/spare"], **nothing),
            "example/spare": model(backend="spare", **nothing),
        },
    )
    reported = {"prompt_tokens": 7, "completion_tokens": EVENTS}
    usage = json.dumps({"choices": [], "usage": reported})
    upstream.queue(
        UpstreamScript(
            tokens=LARGE,
            word_characters=WORD_CHARACTERS,
            usage=None,
            inserted=f"data: {usage}\n\n",
            inserted_after_events=EVENTS,
            error={"message": "out of memory"},
            error_after_events=EVENTS,
        )
    )
    async with open_deployment(offered, upstream, org) as deployment:
        async with deployment.customer() as client:
            answer = await client.post(PATH, json=chat(stream=True, max_tokens=BOUND))
        output_tokens = await charged(deployment)

    counted = tokens_of(len(content(records(answer.text))))
    assert counted > EVENTS
    assert output_tokens == (EVENTS if of_fallback else counted)
