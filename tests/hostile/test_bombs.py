"""Small requests that are dear to read, and large ones that are refused."""

import asyncio
import gzip
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.hostile.clients import Caller, request_bytes
from tests.hostile.customers import NO_CREDIT
from tests.hostile.deployment import MEGABYTE, SERVER, STEADY, Deployment
from tests.support import seeds
from tests.support.raw_streams import CHAT, RESPONSES

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.clock]

BOMB_BYTES = 255_000
BOMBS = 20
SENDERS = 4
CPU_MILLISECONDS_MAX = 10.0
"""Above what a plain text of the same size takes."""
LARGE_BODIES = 24
LARGE_BYTES = SERVER["body_bytes_max"] - MEGABYTE
REFUSALS = {400, 402, 413, 415, 429, 503}

_CHAT = b'{"model":"%b","messages":[{"role":"user","content":"x"}],' % STEADY.encode()
_RESPONSE = b'{"model":"%b","input":"x",' % STEADY.encode()


def _repeated(piece: bytes, size_bytes: int = BOMB_BYTES) -> bytes:
    return b",".join([piece] * (size_bytes // (len(piece) + 1)))


BOMBS_BY_NAME: dict[str, tuple[str, bytes]] = {
    "empty lists in chat": (CHAT, _CHAT + b'"metadata":{"a":[%b]}}' % _repeated(b"[]")),
    "empty lists in responses": (
        RESPONSES,
        _RESPONSE + b'"metadata":{"a":[%b]}}' % _repeated(b"[]"),
    ),
    "empty objects": (CHAT, _CHAT + b'"metadata":{"a":[%b]}}' % _repeated(b"{}")),
    "numbers": (CHAT, _CHAT + b'"metadata":{"a":[%b]}}' % _repeated(b"1")),
    "members": (
        CHAT,
        _CHAT + b",".join(b'"%d":0' % number for number in range(BOMB_BYTES // 9)) + b"}",
    ),
    "depth": (CHAT, _CHAT + b'"metadata":%b%b}' % (b"[" * 100_000, b"]" * 100_000)),
    "messages": (
        CHAT,
        b'{"model":"%b","messages":[%b]}' % (STEADY.encode(), _repeated(b"{}")),
    ),
}


async def statuses_of(
    deployment: Deployment, request: bytes, *, count: int, senders: int
) -> list[int | None]:
    """Send so many requests, of which so many at once; return their statuses."""
    gate = asyncio.Semaphore(senders)
    refused: list[Caller] = []

    async def send() -> int | None:
        async with gate:
            caller = await Caller.connect(deployment.address)
            with suppress(ConnectionError):  # refused before all of it was sent
                await caller.send(request)
            await caller.read_to_end()
            caller.close()
            refused.append(caller)
            return caller.status

    statuses = await asyncio.gather(*(send() for _ in range(count)))
    assert all("retry-after:" in caller.head for caller in refused if caller.status in (429, 503))
    return statuses


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def cpu_milliseconds(
    deployment: Deployment, request: bytes
) -> tuple[float, list[int | None]]:
    """Return the worker's processor time for one such request, and the statuses of all."""
    before = cpu_seconds(deployment.worker)
    statuses = await statuses_of(deployment, request, count=BOMBS, senders=1)
    return (cpu_seconds(deployment.worker) - before) / BOMBS * 1000, statuses


@pytest.mark.guarantee("T27")
@pytest.mark.parametrize("name", seeds.partly_nightly(BOMBS_BY_NAME, at_landings=1))
async def test_a_body_that_is_dear_to_read_is_refused_cheaply(
    deployment: Deployment, name: str, record_property: Callable[[str, object], None]
) -> None:
    customer = await deployment.customer(credit=NO_CREDIT)
    path, body = BOMBS_BY_NAME[name]
    request = request_bytes(path, customer.key, body)

    text = request_bytes(CHAT, customer.key, _CHAT + b'"user":"%b"}' % (b"x" * BOMB_BYTES))

    plain, _ = await cpu_milliseconds(deployment, text)
    taken, statuses = await cpu_milliseconds(deployment, request)
    async with deployment.attacked(
        record_property, budget_bytes=SERVER["bodies_bytes_max"]
    ) as measuring:
        while not measuring.done():
            statuses += await statuses_of(deployment, request, count=BOMBS, senders=SENDERS)

    record_property("cpu_milliseconds", taken)
    record_property("cpu_milliseconds_of_text", plain)
    assert taken <= plain + CPU_MILLISECONDS_MAX
    assert 400 in statuses
    assert set(statuses) <= {400, 429}
    assert await customer.admitted() == 0


@pytest.mark.nightly
@pytest.mark.parametrize("senders", [1, LARGE_BODIES], ids=["in turn", "at once"])
async def test_large_bodies_that_are_refused_do_not_stay_in_memory(
    deployment: Deployment, senders: int, record_property: Callable[[str, object], None]
) -> None:
    customer = await deployment.customer(credit=NO_CREDIT)
    opening = b'{"model":"%b","messages":[{"role":"user","content":"' % STEADY.encode()
    body = opening + b"x" * LARGE_BYTES + b'"}]}'
    request = request_bytes(CHAT, customer.key, body)

    async with deployment.attacked(record_property, budget_bytes=SERVER["bodies_bytes_max"]):
        statuses = await statuses_of(deployment, request, count=LARGE_BODIES, senders=senders)

    record_property("statuses", statuses)
    assert set(statuses) <= REFUSALS
    assert await customer.admitted() == 0


@pytest.mark.nightly
@pytest.mark.guarantee("T26")
async def test_a_compressed_body_is_refused_unread(
    deployment: Deployment, record_property: Callable[[str, object], None]
) -> None:
    customer = await deployment.customer()
    bomb = gzip.compress(_CHAT + b'"metadata":{"a":"%b"}}' % (b"x" * 100 * MEGABYTE))
    request = request_bytes(CHAT, customer.key, bomb, headers=["content-encoding: gzip"])

    async with deployment.attacked(record_property, budget_bytes=0):
        statuses = await statuses_of(deployment, request, count=SENDERS, senders=SENDERS)

    assert set(statuses) <= {400, 415}
    assert await customer.admitted() == 0
