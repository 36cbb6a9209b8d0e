"""A batch of several organizations decides each by its own credit, caps and counters."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.ledger.money import DEADLINE, Payer
from tests.ledger.sending import Form, send
from tests.ledger.shared_books import database, database_url, settings
from tests.support.organization_fixture import new_organization_fixture
from tests.support.spending import Spender, spender_of
from tollhouse.ledger.rules import CAPS, FIRST_CAP_CODE
from tollhouse.ledger.types import AdmissionVerdict, Hold
from tollhouse.storage.database import Database

__all__ = ["database", "database_url", "settings"]
pytestmark = pytest.mark.asyncio(loop_scope="module")

CREDIT = 1_000_000
CAP = 100


@pytest_asyncio.fixture(loop_scope="module")
async def spenders(database: Database) -> AsyncIterator[list[Spender]]:
    """One organization for each kind of cap, which has this cap and no other."""
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(spender_of(await new_organization_fixture(database)))
            for _ in CAPS
        ]
        for spender, (scope, period) in zip(opened, CAPS, strict=True):
            await spender.grant(CREDIT)
            await spender.set_cap(spender.place(scope, period), CAP)
        yield opened


def hold(spender: Spender, amount: int) -> Hold:
    payer = Payer(spender.org.organization_id, spender.project_id, spender.api_key_id)
    return payer.hold(amount, deadline=DEADLINE)


async def admit(database: Database, holds: list[Hold], form: Form) -> list[tuple[int, int, int]]:
    result = await send(database, [], holds, form)
    assert None not in result.decisions
    return [
        (decision.code, decision.available_pico_usd, decision.held_pico_usd)
        for decision in result.decisions
        if decision is not None
    ]


@pytest.mark.parametrize("form", [Form.MIXED, Form.ALONE])
async def test_each_organization_is_held_to_its_own_cap(
    database: Database, spenders: list[Spender], form: Form
) -> None:
    first = await admit(database, [hold(spender, 60) for spender in spenders], form)
    second = await admit(database, [hold(spender, 41) for spender in spenders], form)
    third = await admit(database, [hold(spender, 40) for spender in spenders], form)

    assert first == third == [(AdmissionVerdict.ADMITTED, 0, 0)] * len(CAPS)
    assert second == [(FIRST_CAP_CODE + place, 40, 60) for place in range(len(CAPS))]
    for spender in spenders:
        assert (await spender.credit()).reserved_pico_usd == CAP
        (use,) = await spender.caps()
        assert (use.reserved_pico_usd, use.remaining_pico_usd) == (CAP, 0)


@pytest.mark.parametrize("form", [Form.MIXED, Form.ALONE])
async def test_one_that_is_refused_does_not_stop_the_others(
    database: Database, spenders: list[Spender], form: Form
) -> None:
    amounts = [60, 101, 100, CREDIT + 1, 1, 100]

    found = await admit(
        database,
        [hold(spender, amount) for spender, amount in zip(spenders[:6], amounts, strict=True)],
        form,
    )

    assert found == [
        (AdmissionVerdict.ADMITTED, 0, 0),
        (FIRST_CAP_CODE + 1, CAP, 0),
        (AdmissionVerdict.ADMITTED, 0, 0),
        (AdmissionVerdict.NO_CREDIT, CREDIT, 0),
        (AdmissionVerdict.ADMITTED, 0, 0),
        (AdmissionVerdict.ADMITTED, 0, 0),
    ]
    reserved = [(await spender.credit()).reserved_pico_usd for spender in spenders[:6]]
    assert reserved == [60, 0, 100, 0, 1, 100]
