"""What every answer carries: a request ID of our own, a whole envelope, no word to caches."""

import json
from uuid import UUID

import httpx2
import msgspec
import pytest

from tests.support.gateway import Gateway, running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_gateway import database, database_url, gateway, org, settings
from tollhouse.settings import ErrorSettings, Settings

__all__ = ["database", "database_url", "gateway", "org", "settings"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROJECTS = "/manage/v1/organization/projects"
POLICY = {"name": "x", "rule": "Is it so?"}
COUNT_TOKENS = "/v1/messages/count_tokens"
MEMBERS = {"code", "message", "type", "param", "request_id", "doc_url"}


def refusal(response: httpx2.Response) -> tuple[int, str]:
    """Status and code of a refusal, after its envelope was found to be whole."""
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == MEMBERS
    assert body["error"]["request_id"] == response.headers["x-request-id"]
    assert UUID(response.headers["x-request-id"]).version == 7
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert body["error"]["message"]
    return response.status_code, body["error"]["code"]


async def test_a_refusal_is_a_whole_envelope(gateway: Gateway, org: OrganizationFixture) -> None:
    admin = await org.admin_key()
    limited = await org.admin_key(("audit:read",))
    named = {"Idempotency-Key": "creation-1"}

    async with gateway.client(admin.value) as client, gateway.client() as nobody:
        refused = [
            refusal(await nobody.get("/nowhere")),
            refusal(await nobody.put(PROJECTS)),
            refusal(await nobody.get(PROJECTS)),
            refusal(await client.post("/v1/chat/completions", json={})),
            refusal(await client.get(f"{PROJECTS}/x")),
            refusal(await client.post(PROJECTS, content=b"{}")),
            refusal(await client.post(PROJECTS, json={}, headers=named)),
            refusal(await client.post("/v1/organization/policies", json=POLICY)),
        ]
    async with gateway.client(limited.value) as client:
        refused.append(refusal(await client.get(PROJECTS)))

    assert refused == [
        (404, "unknown_url"),
        (405, "method_not_allowed"),
        (401, "missing_api_key"),
        (403, "wrong_key_type"),
        (404, "project_not_found"),
        (415, "unsupported_media_type"),
        (400, "missing_required_parameter"),
        (400, "missing_required_parameter"),
        (403, "insufficient_permissions"),
    ]


async def test_a_refusal_without_a_parameter_says_so_with_null(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    admin = await org.admin_key()

    async with gateway.client(admin.value) as client:
        answer = await client.get("/nowhere")

    error = answer.json()["error"]
    assert (error["type"], error["param"], error["doc_url"]) == (
        "invalid_request_error",
        None,
        None,
    )


async def test_a_documentation_address_becomes_a_link_per_code(settings: Settings) -> None:
    errors = ErrorSettings(documentation_url="https://docs.example/errors/")
    documented = msgspec.structs.replace(settings, errors=errors)

    async with running_gateway(documented) as gateway, gateway.client() as client:
        answer = await client.get("/nowhere")

    assert answer.json()["error"]["doc_url"] == "https://docs.example/errors/unknown_url"


@pytest.mark.guarantee("T30")
async def test_a_request_id_is_never_the_callers(gateway: Gateway) -> None:
    chosen = "01890a5d-ac96-774b-bcce-b302099a8057"
    names = ("X-Request-ID", "X-Client-Request-Id", "Request-Id", "X-Correlation-ID")

    async with gateway.client() as client:
        answers = [await client.get("/nowhere", headers={name: chosen}) for name in names]

    given = [answer.headers.get_list("x-request-id") for answer in answers]
    assert [len(request_ids) for request_ids in given] == [1, 1, 1, 1]
    assert len({chosen, *(request_id for (request_id,) in given)}) == 5


async def test_a_success_carries_the_same_headers(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    admin = await org.admin_key()

    async with gateway.client(admin.value) as client:
        answer = await client.get(PROJECTS)

    assert answer.status_code == 200
    assert UUID(answer.headers["x-request-id"]).version == 7
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json"


async def test_no_answer_lets_a_foreign_page_read_it(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    admin = await org.admin_key()
    origin = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "GET"}

    async with gateway.client(admin.value) as client:
        answers = [
            await client.get(PROJECTS, headers=origin),
            await client.get("/nowhere", headers=origin),
            await client.options(PROJECTS, headers=origin),
        ]

    assert [answer.status_code for answer in answers] == [200, 404, 204]
    for answer in answers:
        assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_a_messages_shaped_route_wraps_its_refusals_and_repeats_the_request_id(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    key = await org.project_key(await org.project())
    admin = await org.admin_key()

    async with gateway.client() as nobody, gateway.client(admin.value) as other_kind:
        answers = [
            await nobody.post(COUNT_TOKENS, json={}),
            await other_kind.post(COUNT_TOKENS, json={}),
            await nobody.get(COUNT_TOKENS),
        ]
    async with gateway.client(key.value) as client:
        answers.append(await client.post(COUNT_TOKENS, json={}))

    shown = [(answer.status_code, answer.json()["error"]["type"]) for answer in answers]
    assert shown[:3] == [
        (401, "authentication_error"),
        (403, "permission_error"),
        (405, "invalid_request_error"),
    ]
    for answer in answers:
        body = answer.json()
        request_id = answer.headers["x-request-id"]
        assert set(body) == {"type", "error", "request_id"}
        assert set(body["error"]) == MEMBERS
        assert body["type"] == "error"
        assert answer.headers["request-id"] == request_id
        assert body["request_id"] == body["error"]["request_id"] == request_id


async def test_other_routes_have_one_request_id_header(gateway: Gateway) -> None:
    async with gateway.client() as client:
        answer = await client.get(PROJECTS)

    assert "request-id" not in answer.headers


RETRIES: dict[str, int | None] = {
    "0": 0,
    "7": 7,
    "10": 10,
    "999": 999,
    "1000": None,
    "9" * 5_000: None,
    "": None,
    "-1": None,
    "1.0": None,
    "one": None,
    "\u00b2": None,
}


async def test_a_number_of_retries_is_logged_if_it_can_be_one(
    gateway: Gateway, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("INFO", "tollhouse.requests")
    async with gateway.client() as client:
        for sent in RETRIES:
            headers = [(b"x-stainless-retry-count", sent.encode("latin-1"))]
            assert (await client.get("/nowhere", headers=headers)).status_code == 404

    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    logged = [line.get("retry_count") for line in lines if line["event"] == "request"]
    assert dict(zip(RETRIES, logged, strict=True)) == RETRIES
