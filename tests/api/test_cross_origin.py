"""Browsers: named origins may call `/v1` and `/compat`; without them nothing differs."""

import re

import httpx2
import msgspec
import pytest

from tests.support.deployment import Deployment, chat, offering, open_deployment
from tests.support.organization_fixture import OrganizationFixture
from tests.support.own_customer import deployment
from tests.support.shared_deployment import gateway, upstream
from tests.support.shared_gateway import database, database_url, org, settings
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

__all__ = [
    "database",
    "database_url",
    "deployment",
    "gateway",
    "org",
    "settings",
    "upstream",
]

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/v1/chat/completions"
ORIGIN, OTHER = "https://app.example", "http://localhost:5173"
PREFLIGHT = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,x-stainless-lang",
}
VARIES = re.compile(
    r"chatcmpl-[0-9a-f]+|[0-9a-f]{8}-[0-9a-f-]{27}"
    r"|\"created\":[0-9]+|[A-Z][a-z]{2}, [0-9: A-Za-z]+GMT"
)


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    server = msgspec.structs.replace(settings.server, cors_origins=(ORIGIN, OTHER))
    return offering(msgspec.structs.replace(settings, server=server), upstream.base_url)


def cors(answer: httpx2.Response) -> dict[str, str]:
    return {
        name: value for name, value in answer.headers.items() if name.startswith("access-control")
    }


@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/compat/anthropic/v1/messages"])
async def test_a_preflight_needs_no_key(deployment: Deployment, path: str) -> None:
    async with deployment.gateway.client() as client:
        answer = await client.options(path, headers={"origin": OTHER, **PREFLIGHT})

    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["vary"] == "Origin"
    found = cors(answer)
    assert found.pop("access-control-expose-headers").startswith("x-request-id, ")
    assert found == {
        "access-control-allow-origin": OTHER,
        "access-control-allow-methods": "DELETE, GET, PATCH, POST",
        "access-control-allow-headers": "Authorization, *",
        "access-control-max-age": "600",
    }


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_script_reads_answers_and_their_headers(
    deployment: Deployment, *, is_stream: bool
) -> None:
    async with deployment.customer() as client:
        answer = await client.post(CHAT, json=chat(stream=is_stream), headers={"origin": ORIGIN})

    assert answer.status_code == 200
    found = cors(answer)
    exposed = found.pop("access-control-expose-headers").split(", ")
    assert found == {"access-control-allow-origin": ORIGIN}
    assert answer.headers["vary"] == "Origin"
    limits = [name for name in answer.headers if name.startswith("x-ratelimit-")]
    assert set(limits) <= set(exposed)
    assert {"x-request-id", "retry-after", "x-ratelimit-remaining-tokens"} <= set(exposed)


async def test_a_script_reads_refusals_too(deployment: Deployment) -> None:
    async with deployment.gateway.client("wrong") as client:
        answers = [
            await client.post(CHAT, json=chat(), headers={"origin": ORIGIN}),
            await client.options("/v1/nothing", headers={"origin": ORIGIN, **PREFLIGHT}),
        ]

    assert [answer.status_code for answer in answers] == [401, 404]
    for answer in answers:
        assert cors(answer).keys() == {
            "access-control-allow-origin",
            "access-control-expose-headers",
        }


@pytest.mark.parametrize(
    "origin",
    [
        *("https://app.example.evil.example", "https://app.example:443", "https://App.example"),
        *("http://app.example", "null", "*", "", "https://app.example/", f"{ORIGIN}, {OTHER}"),
    ],
)
async def test_other_origins_are_not_named(deployment: Deployment, origin: str) -> None:
    async with deployment.customer() as client:
        asked = await client.options(CHAT, headers={"origin": origin, **PREFLIGHT})
        called = await client.get("/v1/models", headers={"origin": origin})

    assert (asked.status_code, called.status_code) == (204, 200)
    assert cors(asked) == cors(called) == {}
    assert asked.headers["vary"] == called.headers["vary"] == "Origin"


async def test_two_origins_in_one_request_are_none(deployment: Deployment) -> None:
    async with deployment.customer() as client:
        answer = await client.get("/v1/models", headers=[("origin", ORIGIN), ("origin", OTHER)])

    assert cors(answer) == {}


@pytest.mark.parametrize("path", ["/manage/v1/organization/requests", "/console/", "/docs/", "/"])
async def test_other_paths_are_as_before(deployment: Deployment, path: str) -> None:
    async with deployment.gateway.client() as client:
        answer = await client.options(path, headers={"origin": ORIGIN, **PREFLIGHT})

    assert cors(answer) == {}


async def test_without_origins_an_answer_has_the_same_bytes(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> None:
    """What a browser adds to a request changes no byte of an answer but its IDs and times."""
    async with (
        open_deployment(offering(settings, upstream.base_url), upstream, org) as without,
        without.customer() as client,
    ):
        for method, path, body in (
            ("POST", CHAT, chat()),
            ("POST", CHAT, chat(stream=True)),
            ("POST", CHAT, {}),
            ("OPTIONS", CHAT, None),
            ("GET", "/v1/models", None),
        ):
            plain = await client.request(method, path, json=body)
            asked = await client.request(
                method, path, json=body, headers={"origin": ORIGIN, **PREFLIGHT}
            )
            assert _bytes(asked) == _bytes(plain)
            assert "vary" not in asked.headers


def _bytes(answer: httpx2.Response) -> tuple[int, str]:
    """Status, headers in their order, and body, without what differs between any two answers."""
    lines = [f"{name}: {value}" for name, value in answer.headers.multi_items()]
    counted = [line for line in lines if not line.startswith("x-ratelimit-re")]
    return answer.status_code, VARIES.sub("*", "\n".join([*counted, answer.text]))
