"""Workers whose event loop stands still are replaced, and not those of a supervisor that slept."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.serving.applications import settings
from tests.serving.client import ask_once
from tests.serving.servers import START_SECONDS_MAX, Server, supervised
from tollhouse.base.clock import SystemClock
from tollhouse.serving.process import STARTUP_SECONDS_MAX, STATUS_SECONDS_MAX, WorkerProcess
from tollhouse.serving.silence import COUNTED_SECONDS_MAX

SILENCE_SECONDS = 6.0
ONE_WORKER = f"workers = 1\nworker_silence_seconds = {SILENCE_SECONDS}"
TWO_WORKERS = f"workers = 2\nworker_silence_seconds = {SILENCE_SECONDS}"


async def _worker(server: Server) -> int:
    return (await ask_once(server.address))["pid"]


async def _until_ready_is(server: Server, status: int) -> None:
    async with asyncio.timeout(START_SECONDS_MAX):
        while (await server.probe("/readyz")).statuses != (status,):  # noqa: ASYNC110 - a probe is asked
            await asyncio.sleep(0.05)


async def test_a_stopped_worker_is_killed_and_replaced(tmp_path: Path) -> None:
    async with supervised(tmp_path, ONE_WORKER) as server:
        stopped = await _worker(server)
        os.kill(stopped, signal.SIGSTOP)

        # Nobody else accepts: the answer comes from the worker that replaces it.
        answered = await _worker(server)
        line = await server.wait_for_log("worker_silent")
        death = await server.wait_for_log("worker_died")

    assert answered != stopped
    assert f'"worker":{stopped}' in line
    assert f'"exit_code":{-signal.SIGKILL}' in death


@pytest.mark.nightly
async def test_a_worker_that_never_returns_to_its_event_loop_is_replaced(tmp_path: Path) -> None:
    async with supervised(tmp_path, ONE_WORKER) as server:
        stuck = await _worker(server)
        with pytest.raises(ConnectionError):
            await ask_once(server.address, "/stuck?seconds=3600")

        assert await _worker(server) != stuck


async def test_callers_are_served_while_one_of_two_workers_is_stopped(tmp_path: Path) -> None:
    async with supervised(tmp_path, TWO_WORKERS) as server:
        stopped = await _worker(server)
        os.kill(stopped, signal.SIGSTOP)

        reports = await asyncio.gather(*(ask_once(server.address) for _ in range(20)))
        assert (await server.probe("/readyz")).statuses == (200,)
        await server.wait_for_log("worker_silent")

    assert stopped not in {report["pid"] for report in reports}


async def test_a_silent_worker_is_not_ready_long_before_it_is_killed(tmp_path: Path) -> None:
    patient = "workers = 1\nworker_silence_seconds = 600.0"
    async with supervised(tmp_path, patient) as server:
        stopped = await _worker(server)
        os.kill(stopped, signal.SIGSTOP)

        await _until_ready_is(server, 503)
        alive = await server.probe("/livez")
        os.kill(stopped, signal.SIGCONT)
        await _until_ready_is(server, 200)

        assert alive.statuses == (200,)
        assert await _worker(server) == stopped


@pytest.mark.nightly
async def test_a_supervisor_that_was_stopped_with_its_workers_kills_none(tmp_path: Path) -> None:
    async with supervised(tmp_path, ONE_WORKER) as server:
        worker = await _worker(server)
        for number in (signal.SIGSTOP, signal.SIGCONT):
            os.kill(worker, number)
            server.send(number)
            await asyncio.sleep(SILENCE_SECONDS + 2 * COUNTED_SECONDS_MAX)

        assert await _worker(server) == worker
        assert "worker_silent" not in server.log()


async def test_a_stop_does_not_wait_for_a_stopped_worker(tmp_path: Path) -> None:
    async with supervised(tmp_path, f"{ONE_WORKER}\ndrain_seconds = 3600.0") as server:
        os.kill(await _worker(server), signal.SIGSTOP)
        server.send(signal.SIGTERM)
        async with asyncio.timeout(START_SECONDS_MAX):
            exit_code = await server.process.wait()

    assert exit_code == 1, "its requests were not finished"


@pytest.fixture
async def starting() -> AsyncIterator[WorkerProcess]:
    """A worker that has not sent a status line yet, and will not."""
    process = await asyncio.create_subprocess_exec("sleep", "3600")
    yield WorkerProcess(
        process,
        settings=settings(worker_silence_seconds=SILENCE_SECONDS),
        clock=SystemClock(),
        early_deaths=0,
        on_ready=lambda: None,
    )
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


async def test_a_worker_has_longer_to_start_than_between_two_lines(starting: WorkerProcess) -> None:
    starting.add_silence(STARTUP_SECONDS_MAX)
    is_stuck_in_time = starting.is_stuck
    starting.add_silence(1.0)

    assert not is_stuck_in_time
    assert starting.is_stuck


async def test_a_line_ends_the_silence(starting: WorkerProcess) -> None:
    reader = asyncio.StreamReader()
    following = asyncio.create_task(starting.follow(reader))
    reader.feed_data(b'{"ready":true}\n')
    while not starting.is_ready:  # noqa: ASYNC110 - has no event
        await asyncio.sleep(0)

    starting.add_silence(STATUS_SECONDS_MAX)
    was_ready = starting.is_ready
    starting.add_silence(SILENCE_SECONDS)
    was_stuck = starting.is_stuck
    reader.feed_data(b'{"ready":true}\n')
    while starting.is_stuck:  # noqa: ASYNC110 - has no event
        await asyncio.sleep(0)
    reader.feed_eof()
    await following

    assert not was_ready
    assert was_stuck
    assert not starting.is_ready, "it has closed its line"
