"""One thousand peers that never finish are cut off in time, and nobody else notices."""

import asyncio
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import quantiles

import pytest

from tests.serving.client import Load
from tests.serving.servers import supervised

SLOW_PEERS = 1000
HEADER_SECONDS = 2.0
BODY_SECONDS = 2.0
SLACK_SECONDS = 2.0

HEAD = b"POST /echo HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(autouse=True)
def enough_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 4 * SLOW_PEERS), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


class SlowPeers:
    """Connects a few at a time, so that the client's own haste does not count as slowness."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._connecting = asyncio.Semaphore(20)
        self._clock = asyncio.get_running_loop().time

    async def drip_head(self) -> tuple[bytes, float]:
        """One byte of the head a second; what came back, and after how long the end came."""
        reader, writer, began = await self._connect(HEAD[:1])
        ended = asyncio.create_task(reader.read())
        for byte in HEAD[1:]:
            if (await asyncio.wait({ended}, timeout=1.0))[0]:
                break
            writer.write(bytes([byte]))
        received = await ended
        writer.close()
        return received, self._clock() - began

    async def stall_body(self) -> tuple[bytes, float]:
        """Half a body, then nothing."""
        reader, writer, began = await self._connect(HEAD + b"Content-Length: 10\r\n\r\nhello")
        received = await reader.read()
        writer.close()
        return received, self._clock() - began

    async def _connect(
        self, first: bytes
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, float]:
        async with self._connecting:
            reader, writer = await asyncio.open_connection(*self._address)
            writer.write(first)
            return reader, writer, self._clock()


def _p99_ms(latencies_seconds: list[float]) -> float:
    return quantiles(latencies_seconds, n=100)[-1] * 1000


@pytest.mark.nightly
@pytest.mark.guarantee("T24")
@pytest.mark.clock
async def test_a_thousand_slow_peers_are_cut_off_while_others_are_answered(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    bounds = f"workers = 2\nheader_seconds = {HEADER_SECONDS}\nbody_seconds = {BODY_SECONDS}"
    async with supervised(tmp_path, bounds) as server:
        quiet = Load(server.address, clients=2)
        await quiet.until_answered(1000)
        await quiet.stop()

        peers = SlowPeers(server.address)
        busy = Load(server.address, clients=2)
        ends = await asyncio.gather(
            *(peers.drip_head() for _ in range(SLOW_PEERS // 2)),
            *(peers.stall_body() for _ in range(SLOW_PEERS // 2)),
        )
        await busy.stop()

    dripped, stalled = ends[: SLOW_PEERS // 2], ends[SLOW_PEERS // 2 :]
    assert all(received.startswith(b"HTTP/1.1 408") for received, _ in ends)
    assert max(seconds for _, seconds in dripped) < HEADER_SECONDS + SLACK_SECONDS
    assert max(seconds for _, seconds in stalled) < BODY_SECONDS + SLACK_SECONDS
    assert busy.broken_on == []
    assert len(busy.latencies_seconds) > 100
    figures = {
        "p99_ms_alone": _p99_ms(quiet.latencies_seconds),
        "p99_ms_under_attack": _p99_ms(busy.latencies_seconds),
        "slowest_head_seconds": max(seconds for _, seconds in dripped),
        "slowest_body_seconds": max(seconds for _, seconds in stalled),
        "answered_meanwhile": len(busy.latencies_seconds),
    }
    for name, value in figures.items():
        record_property(name, value)
    # Far above what was measured: the machine that runs this may be busy with other tests.
    assert figures["p99_ms_under_attack"] < 250
