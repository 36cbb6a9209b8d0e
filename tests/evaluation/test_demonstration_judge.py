"""The judge of a trial behind a gateway: it decides its own policies, and names the way to more."""

from dataclasses import replace

import msgspec
import pytest
import pytest_asyncio

from tests.support.deployment import customer_of
from tests.support.judge import ScriptedJudge
from tests.support.judged_deployment import BODIES, CHAT, JudgedDeployment, judged_by
from tests.support.organization_fixture import OrganizationFixture
from tests.support.policies import CONTENT, new_policy
from tests.support.shared_gateway import Gateways
from tollhouse.base.policies import DEMONSTRATION_JUDGE, Direction, Mode
from tollhouse.settings import Settings
from tollhouse.testing.demonstration_judge import CARD_NUMBERS
from tollhouse.testing.upstream import ScriptedUpstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

CARD = "Please charge 4111 1111 1111 1111."


@pytest_asyncio.fixture(loop_scope="module")
async def judged(
    gateways: Gateways, offered: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> JudgedDeployment:
    """A gateway whose engine is the judge too."""
    engine = {"model": DEMONSTRATION_JUDGE, "has_tokenizer": False}
    gateway = await gateways.offering(judged_by(offered, upstream.base_url, **engine))
    deployment = await customer_of(gateway, upstream, org)
    return JudgedDeployment(deployment=deployment, judge=ScriptedJudge())


async def test_it_refuses_what_matches_and_lets_the_rest_pass(judged: JudgedDeployment) -> None:
    content = replace(CONTENT, rule=CARD_NUMBERS, mode=Mode.ENFORCING, direction=Direction.BOTH)
    await new_policy(judged.deployment.org, ("publish",), content=content)

    refused = await judged.send(CHAT, BODIES[CHAT](CARD))
    passed = await judged.send(CHAT, BODIES[CHAT]("Please charge my card."))
    withheld = await judged.send(
        CHAT, BODIES[CHAT](msgspec.json.encode({"script": {"text": CARD}}).decode())
    )

    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "policy_violation")
    assert passed.status_code == 200
    assert withheld.status_code == 403


async def test_a_rule_that_it_does_not_know_names_the_way_to_another_judge(
    judged: JudgedDeployment,
) -> None:
    await judged.forbid("bread", direction=Direction.REQUEST)

    answer = await judged.send(CHAT, BODIES[CHAT]("Hi"))

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (503, "policy_evaluator_unavailable")
    assert "demonstration judge" in error["message"]
    assert "[judge] of tollhouse.toml" in error["message"]
