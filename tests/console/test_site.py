"""The console's files behind the real server: whatever is asked for, only they are given."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.support.gateway import TIMEOUT_SECONDS, Gateway, running_server
from tollhouse.base.clock import SystemClock
from tollhouse.console import files
from tollhouse.console.site import CONTENT_SECURITY_POLICY, Site
from tollhouse.serving.server import http_server
from tollhouse.settings import ServerSettings

PAGE = b"<!doctype html><title>the console</title>"
SCRIPT = b"export const toll = 1;" * 50


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A build, with a secret beside it and a file that is no part of the site."""
    built = tmp_path / "static"
    (built / "assets").mkdir(parents=True)
    (built / ".vite").mkdir()
    (built / "index.html.gz").write_bytes(gzip.compress(PAGE))
    (built / "mark.svg.gz").write_bytes(gzip.compress(b"<svg/>"))
    (built / "assets" / "index-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT))
    (built / "assets" / "index-3c4d.css.gz").write_bytes(gzip.compress(b"body{}"))
    (built / ".vite" / "manifest.json").write_bytes(b"{}")
    (tmp_path / "secret.html").write_bytes(b"a secret")
    return built


@pytest.fixture
async def base_url(folder: Path) -> AsyncIterator[str]:
    site = Site(files.read(folder), SystemClock())
    async with running_server(http_server(site, ServerSettings())) as (host, port):
        yield f"http://{host}:{port}"


@pytest.fixture
async def client(base_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(
        base_url=base_url, timeout=TIMEOUT_SECONDS, trust_env=False
    ) as opened:
        yield opened


@pytest.mark.parametrize(
    "path", ["/console", "/console/", "/console/costs", "/console/policies/pol_1", "/console/?a=b"]
)
async def test_every_page_is_the_one_page(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)

    assert answer.status_code == 200
    assert answer.content == PAGE
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("path", "media_type", "caching"),
    [
        (
            "/console/assets/index-1a2b.js",
            "text/javascript; charset=utf-8",
            "public, max-age=31536000, immutable",
        ),
        (
            "/console/assets/index-3c4d.css",
            "text/css; charset=utf-8",
            "public, max-age=31536000, immutable",
        ),
        ("/console/mark.svg", "image/svg+xml", "no-cache"),
    ],
)
async def test_a_file_has_its_type_and_its_time(
    client: httpx2.AsyncClient, path: str, media_type: str, caching: str
) -> None:
    answer = await client.get(path)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == media_type
    assert answer.headers["cache-control"] == caching


@pytest.mark.parametrize("path", ["/console", "/console/mark.svg", "/console/assets/none.js"])
async def test_every_answer_is_guarded(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)

    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in answer.headers
    assert "set-cookie" not in answer.headers


async def test_a_file_is_sent_compressed_to_whoever_takes_that(client: httpx2.AsyncClient) -> None:
    path = "/console/assets/index-1a2b.js"

    compressed = await client.get(path, headers={"accept-encoding": "deflate, gzip"})
    plain = await client.get(path, headers={"accept-encoding": "identity, gzip;q=0"})

    assert compressed.headers["content-encoding"] == "gzip"
    assert int(compressed.headers["content-length"]) < len(SCRIPT)
    assert "content-encoding" not in plain.headers
    assert compressed.content == plain.content == SCRIPT
    assert compressed.headers["vary"] == "accept-encoding"


async def test_what_is_known_is_not_sent_again(client: httpx2.AsyncClient) -> None:
    first = await client.get("/console")

    again = await client.get("/console", headers={"if-none-match": first.headers["etag"]})
    other = await client.get("/console", headers={"if-none-match": 'W/"another"'})

    assert again.status_code == 304
    assert again.content == b""
    assert other.status_code == 200


async def test_head_is_get_without_the_content(client: httpx2.AsyncClient) -> None:
    answer = await client.head("/console", headers={"accept-encoding": "identity"})

    assert answer.status_code == 200
    assert answer.headers["content-length"] == str(len(PAGE))
    assert answer.content == b""


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_files_can_only_be_read(client: httpx2.AsyncClient, method: str) -> None:
    answer = await client.request(method, "/console")

    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


async def test_a_body_that_nobody_asked_for_costs_the_connection(
    client: httpx2.AsyncClient,
) -> None:
    answer = await client.request("GET", "/console", content=b"x")

    assert answer.status_code == 200
    assert answer.headers["connection"] == "close"


async def test_a_file_that_was_never_built_is_not_a_page(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/console/assets/index-0000.js")

    assert answer.status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/console/../secret.html",
        "/console/assets/../../secret.html",
        "/console/assets/../../../etc/passwd",
        "/console/..%2fsecret.html",
        "/console/%2e%2e/secret.html",
        "/console//etc/passwd",
        "/console/.vite/manifest.json",
        "/console/assets/index-1a2b.js/../../../secret.html",
        "/console/assets%00/index-1a2b.js",
        "/console/assets/",
        "/console/assets",
        "/console/..\\secret.html",
    ],
)
async def test_nothing_but_the_build_can_be_reached(base_url: str, path: str) -> None:
    host, _, port = base_url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(TIMEOUT_SECONDS):
        answer = await reader.read()
    writer.close()

    assert answer.endswith((PAGE, b"No such file."))


async def test_a_checkout_without_a_build_says_how_to_get_one(tmp_path: Path) -> None:
    site = Site(files.read(tmp_path / "static"), SystemClock())
    transport = httpx2.ASGITransport(app=site)  # pyright: ignore[reportArgumentType]
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/console")

    assert answer.status_code == 503
    assert "make console" in answer.text
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY


async def test_the_gateway_gives_the_console_to_anybody_and_nothing_else_of_that_name(
    gateway: Gateway,
) -> None:
    async with gateway.client() as client:
        console = await client.get("/console")
        neighbour = await client.get("/consoles")

    assert console.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert console.headers["content-type"] == "text/html; charset=utf-8"
    assert neighbour.status_code == 404
    assert neighbour.json()["error"]["code"] == "unknown_url"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_start_page_leads_to_the_console(gateway: Gateway, method: str) -> None:
    async with gateway.client() as client:
        answer = await client.request(method, "/")

    assert (answer.status_code, answer.headers["location"]) == (307, "console")
    assert answer.url.join(answer.headers["location"]).path == "/console"


async def test_only_the_start_page_itself_leads_there(gateway: Gateway) -> None:
    async with gateway.client() as client:
        assert (await client.get("/x")).status_code == 404
        assert (await client.post("/")).status_code == 405
