"""Requests byte by byte: hosts, paths, and bodies that do not end as they should."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from statistics import median

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.api.test_edge_envelope import PROJECTS
from tests.serving.raw import Observation, exchange
from tests.support.gateway import Gateway, running_gateway, settings_for
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_gateway import database, database_url, gateway, org
from tollhouse.settings import Settings

__all__ = ["database", "database_url", "gateway", "org"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

BODY_BYTES_MAX = 100_000
BODY_SECONDS = 60.0
HASTY_BODY_SECONDS = 1.0
"""Where a body that does not come is waited for."""

CREATION = b'{"name":"x"}'
PAST_THE_LIMIT_BYTES_MAX = 65_536

SOUND_HOSTS = (
    b"localhost",
    b"gateway.example",
    b"GATEWAY.Example",
    b"gateway.example:8080",
    b"gateway.example.",
    b"a-b.c_d.example",
    b"xn--bcher-kva.example",
    b"1.example",
    b"127.0.0.1",
    b"127.0.0.1:1",
    b"[::1]",
    b"[::1]:65535",
    b"[fe80::1:2]:80",
    b"[::ffff:127.0.0.1]",
    b"x",
)
MALFORMED_HOSTS = (
    b"",
    b" ",
    b"a b",
    b"a/b",
    b"/",
    b"x/health?y=",
    b"a?b",
    b"a#b",
    b"a@b",
    b"user:password@a",
    b"a,b",
    b"a;b",
    b"a:b",
    b"a:123456",
    b"a:-1",
    b"a:80:80",
    b":80",
    b".a",
    b"-a",
    b"*",
    b"a'b",
    b'a"b',
    b"a<b>",
    b"a\\b",
    b"a%20b",
    b"a%00b",
    b"a\xe4b",
    b"http://a",
    b"//a",
    b"::1",
    b"[::1",
    b"::1]",
    b"[]",
    b"[::g]",
    b"[::1]a",
    b"[::1%25eth0]",
    b"${jndi:a}",
    b"a\tb",
)

NO_ROUTE = (
    f"{PROJECTS}/",
    f"/{PROJECTS}",
    f"{PROJECTS}//",
    f"{PROJECTS};x=1",
    f"{PROJECTS}%00",
    f"{PROJECTS}%20",
    f"{PROJECTS}%3Fx",
    f"{PROJECTS}/x%00",
    "/manage/v1/organization/./projects",
    "/manage/v1/organization/x/../projects",
    "/manage/v1/organization/%2e/projects",
    "/manage/v1/ORGANIZATION/projects",
    "/v1/models/",
    "/v1/models/a%00b",
    "/v1/organization/projects",
    "/v1",
    "/metrics",
    "/livez",
    "/" + "x" * 50_000,
    "/manage/v1/organization%2Fprojects",
    "/manage%2Fv1%2Forganization%2Fprojects",
    "/manage/v1/organization%2fprojects",
    "/manage/v1/organization/pro%6Aects",
    "/manage/v1/%6Frganization/projects",
    "/%6Danage/v1/organization/projects",
    "/v1/%6Frganization/admin_api_keys",
    "/v1/m%6Fdels/a",
)
NO_PROJECT = (
    f"{PROJECTS}/x",
    f"{PROJECTS}/%zz",
    f"{PROJECTS}/%",
    f"{PROJECTS}/%ff",
    f"{PROJECTS}/%252F",
    f"{PROJECTS}/..",
    f"{PROJECTS}/'%20OR%201=1",
    f"{PROJECTS}/{'x' * 50_000}",
)


@dataclass(frozen=True)
class Stage:
    gateway: Gateway
    key: str

    async def send(self, *segments: bytes, is_half_closed: bool = False) -> Observation:
        address = self.gateway.host, self.gateway.port
        return await exchange(address, *segments, is_half_closed=is_half_closed)

    def head(self, method: str, path: str, *headers: bytes) -> bytes:
        """A request of the Admin key, up to and with the empty line."""
        lines = (
            f"{method} {path} HTTP/1.1".encode(),
            f"Authorization: Bearer {self.key}".encode(),
            *headers,
        )
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def creation(self, *headers: bytes) -> bytes:
        """The head of a creation of a project."""
        return self.head(
            "POST",
            PROJECTS,
            b"Host: localhost",
            b"Content-Type: application/json",
            b"Idempotency-Key: creation-1",
            *headers,
        )

    async def project_count(self) -> int:
        async with self.gateway.client(self.key) as client:
            return len((await client.get(PROJECTS)).json()["data"])


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return settings_for(database_url, body_bytes_max=BODY_BYTES_MAX, body_seconds=BODY_SECONDS)


@pytest_asyncio.fixture(loop_scope="module")
async def stage(gateway: Gateway, org: OrganizationFixture) -> Stage:
    admin = await org.admin_key()
    return Stage(gateway, admin.value)


@pytest_asyncio.fixture(loop_scope="module")
async def impatient(settings: Settings, org: OrganizationFixture) -> AsyncIterator[Stage]:
    """A gateway that gives a body up soon."""
    admin = await org.admin_key()
    server = replace(settings.server, body_seconds=HASTY_BODY_SECONDS)
    async with running_gateway(replace(settings, server=server)) as gateway:
        yield Stage(gateway, admin.value)


def told(observation: Observation) -> tuple[int, str | None]:
    """Status and code of the one answer; nothing else may have come."""
    (response,) = observation.responses
    assert observation.leftover == b""
    if response.status == 200:
        return 200, None
    error = json.loads(response.body)["error"]
    assert error["request_id"] == response.headers["x-request-id"]
    return response.status, error["code"]


async def send_all(stage: Stage, requests: Iterable[bytes]) -> list[tuple[int, str | None]]:
    return [told(seen) for seen in await asyncio.gather(*map(stage.send, requests))]


@pytest.mark.guarantee("T29")
async def test_a_host_is_a_name_or_an_address(stage: Stage) -> None:
    sound = [stage.head("GET", PROJECTS, b"Host: " + host) for host in SOUND_HOSTS]
    malformed = [stage.head("GET", PROJECTS, b"Host: " + host) for host in MALFORMED_HOSTS]

    taken = await send_all(stage, sound)
    refused = await send_all(stage, malformed)

    assert len({*SOUND_HOSTS, *MALFORMED_HOSTS}) >= 50
    assert dict(zip(SOUND_HOSTS, taken, strict=True)) == dict.fromkeys(SOUND_HOSTS, (200, None))
    expected = dict.fromkeys(MALFORMED_HOSTS, (400, "malformed_request"))
    assert dict(zip(MALFORMED_HOSTS, refused, strict=True)) == expected


@pytest.mark.guarantee("T29")
async def test_there_is_exactly_one_host_except_before_http_1_1(stage: Stage) -> None:
    none = stage.head("GET", PROJECTS)
    two = stage.head("GET", PROJECTS, b"Host: localhost", b"Host: localhost")
    old = none.replace(b"HTTP/1.1", b"HTTP/1.0")
    old_with_two = two.replace(b"HTTP/1.1", b"HTTP/1.0")

    answers = await send_all(stage, (none, two, old, old_with_two))

    refused = (400, "malformed_request")
    assert answers == [refused, refused, (200, None), refused]


@pytest.mark.guarantee("T29")
async def test_a_whole_address_in_the_request_line_leads_to_its_path(stage: Stage) -> None:
    target = f"http://elsewhere.example{PROJECTS}"

    answers = await send_all(stage, [stage.head("GET", target, b"Host: localhost")])

    assert answers == [(200, None)]


@pytest.mark.guarantee("T29")
async def test_a_path_is_taken_as_it_is_and_nobody_is_sent_elsewhere(stage: Stage) -> None:
    host = b"Host: localhost"

    unknown_urls = await send_all(stage, [stage.head("GET", path, host) for path in NO_ROUTE])
    unknown_projects = await send_all(stage, [stage.head("GET", path, host) for path in NO_PROJECT])

    assert len({*NO_ROUTE, *NO_PROJECT}) >= 35
    expected = dict.fromkeys(NO_ROUTE, (404, "unknown_url"))
    assert dict(zip(NO_ROUTE, unknown_urls, strict=True)) == expected
    expected = dict.fromkeys(NO_PROJECT, (404, "project_not_found"))
    assert dict(zip(NO_PROJECT, unknown_projects, strict=True)) == expected


@pytest.mark.guarantee("T29")
async def test_only_a_parameter_may_be_percent_encoded(
    stage: Stage, org: OrganizationFixture
) -> None:
    """What else is encoded leads nowhere: see above."""
    project = await org.project()
    path = f"{PROJECTS}/{project.id}".replace("-", "%2D")

    assert await send_all(stage, [stage.head("GET", path, b"Host: localhost")]) == [(200, None)]


async def test_options_are_held_to_the_same_http(stage: Stage) -> None:
    hosts = (b"Host: a/b", b"Host: a\r\nHost: a", b"X-Other: x")
    length = b"Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked"
    requests = [stage.head("OPTIONS", PROJECTS, headers) for headers in (*hosts, length)]

    answers = await send_all(stage, requests)

    assert answers == [(400, "malformed_request")] * len(requests)


async def test_a_caller_who_waits_to_be_asked_for_the_body_is_not_waited_for(stage: Stage) -> None:
    """In whatever case it says so: it will not send what it was not asked for."""
    for expected in (b"100-continue", b"100-Continue"):
        head = stage.creation(b"Content-Length: 100", b"Expect: " + expected)

        observation = await stage.send(head.replace(stage.key.encode(), b"key"))

        assert told(observation) == (401, "invalid_api_key")
        assert observation.is_closed, expected


@pytest.mark.guarantee("T29")
async def test_a_path_of_other_bytes_than_ascii_is_malformed(stage: Stage) -> None:
    request = stage.head("GET", "/PATH", b"Host: localhost").replace(b"PATH", b"\xc3\xa4")

    assert await send_all(stage, [request]) == [(400, "malformed_request")]


@pytest.mark.guarantee("T26")
async def test_a_declared_size_above_the_limit_is_refused_before_a_byte_is_sent(
    stage: Stage,
) -> None:
    observation = await stage.send(stage.creation(b"Content-Length: %d" % (BODY_BYTES_MAX + 1)))

    assert told(observation) == (413, "request_too_large")
    assert observation.responses[0].headers["connection"] == "close"


@pytest.mark.guarantee("T26")
async def test_a_body_may_be_as_large_as_the_limit_and_not_a_byte_larger(stage: Stage) -> None:
    whole, larger = CREATION.ljust(BODY_BYTES_MAX), CREATION.ljust(BODY_BYTES_MAX + 1)
    chunked = b"Transfer-Encoding: chunked"

    answers = [
        told(await stage.send(stage.creation(b"Content-Length: %d" % len(whole)) + whole)),
        told(await stage.send(stage.creation(b"Content-Length: %d" % len(larger)) + larger)),
        told(await stage.send(stage.creation(chunked) + chunk(whole) + chunk(b""))),
        told(await stage.send(stage.creation(chunked) + chunk(larger) + chunk(b""))),
    ]

    refused = (413, "request_too_large")
    assert answers == [(200, None), refused, (200, None), refused]


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


@pytest.mark.guarantee("T26")
async def test_a_chunked_body_is_refused_within_64_kb_past_the_limit(stage: Stage) -> None:
    pieces = (BODY_BYTES_MAX + PAST_THE_LIMIT_BYTES_MAX) // 4096
    head = stage.creation(b"Transfer-Encoding: chunked")

    observation = await stage.send(head, *[chunk(b" " * 4096)] * pieces)

    assert told(observation) == (413, "request_too_large")
    assert observation.seconds < BODY_SECONDS


async def test_a_body_is_not_waited_for_when_the_head_alone_is_refused(stage: Stage) -> None:
    head = stage.creation(b"Content-Length: 100").replace(stage.key.encode(), b"key")

    observation = await stage.send(head + b"{")

    assert told(observation) == (401, "invalid_api_key")
    assert observation.seconds < BODY_SECONDS


@pytest.mark.clock
async def test_a_body_that_stalls_is_given_up_and_its_connection_closed(impatient: Stage) -> None:
    observation = await impatient.send(impatient.creation(b"Content-Length: 100") + CREATION)

    assert told(observation) == (408, "request_timeout")
    assert observation.responses[0].headers["connection"] == "close"
    assert observation.is_closed
    assert HASTY_BODY_SECONDS <= observation.seconds < 1.7 * HASTY_BODY_SECONDS
    assert await impatient.project_count() == 0


async def test_a_body_that_drips_does_not_live_longer_than_one_that_stalls(
    impatient: Stage,
) -> None:
    """It would drip for minutes, which is longer than an answer is waited for."""
    drops = [b" "] * BODY_BYTES_MAX

    observation = await impatient.send(
        impatient.creation(b"Content-Length: %d" % BODY_BYTES_MAX), *drops
    )

    assert told(observation) == (408, "request_timeout")


@pytest.mark.guarantee("T28")
async def test_a_body_that_was_cut_is_never_taken_for_a_whole_one(stage: Stage) -> None:
    cut = (
        stage.creation(b"Content-Length: %d" % (len(CREATION) + 1)) + CREATION,
        stage.creation(b"Transfer-Encoding: chunked") + chunk(CREATION),
        stage.creation(b"Transfer-Encoding: chunked") + chunk(CREATION) + b"0",
        stage.creation(b"Transfer-Encoding: chunked") + b"%x\r\n" % len(CREATION) + CREATION,
    )

    observations = [await stage.send(request, is_half_closed=True) for request in cut]

    for observation in observations:
        assert all(response.status >= 400 for response in observation.responses)
    assert await stage.project_count() == 0


@pytest.mark.clock
async def test_an_answer_leaves_at_once_on_a_connection_that_is_kept(stage: Stage) -> None:
    loop = asyncio.get_running_loop()
    seconds: list[float] = []

    async with stage.gateway.client() as client:
        for _ in range(40):
            began = loop.time()
            await client.get("/nowhere")
            seconds.append(loop.time() - began)

    # The first answers on a connection are acknowledged at once, whatever the server does.
    assert median(seconds[20:]) < 0.03
