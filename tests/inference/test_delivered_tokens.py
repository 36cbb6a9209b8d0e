"""Through the gateway: the entry of a request says how much of the answer its caller received."""

import json

import pytest

from tests.inference.test_chat import records
from tests.inference.test_reports_by_ending import TEXT, content
from tests.support.deployment import Deployment, chat
from tests.upstream.scripts import Cut, UpstreamScript
from tollhouse.inference.meter import tokens_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/chat/completions"
USAGE = {"prompt_tokens": 7, "completion_tokens": 50}


async def delivered(deployment: Deployment) -> int:
    """The delivered tokens of the only settled request."""
    await deployment.settled(1)
    (row,) = await deployment.org.database.fetch_all(
        "SELECT delivered_tokens FROM ledger_entries WHERE organization_id = $1 AND phase = 1",
        deployment.org.organization_id,
    )
    return row["delivered_tokens"]


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_complete_answer_is_delivered_whole(
    deployment: Deployment, *, is_stream: bool
) -> None:
    deployment.upstream.queue(UpstreamScript(text=TEXT))

    async with deployment.customer() as client:
        answer = await client.post(PATH, json=chat(stream=is_stream))

    assert answer.is_success
    assert await delivered(deployment) == len(TEXT.split()), (
        "the engine reports a token for each word"
    )


async def test_a_stream_that_fails_is_delivered_as_far_as_it_came(deployment: Deployment) -> None:
    error = {"message": "out of memory"}
    deployment.upstream.queue(
        UpstreamScript(text=TEXT, usage=None, error=error, error_after_events=6)
    )

    async with deployment.customer() as client:
        answer = await client.post(PATH, json=chat(stream=True))

    received = content(records(answer.text))
    assert 0 < len(received) < len(TEXT)
    assert await delivered(deployment) == tokens_of(len(received))


async def test_an_answer_that_fails_before_its_first_word_delivers_nothing(
    deployment: Deployment,
) -> None:
    deployment.upstream.queue(UpstreamScript(status=400, body={"error": {"message": "no"}}))

    async with deployment.customer() as client:
        answer = await client.post(PATH, json=chat(stream=True))

    assert not answer.is_success
    assert await delivered(deployment) == 0


async def test_what_comes_after_a_caller_has_left_is_not_delivered(deployment: Deployment) -> None:
    report = f"data: {json.dumps({'choices': [], 'usage': USAGE})}\n\n"
    deployment.upstream.queue(
        UpstreamScript(
            text=TEXT,
            usage=None,
            inserted=report,
            inserted_after_events=1,
            cut=Cut(how="stall", after=6),
        )
    )
    async with (
        deployment.customer() as client,
        client.stream("POST", PATH, json=chat(stream=True)) as answer,
    ):
        async for line in answer.aiter_lines():
            if "two" in line:
                break

    assert 0 < await delivered(deployment) < tokens_of(len(TEXT))
