"""Credit: every change of it is an entry, and nothing else changes it."""

import asyncio

import pytest

from tests.ledger.shared_books import (
    database,
    database_url,
    org,
    other_org,
    settings,
    spender,
)
from tests.support.organization_fixture import OrganizationFixture
from tests.support.spending import Spender, spender_of
from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import GrantId, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.ledger import service
from tollhouse.ledger.errors import (
    CreditExhausted,
    GrantNotFound,
    GrantOfNothing,
    GrantWouldTakeCredit,
)
from tollhouse.ledger.types import GrantKind
from tollhouse.storage.database import Database

__all__ = ["database", "database_url", "org", "other_org", "settings", "spender"]
pytestmark = pytest.mark.asyncio(loop_scope="module")

NEVER_NEGATIVE = [kind for kind in GrantKind if kind is not GrantKind.CORRECTION]


async def test_a_new_organization_has_an_account_without_credit(spender: Spender) -> None:
    credit = await spender.credit()

    assert (credit.granted_pico_usd, credit.balance_pico_usd, credit.available_pico_usd) == (0,) * 3
    with pytest.raises(CreditExhausted):
        await spender.reserve(1)


async def test_a_grant_can_be_spent_to_the_last_pico_dollar(spender: Spender) -> None:
    await spender.grant(100)

    await spender.spend(60)
    held = await spender.reserve(40)

    credit = await spender.credit()
    assert (credit.balance_pico_usd, credit.reserved_pico_usd, credit.available_pico_usd) == (
        *(40, 40, 0),
    )
    with pytest.raises(CreditExhausted):
        await spender.reserve(1)
    await spender.settle(held, 39)
    await spender.spend(1)


async def test_a_balance_holds_more_than_a_single_amount_can(spender: Spender) -> None:
    largest = 10**24 - 1
    for _ in range(3):
        await spender.grant(largest)

    assert (await spender.credit()).available_pico_usd == 3 * largest


@pytest.mark.parametrize("kind", NEVER_NEGATIVE)
@pytest.mark.parametrize("amount", [0, -1])
async def test_only_a_correction_takes_credit(
    spender: Spender, kind: GrantKind, amount: int
) -> None:
    with pytest.raises(GrantWouldTakeCredit):
        await spender.grant(amount, kind)

    assert (await spender.credit()).granted_pico_usd == 0


async def test_a_correction_of_nothing_is_refused(spender: Spender) -> None:
    with pytest.raises(GrantOfNothing):
        await spender.grant(0, GrantKind.CORRECTION)


async def test_a_correction_below_what_is_used_leaves_what_runs_and_refuses_what_comes(
    spender: Spender,
) -> None:
    await spender.grant(100)
    await spender.spend(50)
    held = await spender.reserve(30)

    await spender.grant(-80, GrantKind.CORRECTION)

    assert (await spender.credit()).available_pico_usd == -60
    with pytest.raises(CreditExhausted) as refused:
        await spender.reserve(1)
    assert (refused.value.available, refused.value.held) == (-60, 30)
    await spender.settle(held, 30)
    await spender.grant(61)
    await spender.spend(1)
    assert (await spender.credit()).available_pico_usd == 0


async def test_grants_and_admissions_at_once_add_up(spender: Spender) -> None:
    await spender.grant(1000)

    await asyncio.gather(
        *(spender.spend(10) for _ in range(50)), *(spender.grant(7) for _ in range(20))
    )

    credit = await spender.credit()
    assert (credit.granted_pico_usd, credit.settled_pico_usd) == (1140, 500)


async def test_the_entries_explain_the_credit_newest_first(spender: Spender) -> None:
    made = [
        await spender.grant(100, GrantKind.SANDBOX),
        await spender.grant(50),
        await spender.grant(-20, GrantKind.CORRECTION),
    ]

    async with spender.org.database.transaction() as tx:
        first = await service.page_grants(tx, spender.org.organization_id, after=None, limit=2)
        rest = await service.page_grants(
            tx, spender.org.organization_id, after=first[-1].id, limit=2
        )

    assert first + rest == list(reversed(made))
    assert sum(grant.amount_pico_usd for grant in made) == 130
    assert (await spender.credit()).granted_pico_usd == 130
    assert {(grant.actor_type, grant.actor_id) for grant in made} == {("operator", None)}


async def test_a_foreign_entry_is_no_cursor_and_not_there(
    spender: Spender, other_org: OrganizationFixture
) -> None:
    made = await spender.grant(100)
    async with spender_of(other_org) as other:
        kept = await other.grant(1)

    async with spender.org.database.transaction() as tx:
        with pytest.raises(UnknownCursor):
            await service.page_grants(tx, other_org.organization_id, after=made.id, limit=2)
        with pytest.raises(GrantNotFound):
            await service.retrieve_grant(tx, other_org.organization_id, made.id)
        found = await service.retrieve_grant(tx, other_org.organization_id, kept.id)
    assert found.amount_pico_usd == 1


async def test_an_entry_is_found_among_others(spender: Spender) -> None:
    made = [await spender.grant(amount) for amount in (100, 50, 25)]

    async with spender.org.database.transaction() as tx:
        for grant in made:
            found = await service.retrieve_grant(tx, grant.organization_id, grant.id)
            assert (found.id, found.amount_pico_usd) == (grant.id, grant.amount_pico_usd)


async def test_an_entry_cannot_be_written_twice(spender: Spender) -> None:
    """A retry with the same ID after a lost answer must not give the credit again."""
    grant_id = GrantId(time_ordered_uuid())

    async def give() -> None:
        async with spender.org.database.mutation(spender.org.authority()) as tx:
            await service.grant(
                tx,
                grant_id=grant_id,
                kind=GrantKind.PROMOTIONAL,
                amount=PicoUsd(5),
                reason="a test",
            )

    outcomes = await asyncio.gather(*(give() for _ in range(5)), return_exceptions=True)

    assert outcomes.count(None) == 1
    assert (await spender.credit()).granted_pico_usd == 5


async def test_the_same_prices_have_one_number_whoever_asks(database: Database) -> None:
    prices = {"model-b": {"prompt": 37_500}, "model-a": {"prompt": 1, "image": 2}}
    turned = {"model-a": {"image": 2, "prompt": 1}, "model-b": {"prompt": 37_500}}

    async def ask(wanted: dict[str, dict[str, int]]) -> int:
        async with database.transaction() as tx:
            return await service.price_revision(tx, wanted)

    numbers = await asyncio.gather(*(ask(wanted) for wanted in (prices, turned) * 10))
    other = await ask({"model-a": {"prompt": 2}})

    assert len(set(numbers)) == 1
    assert other not in numbers
