"""No header of a backend reaches a caller; none of a caller is repeated, or names a backend."""

import json

import pytest

from tests.support.deployment import Deployment, chat
from tests.support.upstream import running_upstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/chat/completions"
CANARY = "repeated-\u00e9"
BACKEND_HEADERS = {
    "set-cookie": f"session={CANARY}",
    "location": f"https://{CANARY}.example",
    "server": CANARY,
    "x-request-id": CANARY,
    "x-should-retry": CANARY,
    "x-ratelimit-remaining-requests": CANARY,
    "access-control-allow-origin": CANARY,
    "alt-svc": CANARY,
}
NAMES_OF_BACKENDS = (
    *("x-forwarded-host", "x-base-url", "x-portkey-custom-host", "x-upstream", "openai-base-url"),
    *("api-base", "x-tollhouse-backend", "x-original-url", "forwarded", "x-http-host-override"),
)


@pytest.mark.guarantee("T30")
@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("is_stream", [False, True])
async def test_no_header_of_a_backend_reaches_a_caller(
    deployment: Deployment, status: int, *, is_stream: bool
) -> None:
    script = json.dumps({"script": {"status": status, "headers": BACKEND_HEADERS}})
    async with deployment.customer() as client:
        answer = await client.post(PATH, json=chat(script, stream=is_stream))

    assert answer.is_success is (status == 200)
    assert len(deployment.upstream.seen) == 1
    assert CANARY not in f"{answer.headers}"
    assert {"set-cookie", "location", "server", "alt-svc"}.isdisjoint(answer.headers)


@pytest.mark.guarantee("T30")
@pytest.mark.parametrize("path", ["/nowhere", "/v1/models", PATH])
async def test_no_header_of_a_caller_is_repeated(deployment: Deployment, path: str) -> None:
    names = (
        *("x-request-id", "x-client-request-id", "x-service-session-id", "traceparent", "origin"),
        *("accept", "user-agent", "referer", "cookie", "x-forwarded-for", "content-language"),
        *("anthropic-version", "anthropic-beta", "idempotency-key", CANARY.encode().hex()),
    )
    method = "POST" if path == PATH else "GET"
    async with deployment.customer() as client:
        for name in names:
            headers = {name.encode(): CANARY.encode()}
            body = chat() if path == PATH else None
            answer = await client.request(method, path, json=body, headers=headers)

            assert answer.status_code < 500, name
            assert CANARY not in f"{answer.headers}{answer.text}", name
            assert CANARY.encode() not in answer.content, name


@pytest.mark.guarantee("T34")
async def test_no_caller_names_a_backend(deployment: Deployment) -> None:
    async with running_upstream() as other, deployment.customer() as client:
        host = other.base_url.removeprefix("http://").partition("/")[0]
        for name in ("host", *NAMES_OF_BACKENDS):
            for value in (host, other.base_url):
                answer = await client.post(PATH, json=chat(), headers={name: value})
                is_refused = name == "host" and value != host
                assert answer.status_code == (400 if is_refused else 200), name
        for name in ("base_url", "api_base", "backend", "endpoint"):
            answer = await client.post(PATH, json=chat(**{name: other.base_url}))
            assert answer.json()["error"]["code"] == "unknown_parameter"
        for model in (other.base_url, f"example/model-a@{host}"):
            answer = await client.post(PATH, json=chat() | {"model": model})
            assert answer.json()["error"]["code"] == "model_not_found"

        assert len(other.seen) == 0
        assert len(deployment.upstream.seen) == 2 * len(NAMES_OF_BACKENDS) + 1
