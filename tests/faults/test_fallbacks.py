"""Models with fallbacks under every fault of a backend: one charge, of the model that answered."""

from collections.abc import AsyncIterator
from itertools import product
from typing import Any

import httpx2
import msgspec
import pytest

from tests.faults.test_upstream_faults import PATHS, body, ending
from tests.faults.upstream_faults import ANSWERED, BROKEN, FAULTS, IMPATIENT_MODEL, Fault
from tests.identity.waiting import until
from tests.ledger.invariants import assert_conserved
from tests.support import seeds
from tests.support.deployment import (
    COMPLETION_PICO_USD,
    PROMPT_PICO_USD,
    Deployment,
    model,
    open_deployment,
)
from tests.support.organization_fixture import OrganizationFixture
from tests.support.redis_groups import free_ports
from tests.support.upstream import running_upstream
from tests.upstream.scripts import UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

SPARE = "example/spare"
ALIAS = "example/alias"
DEARER = 3
"""How many times as much the fallback costs."""
SPARE_PRICES = {"prompt": "0.000003", "completion": "0.000006"}
NAMES = list(FAULTS)


def primary(name: str) -> str:
    return f"example/primary-{NAMES.index(name)}"


@pytest.fixture
def dialects() -> tuple[str, str]:
    """The dialects of the failing backend and of the spare one."""
    return "openai", "openai"


@pytest.fixture
async def deployment(
    settings: Settings,
    upstream: ScriptedUpstream,
    org: OrganizationFixture,
    dialects: tuple[str, str],
) -> AsyncIterator[Deployment]:
    """Each fault has a backend of its own, whose breaker and retry budget are fresh."""
    of_primary, of_spare = dialects
    async with running_upstream() as spare:
        backends: dict[str, Any] = {"spare": {"replicas": [spare.base_url], "dialect": of_spare}}
        models: dict[str, Any] = {SPARE: model(backend="spare", pricing=SPARE_PRICES)}
        for name, fault in FAULTS.items():
            backend: dict[str, Any] = {"replicas": [upstream.base_url], "dialect": of_primary}
            if fault.model == IMPATIENT_MODEL:
                backend |= {"first_event_seconds": 0.3, "total_seconds": 0.6}
            backends[primary(name)[8:]] = backend
            models[primary(name)] = model(backend=primary(name)[8:], features=[], fallbacks=[SPARE])
        models[primary(NAMES[0])]["aliases"] = [ALIAS]
        for each in models.values():
            each |= {"features": [], "sampling_parameters": []}
        offered = msgspec.structs.replace(settings, backends=backends, models=models)
        async with open_deployment(offered, upstream, org) as opened:
            yield opened


async def answered_under(
    deployment: Deployment, client: httpx2.AsyncClient, name: str, asked: dict[str, Any], path: str
) -> httpx2.Response:
    """A sound answer after it closes the breaker of the failed backend."""
    deployment.upstream.queue(msgspec.convert(FAULTS[name].script, UpstreamScript), times=None)
    answer = await client.post(path, json=asked)
    deployment.upstream.scripts.clear()
    sound = await client.post(path, json=asked)
    assert f'"model":"{primary(name)}"' in sound.text
    return answer


def falls_back(name: str, fault: Fault, *, is_stream: bool) -> bool:
    """A backend's own refusal of the request is the caller's, and a begun answer is kept."""
    ends = fault.ending(is_stream=is_stream)
    return ends not in (ANSWERED, BROKEN) and name != "refuses the request"


async def assert_charged_once(
    deployment: Deployment, answer: httpx2.Response, *, model_id: str, is_refused: bool
) -> None:
    request_id = answer.headers["x-request-id"]
    record = await deployment.record(request_id)
    rows = await deployment.org.database.fetch_all(
        """
        SELECT *
          FROM ledger_entries
         WHERE organization_id = $1
           AND reservation_id = $2
         ORDER BY phase
        """,
        deployment.org.organization_id,
        request_id,
    )
    assert [row["phase"] for row in rows] == [0, 1]
    hold, end = rows
    assert 0 <= end["posted_pico"] <= hold["held_pico"]
    assert end["model"] == record["model"] == model_id
    if is_refused:
        assert end["posted_pico"] == 0
        return
    times = DEARER if model_id == SPARE else 1
    assert end["posted_pico"] > 0
    assert end["posted_pico"] == times * (
        end["input_tokens"] * PROMPT_PICO_USD + end["output_tokens"] * COMPLETION_PICO_USD
    )


@pytest.mark.parametrize(
    "dialects",
    [("openai", "openai"), ("openai", "anthropic"), ("anthropic", "openai")],
    ids=["openai", "to-anthropic", "from-anthropic"],
)
@pytest.mark.parametrize("is_stream", seeds.partly_nightly([False, True], at_landings=1))
async def test_each_fault_is_charged_once_at_the_price_of_the_model_that_answered(
    deployment: Deployment, *, is_stream: bool
) -> None:
    answers: dict[tuple[str, str], httpx2.Response] = {}
    async with deployment.customer() as client:
        for endpoint, name in product(PATHS, FAULTS):
            asked = body(endpoint, "Hi", model_id=primary(name), is_stream=is_stream)
            path = PATHS[endpoint]
            answers[endpoint, name] = await answered_under(deployment, client, name, asked, path)

    await deployment.settled(2 * len(answers))
    await assert_conserved(deployment.org.database, fallbacks={SPARE})
    for (_, name), answer in answers.items():
        fault = FAULTS[name]
        is_spare = falls_back(name, fault, is_stream=is_stream)
        expected = ANSWERED if is_spare else fault.ending(is_stream=is_stream)
        assert ending(answer) == expected, name
        model_id = SPARE if is_spare else primary(name)
        if answer.is_success:
            assert f'"model":"{model_id}"' in answer.text, name
        await assert_charged_once(
            deployment, answer, model_id=model_id, is_refused=not answer.is_success
        )
        record = await deployment.record(answer.headers["x-request-id"])
        assert record["requested_model"] == (primary(name) if is_spare else None), name


async def test_the_hold_is_that_of_the_dearest_candidate(deployment: Deployment) -> None:
    async with deployment.customer() as client:
        plain = await client.post(
            PATHS["chat"], json=body("chat", "Hi", model_id=SPARE, is_stream=False)
        )
        named = body("chat", "Hi", model_id=ALIAS, is_stream=False)
        aliased = await client.post(PATHS["chat"], json=named)

    assert aliased.json()["model"] == primary(NAMES[0])
    held = [
        (
            await deployment.org.database.fetch_all(
                "SELECT held_pico FROM ledger_entries WHERE reservation_id = $1 AND phase = 0",
                answer.headers["x-request-id"],
            )
        )[0][0]
        for answer in (plain, aliased)
    ]
    assert held[0] == held[1]
    record = await deployment.record(aliased.headers["x-request-id"])
    assert (record["model"], record["requested_model"]) == (primary(NAMES[0]), ALIAS)


async def test_a_fallback_that_credit_does_not_cover_is_left_out(deployment: Deployment) -> None:
    chat = body("chat", "Hi", model_id=primary(NAMES[0]), is_stream=False)
    async with deployment.customer() as client:
        await client.post(PATHS["chat"], json=chat | {"model": SPARE})
        (row,) = await deployment.org.database.fetch_all(
            "SELECT held_pico FROM ledger_entries WHERE organization_id = $1 AND phase = 0",
            deployment.org.organization_id,
        )
        spent = (await deployment.settled(1)).settled_pico_usd
        await deployment.leave_credit(int(row["held_pico"]) - 1 + spent)
        deployment.upstream.queue(msgspec.convert({"status": 500}, UpstreamScript))
        failed = await client.post(PATHS["chat"], json=chat)
        answer = await client.post(PATHS["chat"], json=chat)

    assert failed.status_code == 502
    assert answer.json()["model"] == primary(NAMES[0])


async def test_while_the_named_model_is_down_unfit_fallbacks_are_passed_over(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> None:
    backends = {
        "down": {"replicas": [f"http://127.0.0.1:{free_ports(1)[0]}/v1"]},
        "scripted": {"replicas": [upstream.base_url]},
    }
    fallbacks = ["example/small", "example/large"]
    models = {
        "example/down": model(backend="down", fallbacks=fallbacks, features=[]),
        "example/small": model(max_output_length=10, features=[]),
        "example/large": model(features=[]),
    }
    offered = msgspec.structs.replace(settings, backends=backends, models=models)
    async with (
        open_deployment(offered, upstream, org) as deployment,
        deployment.customer() as client,
    ):
        chat = body("chat", "Hi", model_id="example/down", is_stream=False)

        async def is_known_to_be_down() -> bool:
            listed = await client.get("/v1/models/example/down")
            return listed.json().get("is_ready") is False

        await until(is_known_to_be_down)
        answer = await client.post(PATHS["chat"], json=chat | {"max_tokens": 100})
        refused = await client.post(PATHS["chat"], json=chat | {"max_tokens": 5_000})

    assert answer.json()["model"] == "example/large"
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "service_unavailable")
