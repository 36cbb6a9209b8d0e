"""When a silent stream sends its keep-alive comments."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

from tests.simulation.loop import SimulationLoop
from tollhouse.api.stream_sender import KEEP_ALIVE, StreamSender
from tollhouse.base.clock import SystemClock
from tollhouse.base.ids import OrganizationId
from tollhouse.base.tasks import Tasks
from tollhouse.evaluation import AnswerBuffers

KEEP_ALIVE_SECONDS = 10.0
RECORD = b"data: {}\n\n"
END_SECONDS = 100.0


class TimedAnswer:
    """An answer whose records arrive at given times, and which ends at the last of these."""

    def __init__(self, times: Sequence[float], buffers: AnswerBuffers) -> None:
        self.output = buffers.output_for(OrganizationId(UUID(int=1)))
        self.seconds_left = 1_000.0
        self._times = iter(times)

    async def next(self) -> bytes | None:
        loop = asyncio.get_running_loop()
        at = next(self._times)
        await asyncio.sleep(at - loop.time())
        return RECORD if at < END_SECONDS else None

    def abandon(self) -> None:
        self.output.release()


class LoopClock(SystemClock):
    """The time of a loop whose time is virtual."""

    def __init__(self, loop: SimulationLoop) -> None:
        self.monotonic_seconds = loop.time


def sent(*times: float) -> list[tuple[float, bytes]]:
    """What is written, and when, if records arrive at these times."""
    loop = SimulationLoop(None, after_step=lambda: None)
    written: list[tuple[float, bytes]] = []

    async def write(message: Any) -> None:  # noqa: ANN401 - one of ASGI's
        if message["body"]:
            written.append((loop.time(), message["body"]))

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def work() -> None:
        answer = TimedAnswer(
            (*times, END_SECONDS), AnswerBuffers(request_max=1_000_000, worker_max=1_000_000)
        )
        sender = StreamSender(
            cast("Any", answer),
            receive=receive,
            send=write,
            abort=lambda: None,
            clock=LoopClock(loop),
            keep_alive_seconds=KEEP_ALIVE_SECONDS,
        )
        await sender.run(Tasks())

    loop.run(work(), is_over=lambda: False)
    return written


def test_a_comment_is_sent_as_soon_as_the_silence_has_lasted_long_enough() -> None:
    comments = [at for at, body in sent(9.0, 33.0) if body == KEEP_ALIVE]

    assert comments == [19.0, 29.0, 43.0, 53.0, 63.0, 73.0, 83.0, 93.0]


def test_a_stream_that_is_never_silent_has_no_comments() -> None:
    times = [float(second) for second in range(1, 100, 9)]

    assert [body for _, body in sent(*times)] == [RECORD] * len(times)
