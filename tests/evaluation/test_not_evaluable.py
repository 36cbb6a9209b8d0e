"""Content that no judge can evaluate: the caller's fault in a request, not in an answer."""

from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.identity.waiting import until
from tests.support.deployment import MODEL, model, offering
from tests.support.judged_deployment import (
    BODIES,
    CHAT,
    MESSAGES,
    RESPONSES,
    JudgedDeployment,
    OpenJudged,
)
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.policies import Direction, Mode
from tollhouse.decisions.recorder import NOT_EVALUABLE_REASONS
from tollhouse.evaluation.types import FailureReason
from tollhouse.observability import registry
from tollhouse.policies.types import PolicyScope
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

COUNT_TOKENS = "/v1/messages/count_tokens"
MANAGE = "/manage/v1/organization/policies"
PIXELS = "iVBORw0KGgo="
PICTURE = f"data:image/png;base64,{PIXELS}"
PDF = "data:application/pdf;base64,JVBERi0="
TEXT = {"type": "text", "text": "What is this?"}
CHAT_PARTS: dict[str, dict[str, Any]] = {
    "image": {"type": "image_url", "image_url": {"url": PICTURE}},
    "sound": {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    "video": {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}},
    "file": {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}},
}
RESPONSE_PARTS: dict[str, dict[str, Any]] = {
    "image": {"type": "input_image", "image_url": PICTURE},
    "file": {"type": "input_file", "file_data": PDF, "filename": "a.pdf"},
}
MESSAGE_PARTS: dict[str, dict[str, Any]] = {
    "image": {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PIXELS},
    },
    "file": {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
    },
}
PARTS = {CHAT: CHAT_PARTS, RESPONSES: RESPONSE_PARTS, MESSAGES: MESSAGE_PARTS}
REQUESTS = [
    *((CHAT, part, "messages[0].content[1]") for part in CHAT_PARTS.values()),
    *((RESPONSES, part, "input[0].content[1]") for part in RESPONSE_PARTS.values()),
    *((MESSAGES, part, "messages[0].content[1]") for part in MESSAGE_PARTS.values()),
]
PATHS = pytest.mark.parametrize("path", [*BODIES])
STREAMS = pytest.mark.parametrize("is_stream", [False, True])


@pytest_asyncio.fixture(loop_scope="module")
async def judged(
    open_judged: OpenJudged, settings: Settings, upstream: ScriptedUpstream
) -> JudgedDeployment:
    """A model that takes every modality, and a judge with a small budget."""
    modalities = ["text", "image", "file", "audio", "video"]
    models = {MODEL: model(input_modalities=modalities, image_tokens=100)}
    offered = offering(settings, upstream.base_url, models=models)
    bounds = {"context_length": 5_000, "question_tokens_max": 500, "request_tokens_max": 5_000}
    return await open_judged(offered, **bounds)


def asking(path: str, *parts: dict[str, Any], **fields: object) -> dict[str, Any]:
    text = {"type": "input_text", "text": TEXT["text"]} if path == RESPONSES else TEXT
    messages = [{"role": "user", "content": [text, *parts]}]
    return BODIES[path]("") | {"input" if path == RESPONSES else "messages": messages} | fields


async def assert_refused_as_the_callers(
    judged: JudgedDeployment, answer: httpx2.Response
) -> dict[str, Any]:
    """403 without a retry; judge and backend receive nothing, and nothing is held or charged."""
    assert answer.status_code == 403, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert (error["type"], error["code"]) == ("policy_error", "policy_not_evaluable")
    assert answer.headers["x-should-retry"] == "false"
    assert "retry-after" not in answer.headers
    assert judged.judge.received == []
    credit = await judged.deployment.settled(1)
    assert (credit.settled_pico_usd, credit.reserved_pico_usd) == (0, 0)
    record = await judged.deployment.record(answer.headers["x-request-id"])
    assert (record["status"], record["error_code"]) == (403, "policy_not_evaluable")
    assert record["failed_by"] == "caller"
    return error


def counted(outcome: str, mode: str = "enforcing", direction: str = "request") -> float:
    labels = f'{{direction="{direction}",mode="{mode}",outcome="{outcome}"}}'
    name = "tollhouse_policy_decisions_total" + labels
    lines = registry.exposition(None).decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


async def decisions_of(judged: JudgedDeployment, policy_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    async def is_there() -> bool:
        async with judged.deployment.administrator() as client:
            found[:] = (await client.get(f"{MANAGE}/{policy_id}/decisions")).json()["data"]
        return bool(found)

    await until(is_there)
    return found


@pytest.mark.parametrize("is_too_long", [False, True])
async def test_the_record_names_the_policy_that_the_message_does_not(
    judged: JudgedDeployment, *, is_too_long: bool
) -> None:
    policy_id = await judged.forbid("bread", direction=Direction.REQUEST)
    media = next(iter(CHAT_PARTS.values()))
    part = {"type": "text", "text": "word " * 40_000} if is_too_long else media

    answer = await judged.send(CHAT, asking(CHAT, part))
    await decisions_of(judged, policy_id)
    record = await judged.deployment.record(answer.headers["x-request-id"])

    assert answer.json()["error"]["code"] == "policy_not_evaluable"
    assert policy_id not in answer.text
    blocked_by = [(each["id"], each["outcome"]) for each in record["blocked_by"]]
    assert blocked_by == [(policy_id, "failed")]


@pytest.mark.parametrize(("path", "part", "param"), REQUESTS)
@STREAMS
async def test_media_in_a_request_are_the_callers_to_leave_out(
    judged: JudgedDeployment, path: str, part: dict[str, Any], param: str, *, is_stream: bool
) -> None:
    await judged.forbid("bread", direction=Direction.REQUEST)
    asked = judged.asked_of_backend

    answer = await judged.send(path, asking(path, part, stream=is_stream))

    error = await assert_refused_as_the_callers(judged, answer)
    assert error["param"] == param
    assert "Leave out what is not text" in error["message"]
    assert judged.asked_of_backend == asked


@PATHS
@STREAMS
async def test_a_request_longer_than_the_judges_budget_is_the_callers_to_shorten(
    judged: JudgedDeployment, path: str, *, is_stream: bool
) -> None:
    await judged.forbid("bread", direction=Direction.REQUEST)
    asked = judged.asked_of_backend

    answer = await judged.send(path, BODIES[path]("many words " * 2_500, stream=is_stream))

    error = await assert_refused_as_the_callers(judged, answer)
    assert "Shorten it" in error["message"]
    assert judged.asked_of_backend == asked


@PATHS
async def test_a_policy_that_the_request_selects_refuses_media_too(
    judged: JudgedDeployment, path: str
) -> None:
    added = await judged.forbid("bread", scope=PolicyScope.UNATTACHED, direction=Direction.REQUEST)
    part = PARTS[path]["image"]

    answer = await judged.send(path, asking(path, part, policy_ids=[added]))

    await assert_refused_as_the_callers(judged, answer)


async def test_the_same_request_without_media_is_served(judged: JudgedDeployment) -> None:
    await judged.forbid("bread", direction=Direction.REQUEST)

    assert (await judged.send(CHAT, asking(CHAT))).status_code == 200


async def test_the_text_beside_media_is_not_judged_alone(
    judged: JudgedDeployment,
) -> None:
    """A verdict on a part of the request would say nothing about the rest."""
    await judged.forbid("this", direction=Direction.REQUEST)

    answer = await judged.send(CHAT, asking(CHAT, CHAT_PARTS["image"]))

    await assert_refused_as_the_callers(judged, answer)


async def test_monitoring_lets_media_pass_and_records_that_there_is_no_verdict(
    judged: JudgedDeployment,
) -> None:
    monitoring_id = await judged.forbid("bread", mode=Mode.MONITORING, direction=Direction.REQUEST)

    answer = await judged.send(CHAT, asking(CHAT, CHAT_PARTS["image"]))

    assert answer.status_code == 200, answer.text
    (decision,) = await decisions_of(judged, monitoring_id)
    assert (decision["outcome"], decision["reason"]) == ("failed", "not_evaluable")


async def test_records_and_metrics_tell_content_from_a_judge_that_fails(
    judged: JudgedDeployment,
) -> None:
    policy_id = await judged.forbid("bread", direction=Direction.REQUEST)
    before = counted("not_evaluable"), counted("failed")

    await judged.send(CHAT, asking(CHAT, CHAT_PARTS["image"]))
    await judged.send(CHAT, BODIES[CHAT]("many words " * 2_500))

    assert (counted("not_evaluable"), counted("failed")) == (before[0] + 2, before[1])
    found: set[tuple[str, str, str]] = set()

    async def are_there() -> bool:
        found.update(
            (each["outcome"], each["reason"], each["action"])
            for each in await decisions_of(judged, policy_id)
        )
        return len(found) == len(NOT_EVALUABLE_REASONS)

    await until(are_there)
    assert found == {("failed", reason, "blocked") for reason in NOT_EVALUABLE_REASONS}
    assert {
        FailureReason.NOT_EVALUABLE,
        FailureReason.OVER_BUDGET,
    } == NOT_EVALUABLE_REASONS


@PATHS
async def test_an_answer_that_no_judge_can_evaluate_is_not_the_callers_fault(
    judged: JudgedDeployment, path: str
) -> None:
    await judged.forbid("bread", direction=Direction.RESPONSE)
    message = {"role": "assistant", "content": [TEXT, CHAT_PARTS["image"]]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    judged.answers("", body={"choices": [choice]})

    answer = await judged.send(path, BODIES[path]("Draw something."))

    assert answer.status_code == 503, answer.text
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("policy_error", "policy_evaluator_unavailable")
    assert error["param"] is None
    assert "answer" in error["message"]
    assert answer.headers["x-should-retry"] == "false"
    assert PIXELS not in answer.text
    assert (await judged.deployment.settled(1)).settled_pico_usd == 0
    record = await judged.deployment.record(answer.headers["x-request-id"])
    assert record["failed_by"] == "gateway"


async def test_counting_tokens_is_not_judged_and_counts_media(judged: JudgedDeployment) -> None:
    await judged.forbid("bread", direction=Direction.REQUEST)
    source = {"type": "base64", "media_type": "image/png", "data": PIXELS}
    message = {"role": "user", "content": [TEXT, {"type": "image", "source": source}]}
    asked = judged.asked_of_backend

    answer = await judged.send(COUNT_TOKENS, {"model": MODEL, "messages": [message]})

    assert answer.status_code == 200, answer.text
    assert answer.json()["input_tokens"] > 100
    assert judged.asked_of_backend == asked
