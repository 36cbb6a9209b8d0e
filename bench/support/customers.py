"""Everything that is measured, side by side: both upstreams, nginx, and Tollhouse with it all on.

On: authentication, limits of requests, tokens and concurrency over a Redis of its own, durable
admission and settlement, activity, one line of log for each request.
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asyncpg
import msgspec

from bench.support import interpreters, nginx, processes
from bench.support.interpreters import REPOSITORY, Interpreter
from bench.support.load import Target
from bench.support.streams import PROMPT_TOKENS
from tests.identity.waiting import until
from tests.support import databases, deployment
from tests.support.gateway import settings_for
from tests.support.limits import set_limit
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tests.support.processes import running_service
from tests.support.redis_server import running_redis
from tollhouse.app import connect
from tollhouse.base.ids import GrantId, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.base.traffic import TrafficLimits
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import GrantKind
from tollhouse.settings import RedisSettings, Settings
from tollhouse.storage import migrate

CREDIT: Final = PicoUsd(10**18)
AMPLE: Final = TrafficLimits(
    requests_per_minute=10_000_000, tokens_per_minute=2_000_000_000, concurrent_requests=10_000
)
ANSWERED_WHOLE, STREAMED = "example/whole", "example/streamed"
QUESTION: Final = "Say in two sentences what a toll house was and who had to pay there. " * 5

STATIC_ANSWER: Final = json.dumps(
    {
        "id": "chatcmpl-0123456789abcdef",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "upstream-name",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "A toll house stood where a road was to be paid for. " * 8,
                },
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": PROMPT_TOKENS,
            "completion_tokens": 96,
            "total_tokens": PROMPT_TOKENS + 96,
        },
    }
)


@dataclass(frozen=True, kw_only=True)
class Server:
    """Something to be measured: where it answers, and which processes work for it."""

    process: int
    stream_process: int
    whole: Target
    streamed: Target


@dataclass(frozen=True, kw_only=True)
class BenchSetup:
    """All that stands side by side. PostgreSQL is shared: its work for us is told by session."""

    interpreter: Interpreter
    direct: Server
    proxy: Server
    tollhouse: Server
    org: OrganizationFixture
    database: str
    sessions: "asyncpg.Connection[Any]"
    others: set[int]

    async def postgresql_sessions(self) -> dict[int, float]:
        """Processor time by session of the gateway; they run beside the rest and as urgently."""
        rows = await self.sessions.fetch(
            "SELECT pid FROM pg_stat_activity WHERE datname = $1", self.database
        )
        found = [row["pid"] for row in rows]
        for process in found:
            processes.pin(process, self.others)
            os.setpriority(os.PRIO_PROCESS, process, os.getpriority(os.PRIO_PROCESS, 0))
        return processes.cpu_seconds_by_process(found)

    async def all_is_settled(self) -> None:
        """Until nothing is held any more: what was admitted has been paid for."""

        async def is_settled() -> bool:
            async with self.org.database.transaction() as tx:
                credit = await ledger.credit(tx, self.org.organization_id)
            return credit.reserved_pico_usd == 0 and credit.settled_pico_usd > 0

        await until(is_settled)


@asynccontextmanager
async def prepared(
    folder: Path, *, python: str = interpreters.DEBIAN_PYTHON
) -> AsyncGenerator[BenchSetup]:
    """Start everything, each in its place; all of it is gone afterwards."""
    measured, others = processes.cores()
    os.sched_setaffinity(0, others)
    ports = free_ports(4)
    async with AsyncExitStack() as stack:
        static = nginx.running(folder / "static", nginx.static(ports[0], STATIC_ANSWER))
        static_process = await stack.enter_async_context(static)
        stream_process = await stack.enter_async_context(_stream_upstream(ports[1]))
        proxy = nginx.running(
            folder / "proxy",
            nginx.proxy(ports[2], ports[0], is_buffering=True),
            nginx.proxy(ports[3], ports[1], is_buffering=False),
        )
        proxy_process = await stack.enter_async_context(proxy)
        url = await stack.enter_async_context(databases.temporary())
        redis = stack.enter_context(running_redis())
        settings = _settings(url, redis.url, whole_port=ports[0], stream_port=ports[1])
        org, key = await customer(settings)
        stack.push_async_callback(org.database.close)
        interpreter = await asyncio.to_thread(interpreters.chosen, python)
        service = await stack.enter_async_context(
            running_service(
                settings,
                folder,
                program=interpreter.program,
                environment=interpreter.environment(),
            )
        )
        sessions = await asyncpg.connect(databases.MAINTENANCE_URL)
        stack.push_async_callback(sessions.close)
        worker, (_, port) = service.started_workers()[-1], service.address
        for process in (proxy_process, worker):
            processes.pin(process, measured)
        yield BenchSetup(
            interpreter=interpreter,
            direct=_server(static_process, stream_process, ports[0], ports[1], key),
            proxy=_server(proxy_process, proxy_process, ports[2], ports[3], key),
            tollhouse=_server(worker, worker, port, port, key),
            org=org,
            database=url.rpartition("/")[2],
            sessions=sessions,
            others=others,
        )


def free_ports(count: int) -> list[int]:
    """Nobody listens on them now."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def _server(
    process: int, stream_process: int, whole_port: int, stream_port: int, key: str
) -> Server:
    return Server(
        process=process,
        stream_process=stream_process,
        whole=Target(port=whole_port, key=key, body=_body(ANSWERED_WHOLE)),
        streamed=Target(port=stream_port, key=key, body=_body(STREAMED, stream=True)),
    )


def _body(model: str, **fields: object) -> bytes:
    messages = [
        {"role": "system", "content": "You are brief."},
        {"role": "user", "content": QUESTION},
    ]
    body = {"model": model, "messages": messages, "max_tokens": 200, "temperature": 0.7, **fields}
    return json.dumps(body).encode()


def _settings(url: str, redis_url: str, *, whole_port: int, stream_port: int) -> Settings:
    ports = {"whole": whole_port, "streamed": stream_port}
    return msgspec.structs.replace(
        settings_for(url),
        redis=RedisSettings(url=redis_url),
        backends={
            name: {"replicas": [f"http://127.0.0.1:{port}/v1"], "takes": deployment.TAKES}
            for name, port in ports.items()
        },
        models={f"example/{name}": deployment.model(backend=name) for name in ports},
    )


async def customer(settings: Settings) -> tuple[OrganizationFixture, str]:
    """Somebody with credit, with limits that count and never refuse, and the value of its key."""
    await migrate.migrate(settings.database.url)
    database = await connect(settings)
    org = await new_organization_fixture(database)
    async with database.mutation(org.authority()) as tx:
        await ledger.grant(
            tx,
            grant_id=GrantId(time_ordered_uuid()),
            kind=GrantKind.PROMOTIONAL,
            amount=CREDIT,
            reason="to be spent",
        )
    await set_limit(org, AMPLE)
    return org, (await org.project_key(await org.project())).value


@asynccontextmanager
async def _stream_upstream(port: int) -> AsyncGenerator[int]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.support.streams", str(port)),
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline(), "the upstream of streams did not start"
        yield process.pid
    finally:
        process.kill()
        await process.communicate()
