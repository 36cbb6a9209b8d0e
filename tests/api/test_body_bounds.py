"""Large bodies through the gateway: how many at once, in how much memory, and in whose turn."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import msgspec
import pytest

from tests.api.test_edge_envelope import PROJECTS, refusal
from tests.identity.waiting import until
from tests.support.gateway import Gateway, running_gateway, settings_for
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.api.body import ON_LOOP_BYTES_MAX
from tollhouse.contract.decoding import ELEMENTS_MAX
from tollhouse.settings import InvalidSettings, ServerSettings, Settings

MEGABYTE = 1_048_576
JSON = {"content-type": "application/json", "Idempotency-Key": "once"}


@pytest.fixture
def settings(database_url: str) -> Settings:
    return settings_for(
        database_url,
        body_bytes_max=MEGABYTE,
        bodies_bytes_max=8 * MEGABYTE,
        bodies_per_key_max=1,
        bodies_per_organization_max=2,
    )


def body_of(size_bytes: int) -> bytes:
    """Refused for its name, once it is read."""
    return b'{"name":"' + b"x" * (size_bytes - 11) + b'"}'


@asynccontextmanager
async def sending(
    client: httpx2.AsyncClient, body: bytes, sent_bytes: int
) -> AsyncGenerator[asyncio.Task[httpx2.Response]]:
    """A request of which so much has been sent, and the rest is sent at the end of the block."""
    is_sent, goes_on = asyncio.Event(), asyncio.Event()

    async def pieces() -> AsyncGenerator[bytes]:
        yield body[:sent_bytes]
        is_sent.set()
        await goes_on.wait()
        yield body[sent_bytes:]

    answer = asyncio.create_task(client.post(PROJECTS, content=pieces(), headers=JSON))
    await is_sent.wait()
    try:
        yield answer
    finally:
        goes_on.set()
        await answer


async def until_held(gateway: Gateway, size_bytes: int) -> None:
    quota = gateway.application._body_quota  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    async def is_held() -> bool:
        return quota.used_bytes >= size_bytes

    await until(is_held)


async def test_a_key_that_sends_too_many_large_bodies_at_once_is_told_when_to_try_again(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    first, second = [await org.admin_key() for _ in range(2)]
    body = body_of(4 * ON_LOOP_BYTES_MAX)

    async with gateway.client(first.value) as client, gateway.client(second.value) as other:
        async with sending(client, body, 2 * ON_LOOP_BYTES_MAX) as running:
            await until_held(gateway, 3 * ON_LOOP_BYTES_MAX)
            refused = await client.post(PROJECTS, content=body, headers=JSON)
            small = await client.post(PROJECTS, content=body_of(1_000), headers=JSON)
            taken = await other.post(PROJECTS, content=body, headers=JSON)
        again = await client.post(PROJECTS, content=body, headers=JSON)

    assert refusal(refused) == (429, "too_many_bodies")
    assert refused.headers["retry-after"] == "1"
    assert refusal(small) == (400, "string_above_max_length"), "small bodies are not counted"
    assert refusal(taken) == (400, "string_above_max_length"), "another key may still send one"
    assert refusal(running.result()) == (400, "string_above_max_length")
    assert refusal(again) == (400, "string_above_max_length")


async def test_an_organization_beyond_its_share_is_unavailable_and_its_neighbour_is_not(
    settings: Settings, org: OrganizationFixture, other_org: OrganizationFixture
) -> None:
    server = msgspec.structs.replace(settings.server, bodies_per_key_max=8)
    settings = msgspec.structs.replace(settings, server=server)
    greedy, neighbour = await org.admin_key(), await other_org.admin_key()
    body = body_of(MEGABYTE)

    async with (
        running_gateway(settings) as gateway,
        gateway.client(greedy.value) as client,
        gateway.client(neighbour.value) as other,
    ):
        async with sending(client, body, MEGABYTE - 1):
            await until_held(gateway, 2 * MEGABYTE - 2)
            refused = await client.post(PROJECTS, content=body, headers=JSON)
            taken = await other.post(PROJECTS, content=body, headers=JSON)
        again = await client.post(PROJECTS, content=body, headers=JSON)
        quota = gateway.application._body_quota  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        left_bytes = quota.used_bytes

    assert refusal(refused) == (503, "body_quota_exceeded")
    assert refused.headers["retry-after"] == "1"
    assert refusal(taken) == (400, "string_above_max_length")
    assert refusal(again) == (400, "string_above_max_length")
    assert left_bytes == 0


async def test_what_an_operation_without_a_body_is_sent_is_refused_unread(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    admin = await org.admin_key()
    sent_pieces = 0

    async def endless() -> AsyncGenerator[bytes]:
        nonlocal sent_pieces
        while sent_pieces < 1_000:
            sent_pieces += 1
            yield b"x"
            await asyncio.sleep(0)

    async with gateway.client(admin.value) as client:
        answer = await client.request("GET", PROJECTS, content=endless())

    assert refusal(answer) == (400, "invalid_json")


async def test_elements_are_bounded_on_every_route(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    admin = await org.admin_key()
    bomb = b'{"name":' + b"[" + b"[]," * (ELEMENTS_MAX // 3) + b"[]]}"

    async with gateway.client(admin.value) as client:
        refused = await client.post(PROJECTS, content=bomb, headers=JSON)

    assert refusal(refused) == (400, "invalid_json")
    assert str(ELEMENTS_MAX) in refused.json()["error"]["message"]


def test_a_quota_in_which_no_body_fits_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="at least 8 times"):
        ServerSettings(body_bytes_max=MEGABYTE, bodies_bytes_max=8 * MEGABYTE - 1)
