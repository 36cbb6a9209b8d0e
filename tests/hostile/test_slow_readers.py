"""Callers who read slowly are served for as long as a call may take, and pay."""

import asyncio
from collections.abc import Callable
from time import monotonic

import pytest

from tests.hostile.answers import long_answer
from tests.hostile.clients import Caller, open_ports
from tests.hostile.deployment import (
    BRIEF,
    INFERENCE,
    SERVER,
    SLACK_SECONDS,
    STEADY,
    TOTAL_SECONDS,
    Deployment,
)
from tests.support import seeds
from tests.support.raw_streams import CHAT, RESPONSES
from tollhouse.inference.pipeline import SETTLING_GRACE
from tollhouse.settings import InferenceSettings

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.clock]

READERS = 3
READ_BYTES, READ_EVERY_SECONDS = 8_192, 0.1
SHORT_TOKENS = {
    (CHAT, True): 200,
    (CHAT, False): 120,
    (RESPONSES, True): 40,
    (RESPONSES, False): 120,
}
"""By operation and form. A stream takes longer to send than a send may stand still."""
LONG_TOKENS = 2_000
HOLD_SECONDS = (
    InferenceSettings().admission_seconds + TOTAL_SECONDS + SETTLING_GRACE.total_seconds()
)
"""When the credit of such a call expires; time in which its caller reads is not the engine's."""
DRAIN_SECONDS = 10.0
"""For what the kernel had taken when the time of the call was over."""


async def read_slowly(caller: Caller, port: int) -> float:
    """Read a little at a time to the end; return after how long the server was done with it.

    A server that has closed may have left bytes with the kernel, which are read as well.
    """
    began = monotonic()
    closed_seconds: float | None = None
    while not caller.is_whole and await caller.read(READ_BYTES):
        if closed_seconds is None and caller.port not in open_ports(port):
            closed_seconds = monotonic() - began
        await asyncio.sleep(READ_EVERY_SECONDS)
    return monotonic() - began if closed_seconds is None else closed_seconds


async def slow_readers(
    deployment: Deployment, key: str, path: str, body: dict[str, object]
) -> tuple[list[Caller], list[float]]:
    callers = [await Caller.connect(deployment.address, path) for _ in range(READERS)]
    for caller in callers:
        await caller.ask(key, body)
    ends = await asyncio.gather(*(read_slowly(caller, deployment.port) for caller in callers))
    for caller in callers:
        caller.close()
    return callers, ends


@pytest.mark.parametrize("form", seeds.partly_nightly(SHORT_TOKENS, at_landings=1), ids=str)
async def test_a_slow_reader_gets_and_pays_its_whole_answer(
    deployment: Deployment,
    form: tuple[str, bool],
    record_property: Callable[[str, object], None],
) -> None:
    customer = await deployment.customer()
    (path, is_stream), tokens = form, SHORT_TOKENS[form]
    body = long_answer(path, STEADY, tokens, is_stream=is_stream)

    async with deployment.attacked(record_property, budget_bytes=INFERENCE["buffer_worker_bytes"]):
        callers, ends = await slow_readers(deployment, customer.key, path, body)

    record_property("seconds", ends)
    if is_stream:
        # Otherwise the kernel took all of it at once, and nobody waited for the reader.
        assert max(ends) > SERVER["write_seconds"] + SERVER["keep_alive_seconds"]
    assert all(caller.is_whole for caller in callers)
    assert [caller.tokens for caller in callers] == [tokens] * READERS
    await customer.assert_settled([caller.tokens for caller in callers])


@pytest.mark.nightly
@pytest.mark.parametrize("path", [CHAT, RESPONSES])
async def test_a_slow_reader_of_a_long_answer_is_cut_off_at_the_end_of_its_time(
    deployment: Deployment, path: str, record_property: Callable[[str, object], None]
) -> None:
    customer = await deployment.customer()
    body = long_answer(path, BRIEF, LONG_TOKENS, is_stream=True)

    async with deployment.attacked(record_property, budget_bytes=INFERENCE["buffer_worker_bytes"]):
        callers, ends = await slow_readers(deployment, customer.key, path, body)

    record_property("seconds", ends)
    assert max(ends) <= HOLD_SECONDS + DRAIN_SECONDS + SLACK_SECONDS
    assert max(caller.tokens for caller in callers) < LONG_TOKENS
    await customer.assert_settled([caller.tokens for caller in callers])
    assert await deployment.is_idle()
