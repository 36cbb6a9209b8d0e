"""`python -m bench.bodies [--json]`: what a 30 MB body costs everybody else on the same worker.

Each body goes to a worker process of its own, while small requests on other connections are sent
on a fixed beat: their latency counts from the beat, so that a stall is felt by all that were due.
The second table names the calls that take longest. A call of C holds the interpreter's lock from
its beginning to its end, also beside the event loop; calls of Python let others in.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import cProfile
import json
import re
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import TypeVar

import httpx2

from tests.support import databases
from tests.support.gateway import settings_for
from tests.support.organization_fixture import new_organization_fixture
from tests.support.processes import Service, running_service
from tollhouse.app import connect
from tollhouse.base.errors import InvalidRequest
from tollhouse.base.tasks import Tasks
from tollhouse.contract import decoding
from tollhouse.contract.chat import ChatRequest
from tollhouse.settings import Settings
from tollhouse.storage import migrate

T = TypeVar("T")

BODY_BYTES = 30_000_000
ELEMENTS = 1_000_000
MEMBERS = 990_000  # with a colon and a comma each, just within the bound
BEAT_SECONDS = 0.01
QUIET_SECONDS = 2.0
TIMES_SENT = 3
LONGEST_SHOWN = 3
PATH = "/manage/v1/organization/projects"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one body cost the worker and its other callers."""

    body: str
    size_mb: float
    statuses: list[int]
    answered_seconds: float
    longest_stall_ms: float
    peak_memory_mb: float
    quiet_p50_ms: float
    quiet_p99_ms: float
    small_p50_ms: float
    small_p99_ms: float
    small_max_ms: float
    small_refused: dict[int, int]


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call on the way from bytes to a typed request; `holds_lock` if nobody else can run."""

    body: str
    name: str
    cpu_ms: float
    holds_lock: bool


def bodies() -> Iterator[tuple[str, bytes]]:
    """What a caller may send before anything is known of its meaning."""
    text, element = b"x" * BODY_BYTES, b'"' + b"x" * (BODY_BYTES // ELEMENTS - 3) + b'"'
    deep = b"[" * 126 + b"]" * 126
    yield "one long string", b'{"name":"' + text + b'"}'
    yield "one string of escapes", b'{"name":"' + rb"\"" * (BODY_BYTES // 2) + b'"}'
    yield "opening brackets only", b"[" * BODY_BYTES
    yield "as deep as allowed", _padded(b'{"other":[' + b",".join([deep] * 7_900) + b"]}")
    yield "an array of 10^6", b'{"other":[' + b",".join([element] * ELEMENTS) + b"]}"
    yield "an array of 10^6, broken", b'{"other":[' + b",".join([element] * ELEMENTS) + b"}"
    members = (b'"%024d":0' % number for number in range(MEMBERS))
    yield "10^6 members", b"{" + b",".join(members) + b"}"
    yield "10^6 duplicates", b"{" + b",".join([b'"%024d":0' % 0] * MEMBERS) + b"}"
    message = b'{"role":"user","content":"' + b"x" * 60 + b'"}'
    yield "a chat", b'{"model":"m","messages":[' + b",".join([message] * 330_000) + b"]}"


def _padded(body: bytes) -> bytes:
    return body.ljust(BODY_BYTES)


async def measure_cost(settings: Settings, key: str, name: str, body: bytes) -> Cost:
    """Send one body to a fresh worker, again and again, with small requests all the while."""
    tasks = Tasks()
    with TemporaryDirectory() as folder:
        async with running_service(settings, Path(folder)) as service, service.client(key) as small:
            waiting = tasks.start("quiet", asyncio.sleep(QUIET_SECONDS))
            quiet_ms, _ = await _beat(tasks, small, waiting)
            work = asyncio.to_thread(_send_often, service.address, key, body)
            sending = tasks.start("large", work)
            small_ms, refused = await _beat(tasks, small, sending)
            answers = await sending
            stall_seconds = _gauge(await service.metrics(), "tollhouse_event_loop_stall_seconds")
            peak_memory_mb = _peak_memory_mb(service)
    return Cost(
        body=name,
        size_mb=round(len(body) / 1e6, 1),
        statuses=[status for status, _ in answers],
        answered_seconds=round(median(seconds for _, seconds in answers), 3),
        longest_stall_ms=round(stall_seconds * 1000, 1),
        peak_memory_mb=round(peak_memory_mb, 1),
        quiet_p50_ms=_percentile(quiet_ms, 50),
        quiet_p99_ms=_percentile(quiet_ms, 99),
        small_p50_ms=_percentile(small_ms, 50),
        small_p99_ms=_percentile(small_ms, 99),
        small_max_ms=round(max(small_ms), 1),
        small_refused=dict(refused),
    )


async def _beat(
    tasks: Tasks, client: httpx2.AsyncClient, until: asyncio.Task[T]
) -> tuple[list[float], Counter[int]]:
    """Milliseconds of each request that was due before `until` ended, and the refused by status."""
    loop = asyncio.get_running_loop()
    began, requests = loop.time(), list[asyncio.Task[tuple[int, float]]]()
    while not until.done():
        due = began + len(requests) * BEAT_SECONDS
        await asyncio.sleep(due - loop.time())
        requests.append(tasks.start("small", _small(client, due)))
    answers = await asyncio.gather(*requests)
    refused = Counter(status for status, _ in answers if status != HTTPStatus.OK)
    return [milliseconds for _, milliseconds in answers], refused


async def _small(client: httpx2.AsyncClient, due: float) -> tuple[int, float]:
    answer = await client.get(PATH)
    return answer.status_code, (asyncio.get_running_loop().time() - due) * 1000


def _send_often(address: tuple[str, int], key: str, body: bytes) -> list[tuple[int, float]]:
    return [_send(address, key, body) for _ in range(TIMES_SENT)]


def _send(address: tuple[str, int], key: str, body: bytes) -> tuple[int, float]:
    """Status and seconds of one large request, in a thread that waits outside of the lock."""
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    began = time.monotonic()
    with socket.create_connection(address) as connection:
        connection.sendall(head.encode())
        connection.sendall(body)
        status = int(connection.recv(65_536).split(b" ")[1])
    return status, time.monotonic() - began


def _gauge(exposition: str, name: str) -> float:
    found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", exposition, re.MULTILINE)
    assert found is not None, f"{name} is not exposed"
    return float(found[1])


def _peak_memory_mb(service: Service) -> float:
    status = Path(f"/proc/{service.started_workers()[-1]}/status").read_text(encoding="utf-8")
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None, "the kernel tells no peak"
    return int(found[1]) * 1024 / 1e6


def _percentile(milliseconds: list[float], percent: int) -> float:
    return round(quantiles(milliseconds, n=100, method="inclusive")[percent - 1], 1)


def longest_calls(name: str, body: bytes) -> list[Call]:
    """The calls that take most of the processor on the way to a chat request, longest first."""
    profile = cProfile.Profile(time.thread_time)
    profile.enable()
    try:
        decoding.decode(decoding.screen(body), ChatRequest)
    except InvalidRequest:
        pass
    finally:
        profile.disable()
    calls = [
        Call(
            body=name,
            name=entry.code.strip("<>") if isinstance(entry.code, str) else entry.code.co_name,
            cpu_ms=round(entry.inlinetime * 1000, 1),
            holds_lock=isinstance(entry.code, str),
        )
        for entry in profile.getstats()
    ]
    return sorted(calls, key=lambda call: call.cpu_ms, reverse=True)[:LONGEST_SHOWN]


async def measure() -> dict[str, list[Cost] | list[Call]]:
    """Both tables, on a database of their own."""
    async with databases.temporary() as url:
        await migrate.migrate(url)
        settings = settings_for(url)
        database = await connect(settings)
        org = await new_organization_fixture(database)
        key = (await org.admin_key()).value
        await database.close()
        costs = [await measure_cost(settings, key, name, body) for name, body in bodies()]
    calls = [call for name, body in bodies() for call in longest_calls(name, body)]
    return {"costs": costs, "longest_calls": calls}


def _table(rows: list[Cost] | list[Call]) -> str:
    cells = [[str(value) for value in asdict(row).values()] for row in rows]
    lines = [list(asdict(rows[0])), *cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )


def main() -> None:
    """Measure, then print."""
    parser = argparse.ArgumentParser(description="What a 30 MB body costs everybody else.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    is_json = parser.parse_args().json
    tables = asyncio.run(measure())
    if is_json:
        shown = {name: [asdict(row) for row in rows] for name, rows in tables.items()}
        sys.stdout.write(json.dumps(shown, indent=2) + "\n")
    else:
        sys.stdout.write("\n\n".join(map(_table, tables.values())) + "\n")


if __name__ == "__main__":
    main()
