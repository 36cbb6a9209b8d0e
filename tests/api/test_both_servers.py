"""The corpora against the whole application, behind uvicorn and behind Granian."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from tests.api.test_edge_json import NOT_JSON, WRONG_JSON
from tests.serving.corpus import CASES, run_case
from tests.serving.raw import Observation, exchange
from tests.serving.servers import get, granian
from tests.support.gateway import running_gateway, settings_for
from tests.support.organization_fixture import OrganizationFixture
from tests.support.processes import as_toml
from tests.support.shared_gateway import database, database_url, org
from tollhouse.settings import Settings

__all__ = ["database", "database_url", "org"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = b"/manage/v1/organization/projects"
CONNECTIONS_MAX = 12
STALL_SECONDS_MAX = 10.0
Address = tuple[str, int]


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return settings_for(
        database_url, header_seconds=STALL_SECONDS_MAX, body_seconds=STALL_SECONDS_MAX
    )


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=["uvicorn", "granian"])
async def address(
    request: pytest.FixtureRequest, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Address]:
    """The whole application behind a server."""
    if request.param == "uvicorn":
        async with running_gateway(settings) as gateway:
            yield (gateway.host, gateway.port)
        return
    path = tmp_path_factory.mktemp("granian") / "tollhouse.toml"
    path.write_text(as_toml(settings), encoding="utf-8")
    chosen = ("--interface", "asgi", "--factory", "tollhouse.app:from_environment")
    async with granian(*chosen, environment={"TOLLHOUSE_CONFIG": str(path)}) as server:
        yield server.address


def headers(key: str, name: str) -> tuple[bytes, ...]:
    return (
        b"Authorization: Bearer " + key.encode(),
        b"Content-Type: application/json",
        b"Idempotency-Key: case " + name.encode().hex().encode()[:150],
    )


async def projects(org: OrganizationFixture) -> int:
    async with org.database.transaction() as tx:
        return await tx.fetch_value(
            "SELECT count(*) FROM projects WHERE organization_id = $1", org.organization_id
        )


@pytest.mark.guarantee("T23")
async def test_no_case_of_http_ends_in_a_500_or_a_second_answer(
    address: Address, org: OrganizationFixture
) -> None:
    admin = await org.admin_key()
    places = asyncio.Semaphore(CONNECTIONS_MAX)

    async def observe(number: int) -> Observation:
        case = CASES[number]
        async with places:
            return await run_case(address, case, path=PATH, headers=headers(admin.value, case.name))

    observations = await asyncio.gather(*map(observe, range(len(CASES))))

    for case, observation in zip(CASES, observations, strict=True):
        statuses = [answer.status for answer in observation.responses if answer.status >= 200]
        expected = max(len(case.bounded), len(case.granian), 1)
        assert all(status < 500 for status in statuses), (case.name, statuses)
        assert len(statuses) <= expected, (case.name, statuses)
    assert await projects(org) == 0


@pytest.mark.guarantee("T27")
async def test_no_case_of_json_ends_in_a_500_and_none_creates_anything(
    address: Address, org: OrganizationFixture
) -> None:
    admin = await org.admin_key()
    places = asyncio.Semaphore(CONNECTIONS_MAX)
    bodies: dict[str, bytes] = NOT_JSON | {name: case[0] for name, case in WRONG_JSON.items()}

    async def observe(name: str, body: bytes) -> Observation:
        length = b"Content-Length: %d" % len(body)
        wanted = (b"Host: localhost", *headers(admin.value, name), length, b"", body)
        async with places:
            line = b"POST " + PATH + b" HTTP/1.1"
            return await exchange(address, b"\r\n".join((line, *wanted)))

    observations = await asyncio.gather(*(observe(*item) for item in bodies.items()))

    for name, observation in zip(bodies, observations, strict=True):
        assert [response.status for response in observation.responses] == [400], name
    assert await projects(org) == 0


@pytest.mark.guarantee("T28")
@pytest.mark.parametrize(
    "cut_short",
    [
        b'Content-Length: 40\r\n\r\n{"name":"x"}',
        b'Transfer-Encoding: chunked\r\n\r\nc\r\n{"name":"x"}\r\n',
        b'Transfer-Encoding: chunked\r\n\r\nc\r\n{"name":"x"}\r\n5\r\n',
        b'Transfer-Encoding: chunked\r\n\r\nc\r\n{"name":"x"}XX0\r\n\r\n',
    ],
)
async def test_a_truncated_body_is_never_processed_though_its_json_is_whole(
    address: Address, org: OrganizationFixture, cut_short: bytes
) -> None:
    admin = await org.admin_key()
    head = b"\r\n".join(
        (b"POST " + PATH + b" HTTP/1.1", b"Host: localhost", *headers(admin.value, "cut"), b"")
    )

    observation = await exchange(address, head + cut_short, is_half_closed=True)

    assert all(400 <= response.status < 500 for response in observation.responses)
    assert await projects(org) == 0


@pytest.mark.parametrize(
    "codings",
    [
        b"Transfer-Encoding: identity, chunked",
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    ],
)
async def test_transfer_codings_other_than_chunked_end_the_connection(
    address: Address, org: OrganizationFixture, codings: bytes
) -> None:
    admin = await org.admin_key()
    body = b'c\r\n{"name":"x"}\r\n0\r\n\r\n'
    lines = (
        b"POST " + PATH + b" HTTP/1.1",
        *(b"Host: localhost", *headers(admin.value, "codings"), codings, b"", body),
    )

    observation = await exchange(address, b"\r\n".join(lines) + get(PATH.decode()))

    assert [response.status for response in observation.responses] == [400]
    assert observation.is_closed
    assert await projects(org) == 0


@pytest.mark.guarantee("T29")
async def test_a_path_is_known_by_its_one_spelling(
    address: Address, org: OrganizationFixture
) -> None:
    admin, project = await org.admin_key(), await org.project()
    one = b"%b/%b" % (PATH, str(project.id).encode())
    statuses = {
        one: 200,
        one.replace(b"-", b"%2D"): 200,
        one.replace(b"organization", b"%6Frganization"): 404,
        one.replace(b"/projects", b"%2Fprojects"): 404,
    }

    for path, status in statuses.items():
        lines = (b"GET " + path + b" HTTP/1.1", b"Host: localhost", *headers(admin.value, "path"))
        observation = await exchange(address, b"\r\n".join((*lines, b"", b"")))

        assert [response.status for response in observation.responses] == [status], path
