"""Background work: nothing that was started is lost, and nothing that failed is silent."""

import asyncio
import logging

import pytest

from tollhouse.base.errors import ServiceUnavailable
from tollhouse.base.tasks import Tasks

TIMEOUT_SECONDS = 60.0


class Lost(Exception):
    """What a task fails with here."""


class NotThere(ServiceUnavailable):
    """What a task retries after."""

    template = "The service is not there."


async def fail() -> None:
    raise Lost


def failures(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Task and class of every failure that was logged."""
    return [
        (record.__dict__["task"], record.exc_info[0].__name__)
        for record in caplog.records
        if record.getMessage() == "task_failed" and record.exc_info and record.exc_info[0]
    ]


async def test_a_started_task_has_its_name_and_gives_its_result() -> None:
    async def work() -> int:
        return 7

    task = Tasks().start("seven", work())

    assert task.get_name() == "seven"
    assert await task == 7


async def test_draining_nothing_returns_at_once() -> None:
    assert await Tasks().drain(deadline_seconds=TIMEOUT_SECONDS) == 0


async def test_draining_waits_for_what_is_under_way() -> None:
    tasks = Tasks()
    is_finished = asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0.05)
        is_finished.set()

    tasks.start("work", work())
    cancelled = await tasks.drain(deadline_seconds=TIMEOUT_SECONDS)

    assert is_finished.is_set()
    assert cancelled == 0


async def test_what_is_left_at_the_deadline_is_cancelled_and_has_ended_when_draining_returns() -> (
    None
):
    tasks = Tasks()
    has_cleaned_up = asyncio.Event()

    async def stay() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            has_cleaned_up.set()

    async def leave() -> None:
        pass

    staying, leaving = tasks.start("stay", stay()), tasks.start("leave", leave())
    cancelled = await tasks.drain(deadline_seconds=0.05)

    assert cancelled == 1
    assert staying.cancelled()
    assert has_cleaned_up.is_set()
    assert not leaving.cancelled()


async def test_draining_also_waits_for_what_a_task_starts_meanwhile() -> None:
    tasks = Tasks()
    is_finished = asyncio.Event()

    async def second() -> None:
        await asyncio.sleep(0.05)
        is_finished.set()

    async def first() -> None:
        await asyncio.sleep(0)
        tasks.start("second", second())

    tasks.start("first", first())
    await tasks.drain(deadline_seconds=TIMEOUT_SECONDS)

    assert is_finished.is_set()


async def test_a_failure_is_logged_once_with_its_task(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks()

    with caplog.at_level(logging.ERROR):
        tasks.start("doomed", fail())
        await tasks.drain(deadline_seconds=TIMEOUT_SECONDS)

    assert failures(caplog) == [("doomed", "Lost")]


async def test_a_failure_does_not_disturb_others_or_the_draining(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks = Tasks()
    is_finished = asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0.05)
        is_finished.set()

    with caplog.at_level(logging.ERROR):
        tasks.start("doomed", fail())
        tasks.start("work", work())
        cancelled = await tasks.drain(deadline_seconds=TIMEOUT_SECONDS)

    assert cancelled == 0
    assert is_finished.is_set()
    assert failures(caplog) == [("doomed", "Lost")]


async def test_a_failure_while_being_cancelled_is_logged_as_well(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks = Tasks()
    has_begun = asyncio.Event()

    async def stumble() -> None:
        has_begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise Lost from None

    with caplog.at_level(logging.ERROR):
        tasks.start("stumbling", stumble())
        await has_begun.wait()
        await tasks.drain(deadline_seconds=0)
        await asyncio.sleep(0)

    assert failures(caplog) == [("stumbling", "Lost")]


async def test_a_cancelled_task_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks()

    with caplog.at_level(logging.ERROR):
        tasks.start("waiting", asyncio.Event().wait())
        await tasks.drain(deadline_seconds=0)

    assert failures(caplog) == []


async def test_a_task_that_nobody_holds_is_not_collected() -> None:
    tasks = Tasks()
    is_finished = asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0.01)
        is_finished.set()

    tasks.start("unheld", work())
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await is_finished.wait()


async def test_what_is_repeated_goes_on_after_any_failure_and_tells_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    turns: list[int] = []
    has_recovered = asyncio.Event()

    async def work() -> None:
        turns.append(len(turns))
        if len(turns) == 1:
            raise Lost
        if len(turns) == 2:
            raise NotThere
        has_recovered.set()

    tasks = Tasks()
    with caplog.at_level(logging.WARNING):
        tasks.repeat("turning", work, 0.01)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await has_recovered.wait()
        await tasks.drain(deadline_seconds=TIMEOUT_SECONDS)

    assert failures(caplog) == [("turning", "Lost")]
    unavailable = caplog.records[1]
    assert (unavailable.levelname, unavailable.getMessage()) == ("WARNING", "task_failed")
    assert unavailable.__dict__["reason"] == "The service is not there."


async def test_a_drain_lets_a_turn_end_and_waits_for_no_other() -> None:
    tasks = Tasks()
    turns: list[str] = []
    has_begun = asyncio.Event()

    async def work() -> None:
        has_begun.set()
        await asyncio.sleep(0.01)
        turns.append("ended")

    async def rest() -> None:
        turns.append("rests")

    tasks.repeat("resting", rest, 2 * TIMEOUT_SECONDS)
    tasks.repeat("turning", work, 0.0)
    await has_begun.wait()
    cancelled = await tasks.drain(deadline_seconds=TIMEOUT_SECONDS)

    assert (cancelled, turns) == (0, ["rests", "ended"])
