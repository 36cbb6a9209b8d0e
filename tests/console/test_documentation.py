"""The documentation at `/docs` behind the real server: its pages, and nothing beside them."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urljoin

import httpx2
import pytest

from tests.support.gateway import TIMEOUT_SECONDS, Gateway, running_server
from tollhouse.base.clock import SystemClock
from tollhouse.console.documentation import BUILT, POLICY, built_site
from tollhouse.serving.server import http_server
from tollhouse.settings import ServerSettings
from tools.site import site_policy

START = b"<!doctype html><title>the start page</title>"
GUIDE = b"<!doctype html><title>a guide</title>"
BUILT_POLICY = site_policy(["c2NyaXB0"], ["c3R5bGU="])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A build as `tools.site` writes it, with a secret beside it."""
    built = tmp_path / "static"
    pages = {
        "index.html": START,
        "guides/limits/index.html": GUIDE,
        "assets/javascripts/bundle.1a2b.js": b"let a = 1;",
        "stylesheets/site.css": b"body{}",
    }
    for name, content in pages.items():
        path = built / f"{name}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content))
    (built / "picture.webp").write_bytes(b"RIFF")
    (built / POLICY).write_text(BUILT_POLICY)
    (tmp_path / "secret.html.gz").write_bytes(gzip.compress(b"a secret"))
    return built


@pytest.fixture
async def base_url(folder: Path) -> AsyncIterator[str]:
    site = built_site(folder, SystemClock())
    async with running_server(http_server(site, ServerSettings())) as (host, port):
        yield f"http://{host}:{port}"


@pytest.fixture
async def client(base_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(
        base_url=base_url, timeout=TIMEOUT_SECONDS, trust_env=False
    ) as opened:
        yield opened


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
@pytest.mark.parametrize(
    ("path", "content", "media_type", "caching"),
    [
        ("/docs/", START, "text/html; charset=utf-8", "no-cache"),
        ("/docs/index.html", START, "text/html; charset=utf-8", "no-cache"),
        ("/docs/guides/limits/", GUIDE, "text/html; charset=utf-8", "no-cache"),
        ("/docs/stylesheets/site.css", b"body{}", "text/css; charset=utf-8", "no-cache"),
        ("/docs/picture.webp", b"RIFF", "image/webp", "no-cache"),
        (
            "/docs/assets/javascripts/bundle.1a2b.js",
            b"let a = 1;",
            "text/javascript; charset=utf-8",
            "public, max-age=31536000, immutable",
        ),
    ],
)
async def test_a_page_or_file_is_served_to_anybody(
    client: httpx2.AsyncClient,
    encoding: str,
    path: str,
    content: bytes,
    media_type: str,
    caching: str,
) -> None:
    answer = await client.get(path, headers={"accept-encoding": encoding})

    assert (answer.status_code, answer.content) == (200, content)
    assert answer.headers["content-type"] == media_type
    assert answer.headers["cache-control"] == caching
    is_compressed = encoding == "gzip" and not path.endswith(".webp")
    assert answer.headers.get("content-encoding") == ("gzip" if is_compressed else None)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/docs", "/docs/"),
        ("/docs/guides/limits", "/docs/guides/limits/"),
        ("/docs/reference/errors/unknown_url/", "/docs/errors/unknown_url"),
        ("/docs/reference/errors/unknown_url", "/docs/errors/unknown_url"),
    ],
)
async def test_another_address_of_a_page_leads_to_it(
    client: httpx2.AsyncClient, path: str, target: str
) -> None:
    answer = await client.get(path)

    # Relative, so that it also leads there behind a proxy that puts a path before it.
    assert answer.status_code == 308
    assert urljoin(f"/llm{path}", answer.headers["location"]) == f"/llm{target}"


@pytest.mark.parametrize(
    "path", ["/docs/nothing", "/docs/guides", "/docs/guides/", "/docs/a/b/c/", "/docs/index.html/"]
)
async def test_an_unknown_page_is_404_and_leads_to_the_start_page(
    client: httpx2.AsyncClient, path: str
) -> None:
    answer = await client.get(path)

    assert answer.status_code == 404
    link = answer.text.partition('href="')[2].partition('"')[0]
    assert urljoin(path, link) == "/docs/"


@pytest.mark.parametrize("path", ["/docs/", "/docs/nothing", "/docs/picture.webp"])
async def test_every_answer_is_guarded(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)

    policy = answer.headers["content-security-policy"]
    assert policy == BUILT_POLICY
    assert policy.startswith("default-src 'none'; script-src 'self' 'sha256-c2NyaXB0'; style-src ")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "path",
    [
        "/docs/../secret.html",
        "/docs/guides/../../secret.html",
        "/docs/..%2fsecret.html",
        "/docs/%2e%2e/secret.html",
        "/docs//etc/passwd",
        f"/docs/{POLICY}",
        "/docs/index.html.gz",
    ],
)
async def test_nothing_but_the_build_can_be_reached(base_url: str, path: str) -> None:
    host, _, port = base_url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(TIMEOUT_SECONDS):
        answer = await reader.read()
    writer.close()

    assert answer.startswith(b"HTTP/1.1 404 ")


async def test_a_checkout_without_a_build_says_how_to_get_one(tmp_path: Path) -> None:
    site = built_site(tmp_path, SystemClock())
    transport = httpx2.ASGITransport(app=site)  # pyright: ignore[reportArgumentType]
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/docs/guides/limits/")
        start = await client.get("/docs")

    assert answer.status_code == 404
    assert "make docs" in answer.text
    assert '"../../errors"' in answer.text
    assert '"docs/errors"' in start.text


async def test_the_gateway_has_errors_and_documentation_below_the_same_path(
    gateway: Gateway,
) -> None:
    async with gateway.client() as client:
        documentation = await client.get("/docs/")
        errors = await client.get("/docs/errors")
        neighbour = await client.get("/docsx")

    built = BUILT / POLICY
    policy = built.read_text() if built.exists() else "default-src 'none'"
    assert documentation.headers["content-security-policy"] == policy
    assert "<h1>Errors</h1>" in errors.text
    assert (neighbour.status_code, neighbour.json()["error"]["code"]) == (404, "unknown_url")
