"""Callers who stop reading are cut off in time and pay for all that they received."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import pytest

from tests.hostile.answers import long_answer
from tests.hostile.clients import Caller, cut_seconds, read_what_is_left
from tests.hostile.deployment import (
    BILLING,
    COUNTED,
    INFERENCE,
    SERVER,
    SLACK_SECONDS,
    STEADY,
    Deployment,
)
from tests.support import seeds
from tests.support.raw_streams import CHAT, MESSAGES, RESPONSES
from tollhouse.base.policies import Mode

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.clock]

TOKENS, TOKENS_UNREAD_AT_END = 2_000, 600
"""What is left unread does not fit into the kernel, which grows a buffer to 4 MB."""
READERS = 3
CUT_SECONDS_MAX = SERVER["write_seconds"] + SLACK_SECONDS


class Phase(Enum):
    """How much a caller reads before it stops."""

    NOTHING = "nothing"
    HEAD = "the head"
    FIRST_EVENT = "the first event"
    MIDDLE = "a quarter"
    LAST_EVENT = "all but the end"


@dataclass(frozen=True, kw_only=True)
class Stall:
    """A way to stop reading."""

    path: str = CHAT
    is_stream: bool = True
    reads: Phase = Phase.MIDDLE
    mode: Mode | None = None
    model: str = STEADY

    @property
    def tokens(self) -> int:
        return TOKENS_UNREAD_AT_END if self.reads is Phase.LAST_EVENT else TOKENS

    @property
    def readers(self) -> int:
        """A whole answer takes seven times its size of the share while it is evaluated."""
        return 1 if self.mode is Mode.ENFORCING and not self.is_stream else READERS

    def __str__(self) -> str:
        operation = self.path.rpartition("/")[2]
        form = "stream" if self.is_stream else "JSON"
        policy = f", {self.mode.value} policy" if self.mode else ""
        return f"{operation} {form} of {self.model}, {self.reads.value} read{policy}"


async def stop_reading(caller: Caller, stall: Stall) -> None:
    match stall.reads:
        case Phase.NOTHING:
            await caller.wait_for_answer()
        case Phase.HEAD:
            await caller.read_head()
        case Phase.FIRST_EVENT:
            await caller.read_tokens(1)
        case Phase.MIDDLE if not stall.is_stream:
            await caller.read_head()
            await caller.read_bytes(caller.content_length // 4)
        case Phase.MIDDLE:
            await caller.read_tokens(stall.tokens // 4)
        case Phase.LAST_EVENT:
            await caller.read_tokens(stall.tokens - 1)


STREAMS = [
    Stall(path=path, reads=reads)
    for path in (CHAT, RESPONSES, MESSAGES)
    for reads in (Phase.HEAD, Phase.FIRST_EVENT, Phase.MIDDLE)
]
ENDS_OF_STREAMS = [
    Stall(path=RESPONSES, reads=Phase.LAST_EVENT, mode=mode)
    for mode in (None, Mode.MONITORING, Mode.ENFORCING)
]
JUDGED_STREAMS = [
    *(Stall(path=path, mode=Mode.MONITORING) for path in (CHAT, RESPONSES, MESSAGES)),
    *(
        Stall(path=path, reads=reads, mode=Mode.ENFORCING)
        for path in (CHAT, RESPONSES)
        for reads in (Phase.NOTHING, Phase.MIDDLE)
    ),
]
"""Messages have only text, and what a judge can read of it fits into the kernel's buffers."""
WHOLE_ANSWERS = [
    Stall(path=path, is_stream=False, reads=reads, mode=mode)
    for path in (CHAT, RESPONSES)
    for reads, mode in (
        (Phase.NOTHING, None),
        (Phase.MIDDLE, None),
        (Phase.HEAD, Mode.MONITORING),
        (Phase.MIDDLE, Mode.ENFORCING),
    )
]
USAGE_UNKNOWN = [
    Stall(path=path, reads=Phase.MIDDLE, model=model)
    for path in (CHAT, RESPONSES)
    for model in (COUNTED, BILLING)
]
STALLS = [*STREAMS, *ENDS_OF_STREAMS, *JUDGED_STREAMS, *WHOLE_ANSWERS, *USAGE_UNKNOWN]


async def stalled_readers(deployment: Deployment, key: str, stall: Stall) -> Sequence[Caller]:
    """Ask, read up to the phase, and stop."""
    body = long_answer(stall.path, stall.model, stall.tokens, is_stream=stall.is_stream)

    async def stalled() -> Caller:
        caller = await Caller.connect(deployment.address, stall.path)
        await caller.ask(key, body)
        await stop_reading(caller, stall)
        return caller

    return await asyncio.gather(*(stalled() for _ in range(stall.readers)))


@pytest.mark.parametrize("stall", seeds.partly_nightly(STALLS, at_landings=1), ids=str)
async def test_a_stalled_reader_is_cut_off_and_pays(
    deployment: Deployment, stall: Stall, record_property: Callable[[str, object], None]
) -> None:
    customer = await deployment.customer(mode=stall.mode)

    async with deployment.attacked(record_property, budget_bytes=INFERENCE["buffer_worker_bytes"]):
        readers = await stalled_readers(deployment, customer.key, stall)
        cuts = await cut_seconds(deployment.port, readers, at_most=CUT_SECONDS_MAX + 1)
    await read_what_is_left(readers)

    record_property("cut_seconds", [cuts[reader.port] for reader in readers])
    assert all(seconds is not None and seconds <= CUT_SECONDS_MAX for seconds in cuts.values()), (
        cuts
    )
    assert not any(reader.is_whole for reader in readers)
    await customer.assert_settled([reader.tokens for reader in readers])
    assert await deployment.is_idle()
