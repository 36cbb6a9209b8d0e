"""Five hundred at once from four processes, and money for exactly k: exactly k get in."""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

import pytest
import pytest_asyncio

from tests.ledger.money import Payer, give, new_payer
from tests.ledger.stampede import PROCESSES, Crowd, Rush, crowd
from tests.support import databases, seeds
from tests.support.gateway import settings_for
from tollhouse.app import connect
from tollhouse.storage.database import Database

ADMISSIONS = 500
SEEDS = int(os.environ.get("TOLLHOUSE_SEEDS", "3"))
PLENTY = 10**20


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def database_url(migrated_template: str) -> AsyncIterator[str]:
    async with databases.temporary(template=migrated_template) as url:
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rushing(database_url: str) -> AsyncIterator[Crowd]:
    """One crowd for all: starting processes takes longer than what they do here."""
    async with crowd(database_url) as processes:
        yield processes


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = await connect(settings_for(database_url))
    yield opened
    await opened.close()


async def cap(
    database: Database, payer: Payer, scope: str, period: str, scope_id: UUID, limit: int
) -> None:
    """Before anything is spent, so that the first admission opens counters with the limit."""
    async with database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO spending_caps (organization_id, scope, scope_id, period, limit_pico,
                                       alert_percent)
            VALUES ($1, $2, $3, $4, $5, 80)
            """,
            payer.organization_id,
            scope,
            scope_id,
            period,
            limit,
        )


async def in_use(database: Database, payer: Payer) -> int:
    async with database.transaction() as tx:
        used = await tx.fetch_value(
            "SELECT settled_pico + reserved_pico FROM accounts WHERE organization_id = $1",
            payer.organization_id,
        )
    return int(used)


@dataclass(frozen=True)
class Bound:
    name: str
    code: str
    period: str = "month"

    @property
    def text(self) -> str:
        return self.name if self.name == "credit" else f"{self.name}-{self.period}"


BOUNDS = [
    Bound("credit", "credit_balance_exhausted"),
    *(
        Bound(scope, f"{scope}_spend_limit_exceeded", period)
        for scope in ("organization", "project", "api_key")
        for period in ("day", "week", "month")
    ),
]


async def bounded_payer(database: Database, bound: Bound, limit: int) -> Payer:
    if bound.name == "credit":
        return await new_payer(database, credit=limit)
    payer = await new_payer(database, credit=PLENTY)
    scope_ids = {
        "organization": payer.organization_id,
        "project": payer.project_id,
        "api_key": payer.api_key_id,
    }
    await cap(database, payer, bound.name, bound.period, scope_ids[bound.name], limit)
    return payer


@pytest.mark.guarantee("T1", "I1")
@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.text)
async def test_money_for_k_admits_exactly_k(
    database: Database, rushing: Crowd, bound: Bound
) -> None:
    for number in range(SEEDS):
        chance = seeds.chance(bound.text, number)
        k, amount = chance.randrange(ADMISSIONS + 1), chance.randrange(1, 10**9)
        # Less than one more would need, so that a single unit too many would show.
        payer = await bounded_payer(database, bound, k * amount + chance.randrange(amount))

        admitted, codes = await rushing.rush(Rush(payer, ADMISSIONS // PROCESSES, amount))

        assert admitted == k, number
        assert codes == ({bound.code} if k < ADMISSIONS else set())
        assert await in_use(database, payer) == k * amount


@pytest.mark.guarantee("I8")
async def test_nothing_is_refused_once_everything_was_given_back(
    database: Database, rushing: Crowd
) -> None:
    payer = await new_payer(database, credit=ADMISSIONS * 7)

    for _ in range(3):
        admitted, codes = await rushing.rush(
            Rush(payer, ADMISSIONS // PROCESSES, 7, are_voided=True)
        )
        assert (admitted, codes) == (ADMISSIONS, set())

    assert await in_use(database, payer) == 0


async def test_credit_that_is_given_meanwhile_is_used_to_the_last_unit(
    database: Database, rushing: Crowd
) -> None:
    payer = await new_payer(database, credit=100)
    admitted, _ = await rushing.rush(Rush(payer, ADMISSIONS // PROCESSES, 3))
    assert admitted == 33

    await give(database, payer, 5)
    admitted, _ = await rushing.rush(Rush(payer, ADMISSIONS // PROCESSES, 3))
    assert admitted == 2
