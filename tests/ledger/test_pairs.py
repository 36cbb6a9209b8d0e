"""One resolution and one admission in one statement."""

import asyncio

import pytest

from tests.identity.waiting import holding, until_a_lock_is_awaited
from tests.ledger.money import new_payer, posted
from tests.ledger.sending import Form, send
from tollhouse.ledger.types import AdmissionVerdict, ResolutionResult
from tollhouse.storage.database import Database

CREDIT = 100
LOCK = "SELECT 1 FROM accounts WHERE organization_id = $1 FOR UPDATE"

PLANNED_ONCE = {
    "ledger_admit_one",
    "ledger_admit_batch",
    "ledger_settle_one",
    "ledger_settle_batch",
}


@pytest.mark.parametrize("form", [Form.OWN, Form.MIXED])
async def test_an_admission_can_reserve_what_the_resolution_gives_back(
    database: Database, form: Form
) -> None:
    payer = await new_payer(database, credit=CREDIT)
    first, second = payer.hold(CREDIT), payer.hold(CREDIT - 1)
    await send(database, [], [first])

    result = await send(database, [posted(first, 1)], [second], form)

    assert result.resolved == [ResolutionResult.NOW]
    assert [decision and decision.code for decision in result.decisions] == [
        AdmissionVerdict.ADMITTED
    ]


async def test_a_refused_admission_does_not_stop_the_resolution(database: Database) -> None:
    payer = await new_payer(database, credit=CREDIT)
    first, second = payer.hold(CREDIT), payer.hold(CREDIT)
    await send(database, [], [first])

    result = await send(database, [posted(first, 1)], [second])

    assert result.resolved == [ResolutionResult.NOW]
    (decision,) = result.decisions
    assert decision is not None
    assert (decision.code, decision.available_pico_usd) == (AdmissionVerdict.NO_CREDIT, CREDIT - 1)


async def test_it_can_be_sent_again(database: Database) -> None:
    payer = await new_payer(database, credit=CREDIT)
    first, second = payer.hold(CREDIT), payer.hold(1)
    await send(database, [], [first])
    await send(database, [posted(first, 1)], [second])

    result = await send(database, [posted(first, 1)], [second], is_retry=True)

    assert result.resolved == [ResolutionResult.BEFORE]
    assert [decision and decision.code for decision in result.decisions] == [
        AdmissionVerdict.ADMITTED
    ]


async def test_it_waits_for_a_locked_account_or_skips_it(
    database: Database, database_url: str
) -> None:
    payer = await new_payer(database, credit=CREDIT)
    first, second = payer.hold(1), payer.hold(1)
    await send(database, [], [first])

    async with holding(database_url, LOCK, payer.organization_id):
        skipped = await send(database, [posted(first, 1)], [second], Form.MIXED)
        waiting = asyncio.ensure_future(send(database, [posted(first, 1)], [second]))
        await until_a_lock_is_awaited(database_url)

    assert (skipped.resolved, skipped.decisions) == ([None], [None])
    waited = await waiting
    assert waited.resolved == [ResolutionResult.NOW]
    assert [decision and decision.code for decision in waited.decisions] == [
        AdmissionVerdict.ADMITTED
    ]


async def test_no_batch_is_planned_anew(database: Database) -> None:
    """Without the setting, each batch would be planned anew."""
    rows = await database.fetch_all(
        """
        SELECT proname FROM pg_proc
         WHERE 'plan_cache_mode=force_generic_plan' = ANY(proconfig)
        """
    )

    assert {row["proname"] for row in rows} == PLANNED_ONCE
