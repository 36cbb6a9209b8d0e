"""A batch is decided item by item in its function, and never by a constraint.

The constraints would refuse a whole batch, and the batcher would then try its items one by one:
callers would see the same answers, later. So the batches here go to the function directly.
"""

from uuid import UUID

import pytest

from tests.ledger.money import Payer, new_payer
from tests.ledger.sending import Form, send
from tests.ledger.shared_books import database, database_url, settings
from tollhouse.base.money import PicoUsd
from tollhouse.ledger.batches import AdmissionDecision
from tollhouse.ledger.rules import CAPS, FIRST_CAP_CODE
from tollhouse.ledger.types import AdmissionVerdict, CapScope, Period
from tollhouse.storage.database import Database

__all__ = ["database", "database_url", "settings"]
pytestmark = pytest.mark.asyncio(loop_scope="module")

PLENTY = 10**9
AMOUNTS = (60, 60, 40, 1)
"""With 100 to spend, the second and the last one are refused, each because of those before it."""


async def decisions(database: Database, payer: Payer, form: Form) -> list[AdmissionDecision | None]:
    result = await send(database, [], [payer.hold(amount) for amount in AMOUNTS], form)
    return result.decisions


def refused_by(code: int) -> list[AdmissionDecision]:
    """The first and the third item are admitted; what they hold is told to the others."""
    admitted = decision(AdmissionVerdict.ADMITTED, 0, 0)
    return [admitted, decision(code, 40, 60), admitted, decision(code, 0, 100)]


def decision(code: int, available: int, held: int) -> AdmissionDecision:
    return AdmissionDecision(
        code=code, available_pico_usd=PicoUsd(available), held_pico_usd=PicoUsd(held)
    )


async def set_cap(
    database: Database, payer: Payer, scope: CapScope, period: Period, limit: int
) -> None:
    scope_ids: dict[CapScope, UUID] = {
        CapScope.ORGANIZATION: payer.organization_id,
        CapScope.PROJECT: payer.project_id,
        CapScope.KEY: payer.api_key_id,
    }
    async with database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO spending_caps (organization_id, scope, scope_id, period, limit_pico,
                                       alert_percent)
            VALUES ($1, $2, $3, $4, $5, 80)
            """,
            payer.organization_id,
            scope,
            scope_ids[scope],
            period,
            limit,
        )


@pytest.mark.parametrize("form", Form)
async def test_items_are_refused_by_the_credit_that_those_before_them_took(
    database: Database, form: Form
) -> None:
    payer = await new_payer(database, credit=100)

    assert await decisions(database, payer, form) == refused_by(AdmissionVerdict.NO_CREDIT)


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("number", range(len(CAPS)), ids=[" ".join(cap) for cap in CAPS])
async def test_items_are_refused_by_what_those_before_them_took_of_a_cap(
    database: Database, number: int, form: Form
) -> None:
    payer = await new_payer(database, credit=PLENTY)
    scope, period = CAPS[number]
    await set_cap(database, payer, scope, period, 100)

    assert await decisions(database, payer, form) == refused_by(FIRST_CAP_CODE + number)
