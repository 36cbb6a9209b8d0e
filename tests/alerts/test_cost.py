"""A settlement that reaches no further percent of a cap calls no function of alerts."""

from collections.abc import AsyncIterator

import pytest

from tests.alerts.subscribing import outbox, subscribe
from tests.support.organization_fixture import OrganizationFixture
from tests.support.spending import Spender, spender_of
from tollhouse.alerts.types import AlertThresholds
from tollhouse.base.money import PicoUsd
from tollhouse.ledger.types import CapScope, Period
from tollhouse.storage.database import Database, Transaction

LIMIT = 1_000_000


@pytest.fixture
async def spender(org: OrganizationFixture) -> AsyncIterator[Spender]:
    async with spender_of(org) as opened:
        yield opened


async def test_amounts_without_another_percent_call_no_trigger(
    spender: Spender, database: Database
) -> None:
    thresholds = AlertThresholds(
        cap_percents=(80,), credit_percents=(80,), credit_below_pico_usd=PicoUsd(100)
    )
    await subscribe(spender.org, thresholds)
    await spender.grant(10 * LIMIT)
    for scope in CapScope:
        await spender.set_cap(spender.place(scope, Period.MONTH), LIMIT)
    await spender.spend(1)
    raised = len(await outbox(spender.org))

    async with database.transaction() as tx:
        plain = await _explained(tx, 1)
        crossing = await _explained(tx, LIMIT // 100)
        await tx.execute(
            "UPDATE spending_counters SET settled_pico = 1 WHERE organization_id = $1",
            spender.org.organization_id,
        )

    # PostgreSQL names a trigger in the plan if its function was called.
    assert "spending_counters_alert" not in plain
    assert "accounts_alert" not in plain
    assert "spending_counters_alert on spending_counters: calls=3" in crossing
    assert len(await outbox(spender.org)) == raised


async def _explained(tx: Transaction, amount: int) -> str:
    """Settle more on the account and on all capped counters; return what PostgreSQL did."""
    rows = await tx.fetch_all(
        """
        EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off)
        WITH account AS (
            UPDATE accounts
               SET settled_pico = settled_pico + 0 * $1::numeric
        )
        UPDATE spending_counters
           SET settled_pico = settled_pico + $1::numeric
         WHERE limit_pico IS NOT NULL
        """,
        amount,
    )
    return "\n".join(row[0] for row in rows)
