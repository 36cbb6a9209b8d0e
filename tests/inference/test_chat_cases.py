"""Every line of the chat tables over HTTP: refused exactly so and at no cost, or forwarded."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx2
import pytest
import pytest_asyncio

from tests.contract.tables import Told
from tests.contract.test_chat_fields import NESTED_FIELDS, REQUEST
from tests.inference.chat_cases import OK, Body, Outcome, answered, of_fields, of_rules
from tests.inference.forwarded import SEALED, WAYS, sent
from tests.support.deployment import MODEL, Deployment, model, offering
from tests.support.shared_deployment import deployment
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

__all__ = ["deployment"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/chat/completions"
CASES = [*of_fields(), *of_rules()]
DIGEST = re.compile(r"[0-9a-f]{64}")


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    """A model that takes and gives all there is."""
    everything = model(
        input_modalities=["text", "image", "audio"], output_modalities=["text", "audio"]
    )
    return offering(settings, upstream.base_url, models={MODEL: everything})


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(deployment: Deployment) -> AsyncIterator[httpx2.AsyncClient]:
    async with deployment.customer() as opened:
        yield opened


def outcome(answer: httpx2.Response) -> Outcome:
    request_id = answer.headers["x-request-id"]
    assert str(UUID(request_id)) == request_id
    if answer.is_success:
        return answer.status_code, None, None
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["request_id"] == request_id
    assert error["message"]
    return answer.status_code, error["code"], error["param"]


def received(deployment: Deployment) -> list[Body]:
    """What the backend was sent, with the proof that what is sealed says nothing."""
    found: list[Body] = []
    for exchange in deployment.upstream.seen:
        body: dict[str, Any] = json.loads(exchange.body)
        sealed = [body.pop(name) for name in SEALED if name in body]
        assert all(DIGEST.fullmatch(value) for value in sealed)
        found.append(body)
    return found


async def test_every_field_has_one_way_to_the_backend() -> None:
    names = {line.name for line in REQUEST.rows} | NESTED_FIELDS

    assert set[str]().union(*WAYS) == names
    assert sum(map(len, WAYS)) == len(names)
    assert len(CASES) > 700


@pytest.mark.parametrize(("body", "told"), CASES)
async def test_each_case_is_refused_for_nothing_or_forwarded_as_given(
    deployment: Deployment, client: httpx2.AsyncClient, body: Body, told: Told
) -> None:
    deployment.upstream.seen.clear()
    admitted = await deployment.admitted()

    answer = await client.post(PATH, json=body)

    assert outcome(answer) == answered(body, told), answer.text
    is_served = answered(body, told) == OK
    assert received(deployment) == ([sent(body)] if is_served else [])
    assert await deployment.admitted() == admitted + is_served
