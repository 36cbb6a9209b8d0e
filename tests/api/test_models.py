"""Reading models: one, or all that the key may use."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import msgspec
import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from tests.support import catalogs
from tests.support.gateway import Gateway, running_gateway, settings_for
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_deployment import upstream
from tests.support.shared_gateway import database, database_url, gateway, org, other_org
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.clock import HeldClock
from tollhouse.settings import Settings

__all__ = ["database", "database_url", "gateway", "org", "other_org", "upstream"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

A_SECOND = timedelta(seconds=1)
ODD_ID = "org/a b%2Fc?d#e&é"
MODELS = catalogs.MODELS | {
    "vision": {
        "backend": "engine",
        "pricing": {
            "prompt": "0.00000250",
            "completion": "1",
            "image": "0.001",
            "request": "00.5",
            "input_cache_read": "0.000000000001",
            "reasoning": "2",
        },
        "context_length": 8192,
        "max_output_length": 8192,
        "display_name": "Vision 7B",
        "owned_by": "example",
        "created": 1_700_000_000,
        "input_modalities": ["text", "image"],
        "features": ["tools", "json_mode"],
        "sampling_parameters": ["top_p", "temperature"],
        "sampling_limits": {"temperature": {"max": 1.5}},
        "required_checks": ["identity", "export-control"],
        "quantization": "fp8",
        "root": "vision-7b",
        "parent": "vision-base",
    },
    ODD_ID: catalogs.MODELS["example/model-a"],
}


@pytest.fixture(scope="module")
def settings(database_url: str, upstream: ScriptedUpstream) -> Settings:
    return msgspec.structs.replace(
        settings_for(database_url),
        backends=catalogs.backend(replicas=[upstream.base_url]),
        models=MODELS,
    )


def ids_of(answer: httpx2.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [model["id"] for model in answer.json()["data"]]


async def test_a_model_is_shown_whole(gateway: Gateway, org: OrganizationFixture) -> None:
    key = await org.project_key(await org.project())
    await org.grant_check("identity")

    async with gateway.client(key.value) as client:
        full = (await client.get("/v1/models/vision")).json()
        plain = (await client.get("/v1/models/example/model-a")).json()
        listed = (await client.get("/v1/models")).json()

    assert len(full.pop("sampling_limits_revision")) == 16
    assert full == {
        "id": "vision",
        "object": "model",
        "created": 1_700_000_000,
        "owned_by": "example",
        "name": "vision",
        "display_name": "Vision 7B",
        "access": {
            "required_checks": ["identity", "export-control"],
            "available": False,
            "locked": True,
            "missing_requirements": ["export-control"],
        },
        "input_modalities": ["text", "image"],
        "output_modalities": ["text"],
        "pricing": {
            "prompt": "0.0000025",
            "completion": "1",
            "image": "0.001",
            "request": "0.5",
            "input_cache_read": "0.000000000001",
        },
        "supported_sampling_parameters": ["temperature", "top_p"],
        "sampling_limits": {"temperature": {"max": 1.5}},
        "supported_features": ["json_mode", "tools"],
        "is_ready": True,
        "quantization": "fp8",
        "context_length": 8192,
        "max_output_length": 8192,
        "root": "vision-7b",
        "parent": "vision-base",
    }
    assert plain["access"] == {
        "required_checks": [],
        "available": True,
        "locked": False,
        "missing_requirements": [],
    }
    assert (plain["root"], plain["parent"]) == ("example/model-a", None)
    assert (plain["name"], plain["display_name"]) == ("example/model-a", "example/model-a")
    assert plain["pricing"]["input_cache_read"] == plain["pricing"]["prompt"] == "0.0000025"
    assert plain["sampling_limits"] == {}
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == list(MODELS)
    assert listed["data"][0] == plain


@pytest.mark.parametrize(
    ("path", "model_id"),
    [
        ("example/model-a", "example/model-a"),
        ("example%2Fmodel-a", "example/model-a"),
        ("example%2fmodel%2Da", "example/model-a"),
        ("org%2Fa%20b%252Fc%3Fd%23e&%C3%A9", ODD_ID),
        ("org/a%20b%252Fc%3Fd%23e%26%c3%a9", ODD_ID),
    ],
)
async def test_an_id_may_be_encoded_or_not_and_is_decoded_once(
    gateway: Gateway, org: OrganizationFixture, path: str, model_id: str
) -> None:
    key = await org.project_key(await org.project())

    async with gateway.client(key.value) as client:
        answer = await client.get(f"/v1/models/{path}")

    assert answer.json()["id"] == model_id


UNKNOWN = ("x", "example", "example/", "example%252Fmodel-a", "EXAMPLE/model-a", "%ff", "x" * 5000)


@pytest.mark.parametrize("path", UNKNOWN, ids=lambda path: path[:20])
async def test_another_id_is_404(gateway: Gateway, org: OrganizationFixture, path: str) -> None:
    key = await org.project_key(await org.project())

    async with gateway.client(key.value) as client:
        answer = await client.get(f"/v1/models/{path}")

    assert answer.status_code == 404
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("model_not_found", "model")
    assert error["type"] == "invalid_request_error"


async def test_a_model_that_is_not_allowed_looks_like_one_that_is_not_there(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    open_, narrow = (
        await org.project(),
        await org.allow_models(await org.project(), "vision", "example/model-a", "not/there"),
    )
    lists = {
        "neither": await org.project_key(open_),
        "only the key": await org.project_key(open_, allowed_models=("vision",)),
        "only the project": await org.project_key(narrow),
        "both": await org.project_key(narrow, allowed_models=(ODD_ID, "vision")),
        "nothing in common": await org.project_key(narrow, allowed_models=(ODD_ID,)),
    }

    seen: dict[str, list[str]] = {}
    refusals = set[str]()
    for name, key in lists.items():
        async with gateway.client(key.value) as client:
            seen[name] = ids_of(await client.get("/v1/models"))
            for model_id in ("example/model-a", "vision", "never/there"):
                answer = await client.get(f"/v1/models/{model_id}")
                assert answer.status_code == (200 if model_id in seen[name] else 404)
                if answer.status_code == 404:
                    request_id = answer.headers["x-request-id"]
                    text = answer.text.replace(request_id, "").replace(f"'{model_id}'", "")
                    suggested = re.findall(r" Did you mean `(.+?)`", text)
                    assert set(suggested) <= set(seen[name])
                    refusals.add(re.sub(r" Did you mean `.+?`\?", "", text))

    assert seen == {
        "neither": list(MODELS),
        "only the key": ["vision"],
        "only the project": ["example/model-a", "vision"],
        "both": ["vision"],
        "nothing in common": [],
    }
    assert len(refusals) == 1


async def test_what_is_granted_or_narrowed_holds_within_a_second(
    settings: Settings, org: OrganizationFixture, other_org: OrganizationFixture
) -> None:
    project = await org.project()
    key = await org.project_key(project)
    stranger = await other_org.project_key(await other_org.project())
    clock = HeldClock(datetime.now(UTC))

    async with running_gateway(settings, clock) as gateway, gateway.client() as client:

        async def missing(value: str) -> list[str]:
            headers = {"authorization": f"Bearer {value}"}
            model = (await client.get("/v1/models/vision", headers=headers)).json()
            access = model["access"]
            assert access["locked"] is bool(access["missing_requirements"])
            assert access["available"] is not access["locked"]
            return access["missing_requirements"]

        async def visible() -> list[str]:
            headers = {"authorization": f"Bearer {key.value}"}
            return ids_of(await client.get("/v1/models", headers=headers))

        assert await missing(key.value) == ["identity", "export-control"]
        await org.grant_check("identity")
        await org.grant_check("export-control")
        clock.advance(A_SECOND)
        assert await missing(key.value) == []
        assert await missing(stranger.value) == ["identity", "export-control"]
        await org.revoke_check("identity")
        clock.advance(A_SECOND)
        assert await missing(key.value) == ["identity"]

        await org.allow_models(project, "vision")
        clock.advance(A_SECOND)
        assert await visible() == ["vision"]
        await org.allow_models(project)
        clock.advance(A_SECOND)
        assert await visible() == list(MODELS)


async def test_the_sdk_lists_and_retrieves_in_either_spelling(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    key = await org.project_key(await org.project())
    base_url = f"{gateway.base_url}/v1"

    async with AsyncOpenAI(api_key=key.value, base_url=base_url) as client:
        listed = [model async for model in client.models.list()]
        retrieved = [await client.models.retrieve(model_id) for model_id in MODELS]
        raw = await client.get("/models/example/model-a", cast_to=object)
        with pytest.raises(openai.NotFoundError) as unknown:
            await client.models.retrieve("not/there")

    assert [model.id for model in listed] == list(MODELS)
    assert listed == retrieved
    assert (listed[1].owned_by, listed[1].created, listed[1].object) == (
        *("example", 1_700_000_000, "model"),
    )
    assert as_tree(raw)["id"] == "example/model-a"
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")


def as_tree(raw: object) -> dict[str, Any]:
    assert isinstance(raw, dict)
    return msgspec.convert(raw, dict[str, Any])


async def test_the_blocking_sdk_lists_and_retrieves_too(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    key = await org.project_key(await org.project())

    def work() -> tuple[list[str], str]:
        with OpenAI(api_key=key.value, base_url=f"{gateway.base_url}/v1") as client:
            return (
                [model.id for model in client.models.list()],
                client.models.retrieve("example/model-a").id,
            )

    assert await asyncio.to_thread(work) == (list(MODELS), "example/model-a")
