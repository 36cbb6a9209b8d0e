"""Reading the organization of an Admin key: its name, its judge and its models."""

from typing import Any

import msgspec
import pytest

from tests.support import catalogs
from tests.support.gateway import running_gateway, settings_for
from tests.support.judged_deployment import judged_by
from tests.support.organization_fixture import OrganizationFixture
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.policies import DEMONSTRATION_JUDGE
from tollhouse.settings import LedgerSettings, Settings

ORGANIZATION = "/manage/v1/organization"


@pytest.fixture
def settings(database_url: str, upstream: ScriptedUpstream) -> Settings:
    locked = catalogs.MODELS["example/model-a"] | {"required_checks": ["identity", "age"]}
    return msgspec.structs.replace(
        settings_for(database_url),
        backends=catalogs.backend(replicas=[upstream.base_url]),
        models=catalogs.MODELS | {"example/locked": locked},
    )


async def read(settings: Settings, org: OrganizationFixture, path: str = "") -> dict[str, Any]:
    admin = await org.admin_key(("projects:read",))
    async with running_gateway(settings) as gateway, gateway.client(admin.value) as client:
        answer = await client.get(ORGANIZATION + path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_an_organization_without_a_judge_says_so(
    settings: Settings, org: OrganizationFixture
) -> None:
    shown = await read(settings, org)

    assert shown.pop("created_at") > 0
    assert shown == {
        "object": "organization",
        "id": str(org.organization_id),
        "name": "an organization",
        "is_sandbox": False,
        "judge": None,
    }


@pytest.mark.parametrize(
    ("model", "is_demonstration"), [("a-judge", False), (DEMONSTRATION_JUDGE, True)]
)
async def test_the_judge_is_named_and_that_of_a_trial_is_marked(
    settings: Settings,
    org: OrganizationFixture,
    upstream: ScriptedUpstream,
    model: str,
    is_demonstration: bool,
) -> None:
    sandbox = msgspec.structs.replace(settings, ledger=LedgerSettings(is_sandbox=True))

    shown = await read(judged_by(sandbox, upstream.base_url, model=model), org)

    assert shown["is_sandbox"] is True
    assert shown["judge"] == {"model": model, "is_demonstration": is_demonstration}


async def test_all_models_are_listed_with_the_checks_that_the_organization_lacks(
    settings: Settings, org: OrganizationFixture
) -> None:
    await org.grant_check("identity")

    listed = await read(settings, org, "/models")

    models = {model["id"]: model for model in listed["data"]}
    assert set(models) == {*catalogs.MODELS, "example/locked"}
    assert models["example/model-a"]["access"]["available"] is True
    assert models["example/locked"]["access"]["missing_requirements"] == ["age"]
