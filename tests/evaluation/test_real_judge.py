"""A real model as judge through the whole gateway: it proves the plumbing, and no accuracy."""

import pytest

from tests.support import seeds
from tests.support.deployment import customer_of, offering
from tests.support.engine import Engine
from tests.support.judge import ScriptedJudge
from tests.support.judged_deployment import BODIES, JudgedDeployment, judged_by
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_gateway import Gateways
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.policies import Direction
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(
    params=[
        ("llama_engine", "top_logprobs"),
        pytest.param(("vllm_engine", "token_ids"), marks=pytest.mark.vllm),
    ],
    ids=lambda engine: engine[0],
)
def judged_settings(
    request: pytest.FixtureRequest, settings: Settings, upstream: ScriptedUpstream
) -> Settings:
    """Each engine is read in the way that it is meant to be."""
    name, reads = request.param
    engine: Engine = request.getfixturevalue(name)
    return judged_by(
        offering(settings, upstream.base_url),
        engine.base_url,
        model="smollm2-135m",
        reads=reads,
        context_length=2_048,
        question_tokens_max=100,
        coverage_min_basis_points=1,
        request_questions_max=1,
    )


@pytest.mark.parametrize(("threshold", "status"), [(1, 403), (9_999, 200)])
@pytest.mark.parametrize("direction", seeds.partly_nightly(Direction, at_landings=1))
async def test_its_scores_decide(
    gateways: Gateways,
    judged_settings: Settings,
    upstream: ScriptedUpstream,
    org: OrganizationFixture,
    direction: Direction,
    threshold: int,
    status: int,
) -> None:
    """At the lowest threshold any score matches that rounds to more than nothing."""
    upstream.scripts.clear()
    deployment = await customer_of(await gateways.offering(judged_settings), upstream, org)
    judged = JudgedDeployment(deployment=deployment, judge=ScriptedJudge())
    await judged.forbid("bread", direction=direction, threshold_basis_points=threshold)
    for path in BODIES:
        for is_stream in (False, True):
            body = BODIES[path]("How is bread baked?", stream=is_stream)
            assert (await judged.send(path, body)).status_code == status
