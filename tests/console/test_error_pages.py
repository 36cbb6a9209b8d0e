"""The pages of error codes behind the real server, and the addresses that lead to them."""

import asyncio
import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

import httpx2
import msgspec
import pytest

from tests.support.gateway import TIMEOUT_SECONDS, Gateway, running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.settings import ErrorSettings, Settings
from tools.reference.error_pages import CONTENT_SECURITY_POLICY, error_body
from tools.reference.errors import by_code, descriptions

ROOT = Path(__file__).parents[2]
PUBLIC_URL = "https://gateway.example/llm/"


class Links(HTMLParser):
    """The targets of all links of a page, and every kind of element that it has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.elements: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.targets += [value for name, value in attrs if name == "href" and value]


@pytest.fixture
async def client(gateway: Gateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.client() as opened:
        yield opened


def published(settings: Settings, **errors: str) -> Settings:
    server = msgspec.structs.replace(settings.server, public_url=PUBLIC_URL)
    return msgspec.structs.replace(settings, server=server, errors=ErrorSettings(**errors))


async def test_every_code_has_a_page_that_anybody_can_read(client: httpx2.AsyncClient) -> None:
    for code in by_code():
        answer = await client.get(f"/docs/errors/{code}")

        assert answer.status_code == 200, code
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert f"<h1>{code}</h1>" in answer.text
        assert "What to do" in answer.text


@pytest.mark.parametrize("index", ["/docs/errors", "/docs/errors/"])
async def test_the_index_leads_to_every_page_and_each_page_back(
    client: httpx2.AsyncClient, index: str
) -> None:
    listed = await client.get(index)

    pages = [urljoin(index, target) for target in Links(listed.text).targets]
    pages = [page for page in pages if page.startswith("/docs/errors/")]
    assert pages == [f"/docs/errors/{code}" for code in by_code()]
    for page in pages:
        back = Links((await client.get(page)).text).targets
        assert urljoin(page, back[0]) == "/docs/errors"


@pytest.mark.parametrize(
    "path", ["/docs/errors", "/docs/errors/", "/docs/errors/credit_balance_exhausted"]
)
async def test_a_remedy_leads_to_its_guide(client: httpx2.AsyncClient, path: str) -> None:
    targets = Links((await client.get(path)).text).targets

    assert "/docs/guides/credits-and-caps/" in [urljoin(path, target) for target in targets]
    assert (ROOT / "docs/guides/credits-and-caps.md").is_file()


async def test_a_page_runs_nothing_and_loads_nothing(client: httpx2.AsyncClient) -> None:
    for path in ("/docs/errors", "/docs/errors/unsupported_parameter", "/docs/errors/none"):
        answer = await client.get(path)

        policy = answer.headers["content-security-policy"]
        assert policy == CONTENT_SECURITY_POLICY
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert not Links(answer.text).elements & {"script", "link", "img", "iframe", "form"}


async def test_text_of_the_data_is_shown_as_text(client: httpx2.AsyncClient) -> None:
    described = {each.code: each for each in descriptions()}
    evil = msgspec.structs.replace(
        described["unknown_url"],
        meanings=["<script>alert(1)</script>", "`<b>`"],
        remedy='[<i>x</i>](../../guides/"><script>.md) & more',
    )

    page = error_body(evil)

    assert Links(page).elements & {"script", "b", "i"} == set()
    assert "&lt;script&gt;" in page


async def test_no_markdown_is_left_in_a_page(client: httpx2.AsyncClient) -> None:
    for code in by_code():
        page = (await client.get(f"/docs/errors/{code}")).text

        assert "`" not in page
        assert re.search(r"\]\(", page) is None


async def test_a_page_that_is_known_is_not_sent_again(client: httpx2.AsyncClient) -> None:
    first = await client.get("/docs/errors/invalid_json")

    again = await client.get(
        "/docs/errors/invalid_json", headers={"if-none-match": first.headers["etag"]}
    )
    head = await client.head("/docs/errors/invalid_json")

    assert first.headers["cache-control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(first.content))
    assert head.headers["etag"] == first.headers["etag"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_pages_can_only_be_read(client: httpx2.AsyncClient, method: str) -> None:
    answer = await client.request(method, "/docs/errors/invalid_json")

    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


async def test_a_slash_too_many_leads_to_the_page(client: httpx2.AsyncClient) -> None:
    path = "/docs/errors/invalid_json/"

    answer = await client.get(path)

    # Relative, so that it also leads there behind a proxy that puts a path before it.
    assert (answer.status_code, urljoin(path, answer.headers["location"])) == (308, path[:-1])


@pytest.mark.parametrize(
    "path",
    [
        "/docs/errors/no_such_code",
        "/docs/errors/no_such_code/",
        "/docs/errors/a/b",
        "/docs/errors/a/b/",
    ],
)
async def test_the_page_of_an_unknown_code_leads_to_the_index_from_any_depth(
    client: httpx2.AsyncClient, path: str
) -> None:
    answer = await client.get(path)

    assert answer.status_code == 404
    links = Links(answer.text).targets
    assert [urljoin(f"/llm{path}", link) for link in links] == ["/llm/docs/errors"]


@pytest.mark.parametrize(
    "path", ["/docs/errors/no_such_code", "/docs/errors/../errors.json", "/docs/errors/a/b"]
)
async def test_an_unknown_code_is_404_with_a_way_to_the_index(gateway: Gateway, path: str) -> None:
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(TIMEOUT_SECONDS):
        answer = await reader.read()
    writer.close()

    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b'errors">All errors</a>' in answer


async def test_every_error_has_the_address_of_its_page_below_the_public_one(
    settings: Settings,
) -> None:
    evil = {"host": "evil.example", "x-forwarded-host": "evil.example"}

    async with running_gateway(published(settings)) as gateway, gateway.client() as client:
        refused = [
            await client.get("/nowhere", headers=evil),
            await client.post("/v1/chat/completions", headers=evil, json={}),
            await client.post("/v1/responses", headers=evil, json={}),
            await client.post("/v1/messages/count_tokens", headers=evil, json={}),
            await client.get("/nowhere", headers={"x-large": "x" * 70_000}),
        ]
        errors = [answer.json()["error"] for answer in refused]
        pages = [
            await client.get(error["doc_url"].removeprefix("https://gateway.example/llm"))
            for error in errors
        ]

    assert [error["doc_url"] for error in errors] == [
        f"https://gateway.example/llm/docs/errors/{error['code']}" for error in errors
    ]
    assert [page.status_code for page in pages] == [200] * len(pages)


async def test_another_place_may_have_the_pages(settings: Settings) -> None:
    elsewhere = published(settings, documentation_url="https://docs.example/errors/")

    async with running_gateway(elsewhere) as gateway, gateway.client() as client:
        answer = await client.get("/nowhere")

    assert answer.json()["error"]["doc_url"] == "https://docs.example/errors/unknown_url"


async def test_without_a_public_address_there_is_none_in_errors(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    key = await org.project_key(await org.project())

    async with gateway.client(key.value) as client:
        answers = [
            await client.post("/v1/chat/completions", json={}),
            await client.post("/v1/messages/count_tokens", json={}),
        ]

    assert [answer.json()["error"]["doc_url"] for answer in answers] == [None, None]
