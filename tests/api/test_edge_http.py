"""Methods, media types, bodies where none belong, and queries."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import httpx2
import pytest
import pytest_asyncio

from tests.api.test_edge_envelope import PROJECTS, refusal
from tests.support.gateway import Gateway
from tests.support.organization_fixture import HeldAdminKey, OrganizationFixture
from tests.support.shared_gateway import database, database_url, gateway, org, settings
from tollhouse.projects.types import Project

__all__ = ["database", "database_url", "gateway", "org", "settings"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOT_ALLOWED = {
    ("PUT", PROJECTS): "GET, HEAD, OPTIONS, POST",
    ("DELETE", PROJECTS): "GET, HEAD, OPTIONS, POST",
    ("TRACE", PROJECTS): "GET, HEAD, OPTIONS, POST",
    ("PUT", "/v1/organization/admin_api_keys"): "GET, HEAD, OPTIONS",
    ("GET", "/v1/chat/completions"): "OPTIONS, POST",
    ("POST", "/v1/models/a/b"): "GET, HEAD, OPTIONS",
    ("DELETE", f"{PROJECTS}/x"): "GET, HEAD, OPTIONS, PATCH, POST",
}
ACCEPTED_MEDIA = (
    "application/json",
    "Application/JSON",
    "application/json;charset=utf-8",
    'application/json; charset="UTF-8"',
    "application/json; charset=utf8",
    "application/json ; version=1",
    "application/json;",
)
REFUSED_MEDIA = (
    "",
    "json",
    "*/*",
    "application/*",
    "text/plain",
    "text/json",
    "application/jsonx",
    "application/json-seq",
    "application/vnd.api+json",
    "application/x-ndjson",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json, text/plain",
    "application/json application/json",
    "application/json; charset=latin1",
    "application/json; charset=utf-16",
    "application/json; charset=utf-8; charset=latin1",
    "application/json; charset=",
)


@pytest_asyncio.fixture(loop_scope="module")
async def admin(org: OrganizationFixture) -> HeldAdminKey:
    return await org.admin_key()


@pytest.fixture
def client(gateway: Gateway, admin: HeldAdminKey) -> httpx2.AsyncClient:
    return gateway.client(admin.value)


@pytest_asyncio.fixture(loop_scope="module")
async def project(org: OrganizationFixture) -> Project:
    return await org.project()


async def create(
    client: httpx2.AsyncClient, headers: list[tuple[str, str]], name: str = "x"
) -> httpx2.Response:
    return await client.post(
        PROJECTS,
        content=b'{"name":"%b"}' % name.encode(),
        headers=[("Idempotency-Key", f"creation {headers}"), *headers],
    )


async def test_a_method_that_a_path_does_not_have_is_told_those_that_it_has(
    gateway: Gateway,
) -> None:
    async with gateway.client() as client:
        answers = await asyncio.gather(*(client.request(*case) for case in NOT_ALLOWED))

    assert {answer.status_code for answer in answers} == {405}
    told = [answer.headers["allow"] for answer in answers]
    assert dict(zip(NOT_ALLOWED, told, strict=True)) == NOT_ALLOWED


async def test_a_head_is_a_get_without_content(
    client: httpx2.AsyncClient, gateway: Gateway
) -> None:
    varying = {"x-request-id", "date"}

    def fixed(answer: httpx2.Response) -> Mapping[str, str]:
        return {name: value for name, value in answer.headers.items() if name not in varying}

    async with client, gateway.client() as nobody:
        pairs = [
            (await client.head(PROJECTS), await client.get(PROJECTS)),
            (await nobody.head(PROJECTS), await nobody.get(PROJECTS)),
            (await client.head("/nowhere"), await client.get("/nowhere")),
        ]

    assert [head.status_code for head, _ in pairs] == [200, 401, 404]
    for head, get in pairs:
        assert head.content == b""
        assert (head.status_code, fixed(head)) == (get.status_code, fixed(get))


async def test_options_are_told_to_anybody_and_without_content(gateway: Gateway) -> None:
    async with gateway.client() as client:
        known = await client.options(PROJECTS)
        counting = await client.options("/v1/messages/count_tokens")
        unknown = await client.options("/nowhere")

    assert (known.status_code, known.content) == (204, b"")
    assert known.headers["allow"] == "GET, HEAD, OPTIONS, POST"
    assert "content-length" not in known.headers
    assert counting.headers["request-id"] == counting.headers["x-request-id"]
    assert refusal(unknown) == (404, "unknown_url")


async def test_json_is_taken_with_any_parameter_and_in_utf_8(client: httpx2.AsyncClient) -> None:
    async with client:
        answers = [await create(client, [("Content-Type", media)]) for media in ACCEPTED_MEDIA]

    statuses = [answer.status_code for answer in answers]
    assert dict(zip(ACCEPTED_MEDIA, statuses, strict=True)) == dict.fromkeys(ACCEPTED_MEDIA, 200)


async def test_any_other_media_type_is_refused_with_the_one_that_would_do(
    client: httpx2.AsyncClient,
) -> None:
    headers = [[("Content-Type", media)] for media in REFUSED_MEDIA]
    headers += [[], [("Content-Type", "application/json")] * 2]

    async with client:
        answers = [await create(client, case) for case in headers]
        created = (await client.get(PROJECTS)).json()["data"]

    told = [(*refusal(answer), answer.headers.get("accept")) for answer in answers]
    assert told == [(415, "unsupported_media_type", "application/json")] * len(headers)
    assert created == []


@pytest.mark.guarantee("T26")
async def test_a_compressed_body_is_refused_with_what_would_do(
    client: httpx2.AsyncClient,
) -> None:
    codings = ("gzip", "br", "deflate", "zstd", "identity, gzip", "x", "")

    async with client:
        answers = [
            await create(
                client, [("Content-Type", "application/json"), ("Content-Encoding", coding)]
            )
            for coding in codings
        ]

    told = [(*refusal(answer), answer.headers.get("accept-encoding")) for answer in answers]
    expected = (415, "unsupported_media_type", "identity")
    assert dict(zip(codings, told, strict=True)) == dict.fromkeys(codings, expected)


async def test_the_coding_that_is_none_is_taken_in_any_case(client: httpx2.AsyncClient) -> None:
    json = ("Content-Type", "application/json")

    async with client:
        plain = await create(client, [json, ("Content-Encoding", "identity")])
        other_case = await create(client, [json, ("Content-Encoding", "Identity")])

    assert [plain.status_code, other_case.status_code] == [200, 200]


async def test_where_no_body_belongs_an_empty_one_is_taken_whatever_it_claims_to_be(
    client: httpx2.AsyncClient, project: Project
) -> None:
    archive = f"/v1/organization/projects/{project.id}/archive"

    async def nothing() -> AsyncIterator[bytes]:
        return
        yield b""

    async with client:
        answers = [
            await client.post(archive),
            await client.post(archive, headers={"Content-Type": "application/json"}),
            await client.post(archive, headers={"Content-Type": "text/plain"}),
            await client.post(archive, content=nothing()),
            await client.request("GET", PROJECTS, headers={"Content-Type": "application/json"}),
        ]

    assert [answer.status_code for answer in answers] == [200] * 5
    assert answers[0].json() == {
        "id": str(project.id),
        "object": "organization.project.deleted",
        "deleted": True,
    }


async def test_where_no_body_belongs_any_content_is_refused_and_nothing_is_done(
    client: httpx2.AsyncClient, project: Project, admin: HeldAdminKey
) -> None:
    async def some() -> AsyncIterator[bytes]:
        yield b"{"
        yield b"}"

    async with client:
        answers = [
            await client.post(f"/v1/organization/projects/{project.id}/archive", json={}),
            await client.post(f"/v1/organization/projects/{project.id}/archive", content=b" "),
            await client.post(f"/v1/organization/projects/{project.id}/archive", content=some()),
            await client.request(
                "DELETE", f"/v1/organization/admin_api_keys/{admin.key.id}", json={}
            ),
            await client.request("GET", PROJECTS, json={}),
        ]
        still = await client.get(f"{PROJECTS}/{project.id}")

    assert [refusal(answer) for answer in answers] == [(400, "invalid_json")] * 5
    assert still.json()["status"] == "active"


QUERIES = {
    "unknown=1": (400, "unknown_parameter", "unknown"),
    "limit=1&unknown": (400, "unknown_parameter", "unknown"),
    "Limit=1": (400, "unknown_parameter", "Limit"),
    "limit[]=1": (400, "unknown_parameter", "limit[]"),
    "limit=1&limit=1": (400, "invalid_value", "limit"),
    "limit=1&limit=2": (400, "invalid_value", "limit"),
    "limit=": (400, "invalid_type", "limit"),
    "limit": (400, "invalid_type", "limit"),
    "limit=x": (400, "invalid_type", "limit"),
    "limit=1.0": (400, "invalid_type", "limit"),
    "limit=1e1": (400, "invalid_type", "limit"),
    "limit=%2B1": (400, "invalid_type", "limit"),
    "limit=+1": (400, "invalid_type", "limit"),
    "limit=1_0": (400, "invalid_type", "limit"),
    "limit=%D9%A1": (400, "invalid_type", "limit"),
    "limit=0": (400, "integer_below_min_value", "limit"),
    "limit=-1": (400, "integer_below_min_value", "limit"),
    "limit=101": (400, "integer_above_max_value", "limit"),
    f"limit={10**4000}": (400, "integer_above_max_value", "limit"),
    f"limit={'9' * 5000}": (400, "invalid_type", "limit"),
    "after=": (400, "string_below_min_length", "after"),
    "after=x": (400, "invalid_value", "after"),
    f"after={'x' * 201}": (400, "string_above_max_length", "after"),
    "after=00000000-0000-0000-0000-000000000000": (400, "invalid_value", "after"),
    "limit=%00": (400, "invalid_value", None),
    "limit=%": (400, "invalid_value", None),
    "limit=%zz": (400, "invalid_value", None),
    "limit=%ff": (400, "invalid_value", None),
    "%00=1": (400, "invalid_value", None),
}


async def test_a_query_of_an_organization_route_is_read_strictly(
    client: httpx2.AsyncClient,
) -> None:
    async with client:
        answers = await asyncio.gather(*(client.get(f"{PROJECTS}?{query}") for query in QUERIES))

    told = [(*refusal(answer), answer.json()["error"]["param"]) for answer in answers]
    assert dict(zip(QUERIES, told, strict=True)) == QUERIES


async def test_a_query_may_be_empty_and_percent_encoded(client: httpx2.AsyncClient) -> None:
    async with client:
        answers = [await client.get(f"{PROJECTS}{query}") for query in ("?", "?&&", "?l%69mit=%31")]

    assert [answer.status_code for answer in answers] == [200, 200, 200]


async def test_organization_routes_without_parameters_refuse_unknown_ones_as_well(
    client: httpx2.AsyncClient, project: Project, admin: HeldAdminKey
) -> None:
    given, ours = "/v1/organization", PROJECTS
    named = {"Idempotency-Key": "creation-1"}

    async with client:
        answers = [
            await client.get(f"{ours}/{project.id}?unknown=1"),
            await client.post(f"{ours}?unknown=1", json={"name": "x"}, headers=named),
            await client.patch(f"{ours}/{project.id}?unknown=1", json={"name": "y"}),
            await client.post(f"{given}/projects/{project.id}/archive?unknown=1"),
            await client.delete(f"{given}/admin_api_keys/{admin.key.id}?unknown=1"),
        ]
        projects = (await client.get(ours)).json()["data"]

    assert [refusal(answer) for answer in answers] == [(400, "unknown_parameter")] * 5
    assert [(item["name"], item["status"]) for item in projects] == [("a project", "active")]
