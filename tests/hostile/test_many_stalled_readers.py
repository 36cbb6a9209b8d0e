"""Very many stalled readers at once on one worker."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from itertools import cycle

import msgspec
import pytest
import pytest_asyncio

from tests.hostile.answers import long_answer
from tests.hostile.clients import Caller, cut_seconds, open_ports, read_what_is_left
from tests.hostile.deployment import (
    COUNTED,
    MEGABYTE,
    SLACK_SECONDS,
    STEADY,
    Deployment,
    running_deployment,
)
from tests.hostile.neighbour import FACTOR_MAX, slowdown
from tests.support.raw_streams import CHAT, RESPONSES
from tollhouse.settings import InferenceSettings, Settings

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.clock, pytest.mark.nightly]

READERS = int(os.environ.get("TOLLHOUSE_STALLED_READERS", "100"))
"""The full run has a thousand."""
ORGANIZATIONS = 10
CONNECTING_AT_ONCE = 20
WRITE_SECONDS = 3.0 + READERS * 0.06
"""So long that the first reader is still there when the last one has come."""
SETTLE_SECONDS_MAX = 10.0 + READERS * 0.06
"""Where usage comes at the end only, a call goes on to its end before it is settled."""
BUFFER_BYTES = 256 * MEGABYTE
"""The default of `inference.buffer_worker_bytes`."""
FORMS = [
    (CHAT, STEADY, 2_000, True),
    (RESPONSES, STEADY, 2_000, True),
    (CHAT, COUNTED, 2_000, True),
    (CHAT, STEADY, 150, False),
]
"""Operation, model, tokens, and whether the answer is streamed."""


def patient(settings: Settings) -> Settings:
    """Wait longer for readers, with the default budget for what they do not read."""
    return msgspec.structs.replace(
        settings,
        server=msgspec.structs.replace(settings.server, write_seconds=WRITE_SECONDS),
        inference=InferenceSettings(),
    )


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def patient_deployment(
    migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    folder = tmp_path_factory.mktemp("patient")
    async with running_deployment(migrated_template, folder, patient) as running:
        yield running


async def test_very_many_stalled_readers_are_cut_off_and_pay(
    patient_deployment: Deployment, record_property: Callable[[str, object], None]
) -> None:
    deployment = patient_deployment
    customers = [await deployment.customer() for _ in range(ORGANIZATIONS)]
    connecting = asyncio.Semaphore(CONNECTING_AT_ONCE)

    async def stalled(key: str, form: tuple[str, str, int, bool]) -> Caller:
        path, model, tokens, is_stream = form
        async with connecting:
            caller = await Caller.connect(deployment.address, path)
            await caller.ask(key, long_answer(path, model, tokens, is_stream=is_stream))
            if is_stream:
                await caller.read_tokens(1)
            else:
                await caller.read_head()
            return caller

    payers = [customer for customer, _ in zip(cycle(customers), range(READERS), strict=False)]
    forms = [form for form, _ in zip(cycle(FORMS), range(READERS), strict=False)]
    bound = WRITE_SECONDS + SLACK_SECONDS
    quiet_ms = await deployment.neighbour.quiet_p50_ms()
    async with deployment.watched(record_property, budget_bytes=BUFFER_BYTES):
        readers = await asyncio.gather(
            *(stalled(payer.key, form) for payer, form in zip(payers, forms, strict=True))
        )
        measuring = deployment.neighbour.start()
        at_once = len({reader.port for reader in readers} & open_ports(deployment.port))
        cuts = await cut_seconds(deployment.port, readers, at_most=bound + 20)
        busy_ms = await measuring
        await read_what_is_left(readers)

    record_property("quiet_ms", quiet_ms)
    record_property("busy_ms", busy_ms)
    late = [seconds for seconds in cuts.values() if seconds is None or seconds > bound]
    record_property("late", late)
    record_property("at_once", at_once)
    record_property("slowest_cut_seconds", max(seconds or -1 for seconds in cuts.values()))
    assert at_once == READERS
    assert slowdown(quiet_ms, busy_ms) <= FACTOR_MAX, (quiet_ms, busy_ms)
    assert not late
    for customer in customers:
        own = [reader for reader, payer in zip(readers, payers, strict=True) if payer is customer]
        await customer.assert_settled(
            [reader.tokens for reader in own], seconds_max=SETTLE_SECONDS_MAX
        )
    assert await deployment.is_idle()
