"""Workers die, are replaced and are drained while requests keep coming."""

import asyncio
import contextlib
import os
import signal
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from tests.serving.client import Client, Load, ask_once
from tests.serving.raw import Observation
from tests.serving.servers import Server, supervised
from tollhouse.serving.supervisor import restart_delay_seconds
from tollhouse.serving.worker import METRICS_SECONDS

RecordProperty = Callable[[str, object], None]

TWO_WORKERS = "workers = 2\ndrain_seconds = 60.0"
ONE_WORKER = "workers = 1\ndrain_seconds = 60.0"
TIMEOUT_SECONDS = 120.0
EXPECTING = (
    b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
)


@pytest_asyncio.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Server]:
    async with supervised(tmp_path, TWO_WORKERS) as server:
        await _workers(server, 2)
        yield server


@pytest_asyncio.fixture
async def single(tmp_path: Path) -> AsyncIterator[Server]:
    async with supervised(tmp_path, ONE_WORKER) as server:
        yield server


async def _workers(
    server: Server, count: int, *, other_than: frozenset[int] = frozenset()
) -> set[int]:
    """Ask on new connections until `count` workers have answered."""
    seen: set[int] = set()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while len(seen - other_than) < count:
            reports = await asyncio.gather(*(ask_once(server.address) for _ in range(20)))
            seen |= {report["pid"] for report in reports}
    return seen - other_than


@contextlib.asynccontextmanager
async def _in_flight(
    server: Server,
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A request that the application is reading: it has asked for the body."""
    reader, writer = await asyncio.open_connection(*server.address)
    try:
        writer.write(EXPECTING)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        yield reader, writer
    finally:
        writer.transport.abort()
        writer.close()


async def _is_gone(process_id: int) -> None:
    """Wait until the process has ended; nobody may be there to collect an orphan's exit code."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while _is_running(process_id):  # noqa: ASYNC110 - somebody else's child has no event
            await asyncio.sleep(0.02)


def _is_running(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def _status(seen: Observation) -> int:
    return seen.responses[0].status


def _counted(seen: Observation) -> float:
    line = 'tollhouse_http_requests_total{operation="echo",outcome="succeeded",status="200"} '
    lines = seen.responses[0].body.decode().splitlines()
    return sum(float(found.removeprefix(line)) for found in lines if found.startswith(line))


async def _written_count(server: Server) -> float:
    """Wait until all workers have written what they counted; nothing announces it."""
    earlier, latest = -1.0, 0.0
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while earlier != latest:
            earlier = latest
            await asyncio.sleep(4 * METRICS_SECONDS)
            latest = _counted(await server.probe("/metrics"))
    return latest


async def test_a_killed_worker_breaks_only_its_own_connections(
    pair: Server, record_property: RecordProperty
) -> None:
    both = await _workers(pair, 2)
    load = Load(pair.address, clients=20)
    await load.until_all_connected()
    killed = max(load.answered_by, key=lambda process_id: load.answered_by[process_id])

    os.kill(killed, signal.SIGKILL)
    await _workers(pair, 1, other_than=frozenset(both))
    await load.until_answered(200)
    await load.stop()

    record_property("broken_requests", len(load.broken_on))
    page = (await pair.probe("/metrics")).responses[0].body.decode()
    assert "tollhouse_worker_deaths_total 1.0" in page
    assert set(load.broken_on) == {killed}
    assert load.broken_fresh == 0
    assert len(load.broken_on) <= 20


@pytest.mark.clock
async def test_a_burst_of_connections_is_shared_among_workers(pair: Server) -> None:
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Client(pair.address)) for _ in range(100)]
        reports = await asyncio.gather(*(client.report() for client in clients))

    shares = Counter(report["pid"] for report in reports)
    assert min(shares.values()) >= 10
    assert len(shares) == 2


async def test_connections_that_wait_outlive_the_only_worker(single: Server) -> None:
    (killed,) = await _workers(single, 1)

    os.kill(killed, signal.SIGKILL)
    reports = await asyncio.gather(*(ask_once(single.address) for _ in range(50)))

    assert killed not in {report["pid"] for report in reports}


async def test_sigterm_lets_a_request_finish_and_the_exit_code_is_zero(single: Server) -> None:
    async with _in_flight(single) as (reader, writer):
        single.send(signal.SIGTERM)
        await single.wait_for_log("draining")
        readiness, liveness = await single.probe("/readyz"), await single.probe("/livez")
        writer.write(b"hello")
        answer = await reader.read()
    exit_code = await single.process.wait()

    assert _status(readiness) == 503
    assert _status(liveness) == 200
    assert answer.startswith(b"HTTP/1.1 200")
    assert exit_code == 0


async def test_nothing_new_is_accepted_while_draining(single: Server) -> None:
    async with _in_flight(single) as (_, writer), asyncio.timeout(TIMEOUT_SECONDS):
        single.send(signal.SIGTERM)
        while await _is_listening(single):  # noqa: ASYNC110 - a socket has no event
            await asyncio.sleep(0.02)
        writer.write(b"hello")
        exit_code = await single.process.wait()

    assert exit_code == 0


async def _is_listening(server: Server) -> bool:
    try:
        _, writer = await asyncio.open_connection(*server.address)
    except ConnectionRefusedError:
        return False
    writer.close()
    return True


async def test_a_second_signal_kills(single: Server) -> None:
    async with _in_flight(single) as (reader, _), asyncio.timeout(TIMEOUT_SECONDS):
        single.send(signal.SIGTERM)
        await single.wait_for_log("draining")
        single.send(signal.SIGINT)
        exit_code = await single.process.wait()
        answer = await reader.read()

    assert exit_code == 1
    assert answer == b""


async def test_a_drain_ends_at_its_deadline(tmp_path: Path) -> None:
    async with (
        supervised(tmp_path, "workers = 1\ndrain_seconds = 1.0") as server,
        _in_flight(server) as (reader, _),
        asyncio.timeout(TIMEOUT_SECONDS),
    ):
        server.send(signal.SIGTERM)
        exit_code = await server.process.wait()

        assert exit_code == 0
        assert await reader.read() == b""


async def test_a_reload_replaces_every_worker_without_a_failed_request(
    pair: Server, record_property: RecordProperty
) -> None:
    old = await _workers(pair, 2)
    load = Load(pair.address, clients=20)
    await load.until_all_connected()

    pair.send(signal.SIGHUP)
    await pair.wait_for_log('"reloaded"')
    await load.until_answered(200)
    await load.stop()
    for process_id in old:
        await _is_gone(process_id)
    new = await _workers(pair, 2)

    record_property("requests_during_reload", sum(load.answered_by.values()))
    assert load.broken_on == []
    assert new.isdisjoint(old)


async def test_a_reload_waits_for_no_running_request(pair: Server) -> None:
    old = await _workers(pair, 2)

    async with _in_flight(pair) as (reader, writer):
        pair.send(signal.SIGHUP)
        await pair.wait_for_log('"reloaded"')
        await _workers(pair, 2, other_than=frozenset(old))
        writer.write(b"hello")
        answer = await reader.read()

    assert answer.startswith(b"HTTP/1.1 200")
    for process_id in old:
        await _is_gone(process_id)


async def test_a_reload_changes_the_number_of_workers(pair: Server) -> None:
    old = await _workers(pair, 2)

    pair.configure("workers = 1\ndrain_seconds = 60.0")
    pair.send(signal.SIGHUP)
    await pair.wait_for_log('"reloaded"')

    for process_id in old:
        await _is_gone(process_id)
    assert len(await _workers(pair, 1)) == 1


@pytest.mark.guarantee("T45")
async def test_unsound_settings_change_nothing(pair: Server) -> None:
    old = await _workers(pair, 2)

    pair.configure("workers = 0")
    pair.send(signal.SIGHUP)
    reason = await pair.wait_for_log("reload_refused")

    assert "workers" in reason
    assert await _workers(pair, 2) == old


@pytest.mark.guarantee("T45")
async def test_an_unsound_catalog_changes_nothing(pair: Server) -> None:
    old = await _workers(pair, 2)

    pair.configure(f'{TWO_WORKERS}\n[backends.engine]\nreplicas = ["http://user:pw@host"]')
    pair.send(signal.SIGHUP)
    reason = await pair.wait_for_log("reload_refused")

    assert "replicas[0]: not of the form" in reason
    assert "pw@" not in reason
    assert await _workers(pair, 2) == old


@pytest.mark.guarantee("T45")
async def test_a_worker_that_dies_after_unsound_settings_starts_with_the_last_sound_ones(
    single: Server,
) -> None:
    (killed,) = await _workers(single, 1)
    single.configure("workers = nonsense")
    single.send(signal.SIGHUP)
    await single.wait_for_log("reload_refused")

    os.kill(killed, signal.SIGKILL)

    assert await _workers(single, 1, other_than=frozenset({killed}))


@pytest.mark.guarantee("T45")
async def test_a_replacement_that_does_not_start_leaves_the_old_workers(tmp_path: Path) -> None:
    picky = "tests.serving.applications:StartsUnlessAsked"
    async with supervised(tmp_path, TWO_WORKERS, application=picky) as server:
        old = await _workers(server, 2)

        server.configure("workers = 2\nbody_bytes_max = 4321")
        server.send(signal.SIGHUP)
        await server.wait_for_log("reload_aborted")

        page = (await server.probe("/metrics")).responses[0].body.decode()
        assert 'tollhouse_last_reload{outcome="aborted"} 1.0' in page
        assert await _workers(server, 2) == old


async def test_workers_end_when_their_supervisor_is_killed(pair: Server) -> None:
    orphans = await _workers(pair, 2)

    pair.send(signal.SIGKILL)

    for process_id in orphans:
        await _is_gone(process_id)


async def test_an_orphan_finishes_the_request_that_it_has_begun(single: Server) -> None:
    async with _in_flight(single) as (reader, writer):
        single.send(signal.SIGKILL)
        await single.process.wait()
        writer.write(b"hello")

        assert (await reader.read()).startswith(b"HTTP/1.1 200")


async def test_metrics_add_up_over_workers_and_survive_them(pair: Server) -> None:
    before = await _written_count(pair)
    answers = Counter[int]()
    while len(answers) < 2 or answers.total() < 100:
        answers[(await ask_once(pair.address))["pid"]] += 1
    during = await _written_count(pair)

    killed = min(answers)
    os.kill(killed, signal.SIGKILL)
    await pair.wait_for_log("worker_died")
    after = await _written_count(pair)

    assert during - before == answers.total()
    assert after == during


async def test_probes_answer_on_a_listener_of_their_own(single: Server) -> None:
    expected = {"/livez": 200, "/readyz": 200, "/metrics": 200, "/": 404, "/v1/models": 404}

    answers = {path: (await single.probe(path)).responses[0] for path in expected}

    assert {path: answer.status for path, answer in answers.items()} == expected
    assert {answer.headers["cache-control"] for answer in answers.values()} == {"no-store"}
    assert answers["/readyz"].body == b"ok"
    assert answers["/metrics"].headers["content-type"].startswith("text/plain; version=0.0.4")


async def test_an_application_that_never_starts_is_tried_again_ever_more_slowly(
    tmp_path: Path,
) -> None:
    never = "tests.serving.applications:NeverStarts"
    async with supervised(tmp_path, ONE_WORKER, application=never, is_awaited=False) as server:
        await server.wait_for_log('"delay_seconds":0.4')
        server.send(signal.SIGTERM)
        exit_code = await server.process.wait()

        assert exit_code == 0
        assert "this application never starts" in server.log()
        assert '"delay_seconds":0.1' in server.log()
        assert '"delay_seconds":0.2' in server.log()


@pytest.mark.parametrize(
    ("early_deaths", "expected"), [(0, 0.0), (1, 0.1), (2, 0.2), (5, 1.6), (8, 10.0), (9999, 10.0)]
)
def test_the_delay_doubles_up_to_its_bound(early_deaths: int, expected: float) -> None:
    assert restart_delay_seconds(early_deaths) == pytest.approx(expected)
