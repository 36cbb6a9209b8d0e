"""Request policies through the whole gateway: what is refused, what it costs, and who is asked."""

from typing import Any

import httpx2
import pytest

from tests.support.judge import Fault
from tests.support.judged_deployment import BODIES, CHAT, RESPONSES, JudgedDeployment
from tollhouse.base.policies import Direction, Mode
from tollhouse.policies.types import PolicyScope

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATHS = pytest.mark.parametrize("path", [*BODIES])
STREAMS = pytest.mark.parametrize("is_stream", [False, True])


def refused(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert error["type"] == "policy_error"
    assert error["code"] == code
    return error


@PATHS
@STREAMS
async def test_a_request_that_matches_goes_nowhere_and_costs_nothing(
    judged: JudgedDeployment, path: str, *, is_stream: bool
) -> None:
    policy_id = await judged.forbid("bread", direction=Direction.REQUEST)
    asked = judged.asked_of_backend

    answer = await judged.send(path, BODIES[path]("Where is bread?", stream=is_stream))

    error = refused(answer, 403, "policy_violation")
    assert policy_id in error["message"]
    assert "bread" not in answer.text
    assert judged.asked_of_backend == asked
    assert (await judged.deployment.settled(1)).settled_pico_usd == 0


@PATHS
@STREAMS
async def test_a_request_that_does_not_match_is_served(
    judged: JudgedDeployment, path: str, *, is_stream: bool
) -> None:
    await judged.forbid("bread", direction=Direction.REQUEST)

    answer = await judged.send(path, BODIES[path]("Where is wine?", stream=is_stream))

    assert answer.status_code == 200, answer.text
    assert len(judged.judge.received) == 1
    assert (await judged.deployment.settled(1)).settled_pico_usd > 0


@PATHS
@pytest.mark.parametrize("fault", [Fault.ERROR_500, Fault.NO_LOGPROBS, Fault.NEITHER_SIDE])
async def test_a_judge_that_fails_lets_nothing_through(
    judged: JudgedDeployment, path: str, fault: Fault
) -> None:
    await judged.forbid("bread", direction=Direction.REQUEST)
    judged.judge.fails = lambda _: fault
    asked = judged.asked_of_backend

    answer = await judged.send(path, BODIES[path]("Where is wine?"))

    refused(answer, 503, "policy_evaluator_unavailable")
    assert answer.headers["x-should-retry"] == "false"
    assert judged.asked_of_backend == asked
    assert (await judged.deployment.settled(1)).settled_pico_usd == 0


async def test_every_part_of_a_chat_is_judged(judged: JudgedDeployment) -> None:
    await judged.forbid("bread", direction=Direction.REQUEST)
    tool = {"type": "function", "function": {"name": "f", "description": "bakes bread"}}
    schema = {"name": "s", "schema": {"type": "object", "description": "of bread"}}
    bodies: list[dict[str, Any]] = [
        {"messages": [{"role": "system", "content": "bread"}, {"role": "user", "content": "Hi"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "bread"}]}]},
        {"tools": [tool]},
        {"response_format": {"type": "json_schema", "json_schema": schema}},
        {"prediction": {"type": "content", "content": "bread"}},
        {"stop": ["bread"]},
    ]

    for body in bodies:
        answer = await judged.send(CHAT, BODIES[CHAT]("Hi") | body)
        refused(answer, 403, "policy_violation")


async def test_every_part_of_a_response_is_judged(judged: JudgedDeployment) -> None:
    await judged.forbid("bread", direction=Direction.REQUEST)
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "bread"}
    bodies: list[dict[str, Any]] = [
        {"instructions": "Speak of bread."},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "bread"}]}]},
        {"input": [call | {"arguments": '{"of":"bread"}'}, output | {"output": "done"}]},
        {"input": [call, output]},
        {"tools": [{"type": "function", "name": "f", "description": "bread", "parameters": {}}]},
    ]

    for body in bodies:
        answer = await judged.send(RESPONSES, BODIES[RESPONSES]("Hi") | body)
        refused(answer, 403, "policy_violation")


async def test_policy_ids_add_what_is_not_attached(judged: JudgedDeployment) -> None:
    added = await judged.forbid("bread", scope=PolicyScope.UNATTACHED, direction=Direction.REQUEST)
    body = BODIES[CHAT]("Where is bread?")

    alone = await judged.send(CHAT, body)
    together = await judged.send(CHAT, body | {"policy_ids": [added]})

    assert alone.status_code == 200
    assert added in refused(together, 403, "policy_violation")["message"]


@pytest.mark.guarantee("T36")
async def test_a_match_is_told_by_all_policies_that_match_and_nothing_else(
    judged: JudgedDeployment,
) -> None:
    await judged.forbid("wine", direction=Direction.REQUEST)
    bread = await judged.forbid("bread", direction=Direction.REQUEST)

    answer = await judged.send(CHAT, BODIES[CHAT]("Where is bread?"))

    message = refused(answer, 403, "policy_violation")["message"]
    assert message == (
        f"The request was refused by policy {bread}. It costs nothing. Change the request, or ask "
        "an administrator of the organization, who sees the policy's name."
    )


async def test_a_request_that_is_sent_again_costs_no_judge(judged: JudgedDeployment) -> None:
    await judged.forbid("bread", direction=Direction.REQUEST)

    for _ in range(3):
        assert (await judged.send(CHAT, BODIES[CHAT]("Where is wine?"))).status_code == 200

    assert len(judged.judge.received) == 1


async def test_monitoring_refuses_nothing(judged: JudgedDeployment) -> None:
    await judged.forbid("bread", mode=Mode.MONITORING, direction=Direction.REQUEST)

    answer = await judged.send(CHAT, BODIES[CHAT]("Where is bread?"))
    await judged.judge.has_received(1)

    assert answer.status_code == 200
