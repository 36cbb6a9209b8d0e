"""The judge of a trial behind a gateway: it decides its own policies, and names the way to more."""

from dataclasses import replace

import httpx2
import msgspec
import pytest
import pytest_asyncio

from tests.support.deployment import customer_of
from tests.support.judge import ScriptedJudge
from tests.support.judged_deployment import BODIES, CHAT, JudgedDeployment, judged_by
from tests.support.organization_fixture import OrganizationFixture
from tests.support.policies import CONTENT, new_policy
from tests.support.shared_gateway import Gateways
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.ids import policy_id_text
from tollhouse.base.policies import DEMONSTRATION_JUDGE, Direction, Mode
from tollhouse.settings import Settings
from tollhouse.trial.demonstration_judge import CARD_NUMBERS

pytestmark = pytest.mark.asyncio(loop_scope="module")

UNKNOWN = "Is it about bread?"
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
    content = replace(CONTENT, rule=UNKNOWN, mode=Mode.ENFORCING, direction=Direction.REQUEST)
    await new_policy(judged.deployment.org, ("publish",), content=content)

    answer = await judged.send(CHAT, BODIES[CHAT]("Hi"))

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (503, "policy_evaluator_unavailable")
    assert "demonstration judge" in error["message"]
    assert "[judge] of tollhouse.toml" in error["message"]


async def test_a_policy_that_would_refuse_everything_is_not_published_by_accident(
    judged: JudgedDeployment,
) -> None:
    content = replace(CONTENT, rule=UNKNOWN, mode=Mode.ENFORCING)
    draft = await new_policy(judged.deployment.org, content=content)
    path = f"/manage/v1/organization/policies/{policy_id_text(draft.id)}"
    anyway = {"refuses_until_judged": True}

    async with judged.deployment.administrator() as client:

        async def put_in_force(verb: str, **body: object) -> httpx2.Response:
            revision = (await client.get(path)).json()["revision"]
            return await client.post(f"{path}/{verb}", json={"revision": revision, **body})

        refused = [await put_in_force("publish")]
        published = await put_in_force("publish", **anyway)
        paused = await client.post(
            f"/v1/organization/policies/{policy_id_text(draft.id)}/pause",
            json={"revision": published.json()["revision"]},
        )
        refused.append(await put_in_force("resume"))
        resumed = await put_in_force("resume", **anyway)
        known = {"revision": resumed.json()["revision"], "rule": CARD_NUMBERS}
        await client.patch(path, json=known)
        judged_one = await put_in_force("publish")
        refused.append(await put_in_force("rollback", version=1))

    assert paused.status_code == 200
    for answer in refused:
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (409, "policy_not_judged")
        assert "knows only questions about quoted words" in error["message"]
    for answer in (published, resumed):
        preflight = answer.json()["preflight"]
        assert (preflight["outcome"], preflight["reason"]) == ("failed", "unseen")
    assert judged_one.json()["preflight"]["outcome"] == "no_match"
    assert judged_one.json()["current_version"] == 2
