"""`python -m bench.streams [--json]`: a thousand streams at once through one worker.

Each has its chunks numbered, so that one that is lost or out of place is noticed. All of them
stand in their middle at one moment, when the worker's memory is read; before that it has served
some, so that what is read is what streams cost and not what code does. The upstream and all callers
live in this process, everything else in its own.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from bench.support import processes
from bench.support.customers import customer
from tests.identity.waiting import until
from tests.support import databases, deployment
from tests.support.gateway import settings_for
from tests.support.organization_fixture import OrganizationFixture
from tests.support.processes import Service, running_service
from tests.support.raw_streams import CHAT, Stream, open_stream
from tests.support.redis_server import running_redis
from tests.support.upstream import running_upstream
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.ledger import service as ledger
from tollhouse.ledger import verification
from tollhouse.settings import RedisSettings, Settings

OPENED_AT_ONCE: Final = 50
WARM_STREAMS: Final = 20
DEADLINE_SECONDS: Final = 3_600.0


@dataclass(frozen=True, kw_only=True)
class BenchSetup:
    """One worker with everything on, its upstream, and a customer."""

    service: Service
    upstream: ScriptedUpstream
    org: OrganizationFixture
    key: str

    @property
    def worker(self) -> int:
        """Its process."""
        return self.service.started_workers()[-1]


@dataclass(frozen=True, kw_only=True)
class Load:
    """How many streams of how many chunks."""

    streams: int
    chunks: int
    chunk_delay_ms: int

    def body(self) -> dict[str, Any]:
        """Tells the upstream what to say, and to wait in the middle of it."""
        script = {
            "text": "".join(self.tokens()),
            "between_events_ms": self.chunk_delay_ms,
            "cut": {"how": "stall", "after": self.chunks // 2},
        }
        return deployment.chat(json.dumps({"script": script}), max_tokens=self.chunks)

    def tokens(self) -> list[str]:
        """A chunk each."""
        return ["1", *(f" {number}" for number in range(2, self.chunks + 1))]


@asynccontextmanager
async def prepared(folder: Path, streams: int) -> AsyncGenerator[BenchSetup]:
    """Start everything; all of it is gone afterwards."""
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(running_upstream())
        url = await stack.enter_async_context(databases.temporary())
        redis = stack.enter_context(running_redis())
        settings = _settings(url, redis.url, upstream.base_url, streams)
        org, key = await customer(settings)
        stack.push_async_callback(org.database.close)
        service = await stack.enter_async_context(running_service(settings, folder))
        yield BenchSetup(service=service, upstream=upstream, org=org, key=key)


def _settings(url: str, redis_url: str, replica: str, streams: int) -> Settings:
    offered = deployment.offering(
        settings_for(url),
        replica,
        connections_max=streams + WARM_STREAMS,
        first_event_seconds=DEADLINE_SECONDS,
        idle_seconds=DEADLINE_SECONDS,
        total_seconds=DEADLINE_SECONDS,
    )
    return msgspec.structs.replace(offered, redis=RedisSettings(url=redis_url))


async def opened(setup: BenchSetup, load: Load) -> list[Stream]:
    """All of them, in their middle: the upstream has sent half of each and waits."""
    room = asyncio.Semaphore(OPENED_AT_ONCE)
    body = load.body()

    async def one() -> Stream:
        async with room:
            return await open_stream(setup.service.address, setup.key, CHAT, body)

    setup.upstream.seen.clear()
    streams = await asyncio.gather(*(one() for _ in range(load.streams)))
    refused = [stream.head for stream in streams if stream.status != 200]  # noqa: PLR2004 - OK
    assert not refused, refused[0]
    assert len(setup.upstream.seen) == load.streams, "the upstream keeps no more in mind"
    await asyncio.gather(*(exchange.stall() for exchange in setup.upstream.seen))
    return streams


async def finished(setup: BenchSetup, streams: Sequence[Stream]) -> list[list[str]]:
    """What each caller was told, once the upstream has gone on."""
    for exchange in setup.upstream.seen:
        exchange.release()
    return await asyncio.gather(*(stream.payloads(DEADLINE_SECONDS) for stream in streams))


def said(payloads: Sequence[str]) -> list[str]:
    """The chunks with a text, as they came; nothing is left of a stream that did not end well."""
    if payloads[-1] != "[DONE]":
        return []
    deltas = [msgspec.json.decode(payload)["choices"][0]["delta"] for payload in payloads[:-1]]
    return [delta["content"] for delta in deltas if delta.get("content")]


async def measure_streams(setup: BenchSetup, load: Load) -> dict[str, object]:
    """Figures of one run."""
    before_mb, cpu_before = processes.memory_mb(setup.worker), _cpu(setup)
    begun_seconds = time.monotonic()
    streams = await opened(setup, load)
    open_mb = processes.memory_mb(setup.worker)
    told = [said(payloads) for payloads in await finished(setup, streams)]
    taken_seconds = time.monotonic() - begun_seconds
    expected = load.tokens()
    return {
        "streams": load.streams,
        "chunks": load.streams * load.chunks,
        "streams_lost": sum(not chunks for chunks in told),
        "chunks_lost": sum(len(expected) - len(set(expected) & set(chunks)) for chunks in told),
        "streams_reordered": sum(sorted(chunks, key=int) != chunks for chunks in told),
        "streams_as_sent": sum(chunks == expected for chunks in told),
        "seconds": round(taken_seconds, 1),
        "memory_kb_per_open_stream": round((open_mb - before_mb) * 1000 / load.streams, 1),
        "memory_mb_before": round(before_mb, 1),
        "memory_mb_with_all_open": round(open_mb, 1),
        "cpu_us_per_chunk": round((_cpu(setup) - cpu_before) / load.streams / load.chunks * 1e6),
        "ledger_differences": await differences(setup, WARM_STREAMS + load.streams),
    }


def _cpu(setup: BenchSetup) -> float:
    return processes.cpu_seconds(setup.worker)


async def differences(setup: BenchSetup, requests: int) -> int:
    """What the ledger cannot explain, once so many requests are settled."""
    organization_id = setup.org.organization_id

    async def is_settled() -> bool:
        rows = await setup.org.database.fetch_all(
            "SELECT count(*) FROM ledger_entries WHERE organization_id = $1 AND phase = 1",
            organization_id,
        )
        async with setup.org.database.transaction() as tx:
            credit = await ledger.credit(tx, organization_id)
        return rows[0][0] == requests and credit.reserved_pico_usd == 0

    await until(is_settled)
    return len(await verification.verify(setup.org.database, organization_id))


async def measure(arguments: argparse.Namespace) -> None:
    """Warm up, measure, tell."""
    load = Load(
        streams=arguments.streams,
        chunks=arguments.chunks,
        chunk_delay_ms=arguments.chunk_delay_ms,
    )
    warm = Load(streams=WARM_STREAMS, chunks=load.chunks, chunk_delay_ms=0)
    with TemporaryDirectory(prefix="tollhouse-bench-") as name:
        async with prepared(Path(name), load.streams) as setup:
            await finished(setup, await opened(setup, warm))
            found = await measure_streams(setup, load)
    sys.stdout.write(json.dumps(found, indent=None if arguments.json else 2) + "\n")


def main() -> None:
    """With `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.streams")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--chunk-delay-ms", type=int, default=100)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
