"""Caps: set, raised, lowered and cleared while money flows, and never crossed."""

from datetime import UTC, date, datetime, timedelta
from uuid import uuid4

import pytest

from tests.identity.audit_rows import audit_rows
from tests.ledger.shared_books import database, database_url, org, other_org, settings
from tests.ledger.shared_books import funded_spender as spender
from tests.support.organization_fixture import OrganizationFixture
from tests.support.spending import Spender, spender_of
from tollhouse.base.errors import GatewayError
from tollhouse.ledger.errors import (
    CAP_ERRORS,
    CapNotFound,
    CappedKeyNotFound,
    CappedProjectNotFound,
    CreditExhausted,
    OrganizationCapReached,
)
from tollhouse.ledger.types import CapId, CapScope, Hold, Period

__all__ = ["database", "database_url", "org", "other_org", "settings", "spender"]
pytestmark = pytest.mark.asyncio(loop_scope="module")

PLACES = [(scope, period) for scope in CapScope for period in Period]
MONTH = (CapScope.ORGANIZATION, Period.MONTH)


@pytest.mark.parametrize(("scope", "period"), PLACES)
async def test_a_cap_counts_what_was_spent_before_it_was_set(
    spender: Spender, scope: CapScope, period: Period
) -> None:
    await spender.spend(70)
    held = await spender.reserve(20)

    use = await spender.set_cap(spender.place(scope, period), 100)

    assert (use.settled_pico_usd, use.reserved_pico_usd, use.remaining_pico_usd) == (70, 20, 10)
    with pytest.raises(CAP_ERRORS[scope]) as refused:
        await spender.reserve(11)
    assert (refused.value.available, refused.value.held) == (10, 20)
    await spender.settle(held, 15)
    await spender.spend(15)
    with pytest.raises(CAP_ERRORS[scope]):
        await spender.reserve(1)


@pytest.mark.parametrize(("scope", "period"), PLACES)
async def test_a_cap_set_before_anything_is_spent_holds_from_the_first_request(
    spender: Spender, scope: CapScope, period: Period
) -> None:
    use = await spender.set_cap(spender.place(scope, period), 100)

    assert (use.settled_pico_usd, use.reserved_pico_usd, use.is_alerting) == (0, 0, False)
    with pytest.raises(CAP_ERRORS[scope]):
        await spender.reserve(101)
    await spender.spend(100)


async def leave_unsettled(spender: Spender, hold: Hold, *, day: date, is_own: bool) -> None:
    """List a hold as unsettled, in the name of its own key or of another project's."""
    async with spender.org.database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO unsettled_holds (organization_id, admitted_day, reservation_id, held_pico,
                                         admitted_at, project_id, api_key_id, decide_at)
            VALUES ($1, $2, $3, $4, now(), $5, $6, now() + interval '1 hour')
            """,
            hold.organization_id,
            day,
            hold.reservation_id,
            hold.amount_pico_usd,
            hold.project_id if is_own else uuid4(),
            hold.api_key_id if is_own else uuid4(),
        )


@pytest.mark.parametrize(("scope", "period"), PLACES)
async def test_a_refusal_leaves_out_what_is_unsettled_in_its_scope_and_window(
    spender: Spender, scope: CapScope, period: Period
) -> None:
    hold = await spender.reserve(40)
    await spender.reserve(20)
    await spender.set_cap(spender.place(scope, period), 100)
    held: list[int] = []

    for day, is_own in ((0, True), (40, True), (0, False)):
        admitted_day = hold.admitted_day - timedelta(days=day)
        await leave_unsettled(spender, hold, day=admitted_day, is_own=is_own)
        with pytest.raises(CAP_ERRORS[scope]) as refused:
            await spender.reserve(41)
        held.append(refused.value.held)
        async with spender.org.database.transaction() as tx:
            await tx.execute("DELETE FROM unsettled_holds")

    of_another_month = 20 if period is Period.LIFETIME else 60
    of_another_key = 20 if scope is CapScope.ORGANIZATION else 60
    assert held == [20, of_another_month, of_another_key]


async def test_a_cap_lowered_below_use_refuses_and_lets_what_runs_finish(spender: Spender) -> None:
    place = spender.place(*MONTH)
    await spender.set_cap(place, 100)
    await spender.spend(50)
    held = await spender.reserve(40)

    use = await spender.set_cap(place, 30)

    assert use.remaining_pico_usd == -60
    with pytest.raises(OrganizationCapReached) as refused:
        await spender.reserve(1)
    assert refused.value.available == -60
    await spender.settle(held, 40)
    await spender.set_cap(place, 91)
    await spender.spend(1)


async def test_a_cap_of_zero_stops_everything(spender: Spender) -> None:
    await spender.set_cap(spender.place(*MONTH), 0)

    with pytest.raises(OrganizationCapReached):
        await spender.reserve(1)


async def test_a_cleared_cap_bounds_nothing_and_its_window_counts_on(spender: Spender) -> None:
    place = spender.place(*MONTH)
    await spender.set_cap(place, 10)
    await spender.clear_cap(place)
    await spender.spend(50)

    use = await spender.set_cap(place, 60)

    assert use.settled_pico_usd == 50
    assert use.remaining_pico_usd == 10


async def test_a_cap_beyond_the_credit_does_not_give_any(spender: Spender) -> None:
    await spender.set_cap(spender.place(*MONTH), 10**24)

    with pytest.raises(CreditExhausted):
        await spender.reserve(10**6 + 1)


async def test_the_next_month_begins_at_nothing_and_a_lifetime_does_not(spender: Spender) -> None:
    await spender.set_cap(spender.place(*MONTH), 100)
    await spender.set_cap(spender.place(CapScope.ORGANIZATION, Period.LIFETIME), 100)
    await spender.spend(90)

    later = await spender.caps(datetime.now(UTC) + timedelta(days=32))

    used = {use.cap.period: use.settled_pico_usd for use in later}
    assert used == {Period.MONTH: 0, Period.LIFETIME: 90}
    assert {use.is_alerting for use in later if use.cap.period is Period.MONTH} == {False}


async def test_the_same_cap_again_changes_nothing(spender: Spender) -> None:
    place = spender.place(*MONTH)
    first = await spender.set_cap(place, 100)
    rows_before = len(await audit_rows(spender.org))

    assert await spender.set_cap(place, 100) == first
    assert len(await audit_rows(spender.org)) == rows_before
    await spender.set_cap(place, 100, alert_percent=90)
    assert len(await audit_rows(spender.org)) == rows_before + 1


async def test_clearing_what_is_not_set_is_a_failure(spender: Spender) -> None:
    with pytest.raises(CapNotFound):
        await spender.clear_cap(spender.place(*MONTH))


@pytest.mark.parametrize(
    ("scope", "failure"),
    [(CapScope.PROJECT, CappedProjectNotFound), (CapScope.KEY, CappedKeyNotFound)],
)
async def test_only_the_organizations_own_can_be_capped(
    spender: Spender, other_org: OrganizationFixture, scope: CapScope, failure: type[GatewayError]
) -> None:
    async with spender_of(other_org) as other:
        foreign = other.place(scope, Period.MONTH)
        unknown = CapId(scope=scope, scope_id=uuid4(), period=Period.MONTH)

        for place in (foreign, unknown):
            with pytest.raises(failure):
                await spender.set_cap(place, 1)
            with pytest.raises(failure):
                await spender.clear_cap(place)


async def test_caps_of_one_scope_are_not_anothers(spender: Spender) -> None:
    async with spender_of(spender.org) as neighbour:
        await spender.set_cap(spender.place(CapScope.PROJECT, Period.MONTH), 10)
        await spender.set_cap(spender.place(CapScope.KEY, Period.LIFETIME), 10)

        await neighbour.spend(100)

    assert {use.settled_pico_usd for use in await spender.caps()} == {0}
