"""A look raises what is reached, once per threshold, window and subject."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tests.alerts.subscribing import outbox, subscribe
from tests.ledger.invariants import assert_conserved
from tests.support.organization_fixture import OrganizationFixture
from tests.support.spending import Spender, spender_of
from tollhouse.alerts import rules, service
from tollhouse.alerts.delivery import DOWN_LOOKS, BackendWatch
from tollhouse.alerts.outbox import purge
from tollhouse.alerts.types import AlertDelivery, AlertThresholds, AlertType
from tollhouse.base.ids import time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.ledger.types import CapScope, GrantKind, Period

AT_SHARES = AlertThresholds(cap_percents=(50, 80, 100))


@pytest.fixture
async def spender(org: OrganizationFixture) -> AsyncIterator[Spender]:
    async with spender_of(org) as opened:
        yield opened
    await assert_conserved(org.database)


def shares(found: list[AlertDelivery]) -> list[tuple[str, str, int]]:
    return sorted((a.details["scope"], a.details["period"], a.details["percent"]) for a in found)


@pytest.mark.parametrize("period", Period)
async def test_every_share_of_every_cap_is_raised_once_when_it_is_reached(
    spender: Spender, period: Period
) -> None:
    await subscribe(spender.org, AT_SHARES)
    await spender.grant(10_000)
    for scope in CapScope:
        await spender.set_cap(spender.place(scope, period), 1000)

    await spender.spend(499)
    assert await outbox(spender.org) == []
    await spender.spend(1)
    assert shares(await outbox(spender.org)) == [(s, period, 50) for s in sorted(CapScope)]
    for _ in range(20):
        await spender.spend(5)
    await spender.spend(400)

    expected = [(s, period, percent) for s in sorted(CapScope) for percent in (50, 80, 100)]
    assert shares(await outbox(spender.org)) == expected
    await subscribe(spender.org, AT_SHARES)
    assert shares(await outbox(spender.org)) == sorted(2 * expected)


async def test_a_jump_over_two_thresholds_raises_both_and_names_the_subject(
    spender: Spender,
) -> None:
    await subscribe(spender.org, AT_SHARES)
    await spender.grant(10_000)
    await spender.set_cap(spender.place(CapScope.PROJECT, Period.LIFETIME), 1000)

    await spender.spend(990)

    found = sorted(await outbox(spender.org), key=lambda alert: alert.details["percent"])
    assert shares(found) == [("project", "lifetime", 50), ("project", "lifetime", 80)]
    assert rules.sentence(found[0]) == (
        "Project a project has reached 50 % of the lifetime cap of $0.000000001:"
        " $0.00000000099 is used."
    )


async def test_nothing_is_raised_without_a_subscription_or_by_what_is_only_held(
    spender: Spender,
) -> None:
    await spender.grant(10_000)
    await spender.set_cap(spender.place(CapScope.KEY, Period.MONTH), 1000)
    await spender.spend(600)
    subscription, _ = await subscribe(spender.org, AlertThresholds(cap_percents=(80,)))
    await spender.reserve(300)

    assert await outbox(spender.org) == []
    async with spender.org.database.mutation(spender.org.authority()) as tx:
        await service.delete(tx, subscription.id)
    await spender.spend(100)
    assert await outbox(spender.org) == []


async def test_what_is_reached_already_is_raised_by_the_subscription_itself(
    spender: Spender,
) -> None:
    await spender.grant(1000)
    await spender.set_cap(spender.place(CapScope.KEY, Period.MONTH), 1000)
    await spender.spend(850)

    thresholds = AlertThresholds(
        cap_percents=(80, 90), credit_percents=(85,), credit_below_pico_usd=PicoUsd(200)
    )
    await subscribe(spender.org, thresholds)

    found = await outbox(spender.org)
    assert sorted(alert.type for alert in found) == [
        AlertType.CAP,
        AlertType.CREDIT,
        AlertType.CREDIT,
    ]


async def test_a_changed_cap_raises_for_the_present_window_alone(spender: Spender) -> None:
    await subscribe(spender.org, AT_SHARES)
    await spender.grant(10_000)
    place = spender.place(CapScope.KEY, Period.MONTH)
    await spender.spend(600)
    async with spender.org.database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO spending_counters (organization_id, scope, scope_id, window_start)
            VALUES ($1, 'api_key', $2, '2026-01-01')
            """,
            spender.org.organization_id,
            spender.api_key_id,
        )
        await tx.execute(
            "UPDATE spending_counters SET settled_pico = 900 WHERE window_start = '2026-01-01'"
        )

    await spender.set_cap(place, 1000)

    [alert] = await outbox(spender.org)
    assert alert.details["window_start"] == str(datetime.now(UTC).date().replace(day=1))
    await spender.set_cap(place, 10_000)
    assert len(await outbox(spender.org)) == 1
    await spender.set_cap(place, 1200)
    assert shares((await outbox(spender.org))[1:]) == [("api_key", "month", 50)]
    async with spender.org.database.transaction() as tx:
        await tx.execute("DELETE FROM spending_counters WHERE window_start = '2026-01-01'")


async def test_credit_is_raised_by_share_and_by_amount_and_again_after_a_payment(
    spender: Spender,
) -> None:
    thresholds = AlertThresholds(credit_percents=(50,), credit_below_pico_usd=PicoUsd(105))
    await subscribe(spender.org, thresholds)
    # A credit of nothing is below the amount, and no share of it can be used.
    assert [alert.details["below_pico"] for alert in await outbox(spender.org)] == ["105"]

    await spender.grant(1000)
    await spender.spend(499)
    assert len(await outbox(spender.org)) == 1
    await spender.spend(1)
    await spender.spend(394)
    assert len(await outbox(spender.org)) == 2
    await spender.spend(1)
    await spender.spend(1)

    assert [alert.details["percent"] for alert in (await outbox(spender.org))[1:]] == [50, None]
    await spender.grant(1000)
    assert len(await outbox(spender.org)) == 3
    await spender.spend(999)
    assert len(await outbox(spender.org)) == 5


async def test_a_lowered_credit_does_not_repeat_what_was_raised(spender: Spender) -> None:
    await subscribe(spender.org, AlertThresholds(credit_percents=(50, 90)))
    await spender.grant(1000)
    await spender.spend(500)

    await spender.grant(-100, GrantKind.CORRECTION)
    assert [alert.details["percent"] for alert in await outbox(spender.org)] == [50]
    await spender.grant(-399, GrantKind.CORRECTION)

    assert [alert.details["percent"] for alert in await outbox(spender.org)] == [50, 90]


async def test_unsettled_holds_are_raised_once_a_day(spender: Spender) -> None:
    await subscribe(spender.org, AlertThresholds(unsettled_requests=2))
    await spender.grant(1000)

    for count in (0, 1, 1):
        hold = await spender.reserve(10)
        async with spender.org.database.transaction() as tx:
            await tx.execute(
                """
                INSERT INTO unsettled_holds (organization_id, admitted_day, reservation_id,
                                             held_pico, admitted_at, project_id, api_key_id,
                                             decide_at)
                VALUES ($1, $2, $3, 10, $4, $5, $6, now() + interval '1 hour')
                """,
                hold.organization_id,
                hold.admitted_day,
                hold.reservation_id,
                hold.admitted_at,
                hold.project_id,
                hold.api_key_id,
            )
        assert len(await outbox(spender.org)) == count


async def _match(org: OrganizationFixture, policy: UUID, at: datetime, outcome: str) -> None:
    async with org.database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO policy_decisions (
                organization_id, policy_id, day, request_id, direction, version, mode, outcome,
                threshold, windows, is_cached, project_id, api_key_id, evaluated_at)
            VALUES ($1, $2, current_date, $3, 'request', 1, 'monitoring', $5, 5000, 1, false,
                    $2, $2, $4)
            """,
            org.organization_id,
            policy,
            time_ordered_uuid(),
            at,
            outcome,
        )


async def test_matches_of_one_policy_in_one_hour_are_raised_once(org: OrganizationFixture) -> None:
    await subscribe(org, AlertThresholds(policy_matches_per_hour=3))
    one, other = time_ordered_uuid(), time_ordered_uuid()
    now = datetime.now(UTC)

    for policy, at, outcome in (
        (one, now - timedelta(hours=2), "match"),
        (one, now, "failed"),
        (one, now, "match"),
        (other, now, "match"),
        (one, now, "match"),
    ):
        await _match(org, policy, at, outcome)
    assert await outbox(org) == []
    for _ in range(3):
        await _match(org, one, now, "match")

    [alert] = await outbox(org)
    assert (alert.type, alert.details["policy_id"]) == (AlertType.POLICY_MATCHES, str(one))


async def test_matches_that_are_written_after_their_hour_are_raised_for_it(
    org: OrganizationFixture,
) -> None:
    await subscribe(org, AlertThresholds(policy_matches_per_hour=2))
    policy = time_ordered_uuid()
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)

    for at in (hour, hour - timedelta(seconds=1), hour - timedelta(hours=1, seconds=1)):
        await _match(org, policy, at, "match")
    assert await outbox(org) == []
    await _match(org, policy, hour - timedelta(seconds=2), "match")

    [alert] = await outbox(org)
    assert datetime.fromisoformat(alert.details["hour"]) == hour - timedelta(hours=1)


async def test_a_backend_that_stays_down_is_raised_once_for_all_workers(
    org: OrganizationFixture,
) -> None:
    await subscribe(org, AlertThresholds(backend_down=True))
    ready = {"one": False, "two": True}
    watches = [BackendWatch(org.database, ready, ready.__getitem__) for _ in range(2)]

    for _ in range(DOWN_LOOKS - 1):
        await watches[0].look()
    assert await outbox(org) == []
    for watch in watches:
        for _ in range(DOWN_LOOKS):
            await watch.look()

    [alert] = await outbox(org)
    assert rules.sentence(alert) == "Backend one answers no requests: no replica is available."


async def test_a_commit_that_comes_after_a_look_is_raised_by_the_next(spender: Spender) -> None:
    await subscribe(spender.org, AlertThresholds(credit_percents=(10, 50)))
    await spender.grant(1000)

    async with spender.org.database.transaction() as late:
        await late.execute("UPDATE accounts SET settled_pico = 500, ceiling_pico = 1000")
        assert await outbox(spender.org) == []

    assert sorted(alert.details["percent"] for alert in await outbox(spender.org)) == [10, 50]
    async with spender.org.database.transaction() as tx:
        await tx.execute("UPDATE accounts SET settled_pico = 0")


async def test_looks_at_the_same_time_raise_once(spender: Spender) -> None:
    await subscribe(spender.org, AT_SHARES)
    await spender.grant(10_000)
    await spender.set_cap(spender.place(CapScope.KEY, Period.DAY), 1000)
    await spender.spend(900)

    found = await asyncio.gather(*(outbox(spender.org) for _ in range(4)))

    assert shares(found[-1]) == [("api_key", "day", 50), ("api_key", "day", 80)]


async def test_what_stays_reached_is_not_raised_again_after_its_retention(
    spender: Spender,
) -> None:
    await subscribe(spender.org, AlertThresholds(credit_percents=(50,)))
    await spender.grant(1000)
    await spender.spend(600)
    assert len(await outbox(spender.org)) == 1
    async with spender.org.database.transaction() as tx:
        assert await purge(tx, days=0, rows_max=10) == 1

    assert await outbox(spender.org) == []


async def test_no_table_of_money_has_a_trigger_of_alerts(org: OrganizationFixture) -> None:
    rows = await org.database.fetch_all(
        """
        SELECT tgrelid::regclass::text AS name
          FROM pg_trigger t
          JOIN pg_proc f ON f.oid = t.tgfoid
         WHERE f.proname LIKE 'alert%'
        """
    )

    assert all(row["name"].startswith("policy_decisions") for row in rows)
