"""Each entry says by which rule the operator pays, or that the caller does."""

import pytest

from tests.support.deployment import COMPLETION_PICO_USD, PROMPT_PICO_USD
from tests.support.judge import Fault
from tests.support.judged_deployment import BODIES, CHAT, FALLING_BACK, JudgedDeployment
from tollhouse.base.policies import Direction

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = "one two three four five six seven eight nine ten eleven twelve"
BREAKS = {"error": {"message": "out of memory"}, "error_after_events": 6, "usage": None}

Entry = tuple[str, str | None, int]


async def entry(judged: JudgedDeployment) -> Entry:
    """The kind, the rule and the delivered tokens of the only request, once it is resolved."""
    deployment = judged.deployment
    await deployment.settled(1)
    (row,) = await deployment.org.database.fetch_all(
        "SELECT kind, operator_pays, delivered_tokens FROM ledger_entries"
        " WHERE organization_id = $1 AND phase = 1",
        deployment.org.organization_id,
    )
    return row["kind"], row["operator_pays"], row["delivered_tokens"]


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("path", [*BODIES])
async def test_an_answer_that_nobody_can_judge_is_paid_by_the_operator(
    judged: JudgedDeployment, path: str, *, is_stream: bool
) -> None:
    await judged.forbid("bread", direction=Direction.RESPONSE)
    judged.judge.fails = lambda _: Fault.ERROR_500
    judged.answers(TEXT)

    await judged.send(path, BODIES[path](stream=is_stream))

    assert await entry(judged) == ("void", "policy_evaluator_failed", 0)


@pytest.mark.parametrize("path", [*BODIES])
async def test_an_answer_that_breaks_while_it_is_held_back_is_paid_by_the_operator(
    judged: JudgedDeployment, path: str
) -> None:
    await judged.forbid("bread", direction=Direction.RESPONSE)
    judged.answers(TEXT, **BREAKS)
    asked = judged.asked_of_backend

    await judged.send(path, BODIES[path](stream=True, model=FALLING_BACK))

    assert await entry(judged) == ("void", "backend_failed", 0)
    assert judged.asked_of_backend == asked + 1, "no other model continues what has begun"


async def test_an_answer_that_breaks_while_it_is_sent_is_paid_by_the_caller(
    judged: JudgedDeployment,
) -> None:
    judged.answers(TEXT, **BREAKS)

    await judged.send(CHAT, BODIES[CHAT](stream=True))

    kind, rule, delivered = await entry(judged)
    assert (kind, rule) == ("post", None)
    assert delivered > 0


@pytest.mark.parametrize("is_stream", [False, True])
async def test_an_answer_that_a_policy_refuses_is_paid_by_the_caller(
    judged: JudgedDeployment, *, is_stream: bool
) -> None:
    """At what the backend reports, also where it reports less than it has said."""
    await judged.forbid("seven", direction=Direction.RESPONSE)
    judged.answers(TEXT, usage={"prompt_tokens": 2, "completion_tokens": 3})

    await judged.send(CHAT, BODIES[CHAT](stream=is_stream, model=FALLING_BACK))

    assert await entry(judged) == ("post", None, 0)
    charged = (await judged.deployment.settled(1)).settled_pico_usd
    assert charged == 2 * PROMPT_PICO_USD + 3 * COMPLETION_PICO_USD


@pytest.mark.parametrize("is_guarded", [False, True])
async def test_where_nothing_was_generated_nobody_pays(
    judged: JudgedDeployment, *, is_guarded: bool
) -> None:
    if is_guarded:
        await judged.forbid("bread", direction=Direction.RESPONSE)
    judged.answers("", status=500, body={"error": {"message": "no"}})

    await judged.send(CHAT, BODIES[CHAT]())

    assert await entry(judged) == ("void", None, 0)


@pytest.mark.parametrize("path", [*BODIES])
async def test_a_request_that_nobody_can_judge_is_paid_by_nobody(
    judged: JudgedDeployment, path: str
) -> None:
    await judged.forbid("bread", direction=Direction.REQUEST)
    judged.judge.fails = lambda _: Fault.ERROR_500
    asked = judged.asked_of_backend

    answer = await judged.send(path, BODIES[path]())

    assert answer.status_code == 503
    assert judged.asked_of_backend == asked
    assert await entry(judged) == ("void", None, 0)
