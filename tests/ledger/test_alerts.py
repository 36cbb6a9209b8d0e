"""Alerts ring once when their share is spent, and each is told once."""

import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from tests.ledger.direct_ledger import DirectLedger
from tests.ledger.invariants import assert_conserved
from tests.ledger.past import days_ago, enter_past
from tests.support.organization_fixture import OrganizationFixture
from tests.support.spending import Spender, spender_of
from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.ledger import alerts
from tollhouse.ledger.types import CapScope, GrantKind, Period
from tollhouse.observability import registry

SCOPES = ("credit", *CapScope)


@pytest.fixture
async def spender(org: OrganizationFixture) -> AsyncIterator[Spender]:
    async with spender_of(org) as opened:
        yield opened


async def told(spender: Spender, caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Scope and window of the alerts that the job tells of now."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "tollhouse.ledger"):
        await alerts.notice(spender.org.database)
    lines = [vars(record) for record in caplog.records if record.msg == "spending_alert"]
    assert {line["organization_id"] for line in lines} <= {str(spender.org.organization_id)}
    return [(line["scope"], line["window"]) for line in lines]


def counted(scope: str) -> int:
    name = f'tollhouse_spending_alerts_total{{scope="{scope}"}} '
    lines = registry.exposition(None).decode().splitlines()
    return sum(int(line.rpartition(" ")[2][:-2]) for line in lines if line.startswith(name))


async def test_each_share_rings_once_and_is_told_once(
    spender: Spender, caplog: pytest.LogCaptureFixture
) -> None:
    await spender.grant(1000)
    for scope in CapScope:
        for period in Period:
            await spender.set_cap(spender.place(scope, period), 1000)
    counts_before = {scope: counted(scope) for scope in SCOPES}
    today = datetime.now(UTC).date()
    starts = {period: str(period.window_start(today)) for period in Period}
    starts[Period.LIFETIME] = "lifetime"

    await spender.spend(799)
    assert await told(spender, caplog) == []
    await spender.spend(1)
    rung = await told(spender, caplog)
    await spender.spend(100)

    assert sorted(rung) == sorted(
        [("credit", "lifetime")]
        + [(scope, window) for scope in CapScope for window in starts.values()]
    )
    assert await told(spender, caplog) == []
    assert {scope: counted(scope) - counts_before[scope] for scope in SCOPES} == {
        "credit": 1,
        **dict.fromkeys(CapScope, 4),
    }
    assert (await spender.credit()).is_alerting
    assert all(use.is_alerting for use in await spender.caps())


async def test_past_usage_does_not_end_an_alert_at_its_very_share(
    spender: Spender, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The credit of the usage comes before its charge: 900 of 1,125 is just the share."""
    await spender.grant(1_000)
    await spender.spend(900)
    assert await told(spender, caplog) == [("credit", "lifetime")]
    instance_id = InstanceId(time_ordered_uuid())
    ledger = DirectLedger(
        spender.org, database_url, spender.project_id, spender.api_key_id, instance_id
    )

    await enter_past(ledger, days_ago(1), 125)

    assert await told(spender, caplog) == []
    assert (await spender.credit()).is_alerting


async def test_what_is_held_does_not_ring(
    spender: Spender, caplog: pytest.LogCaptureFixture
) -> None:
    await spender.grant(100)
    await spender.set_cap(spender.place(CapScope.KEY, Period.LIFETIME), 100, alert_percent=1)

    await spender.reserve(100)

    assert await told(spender, caplog) == []
    assert not (await spender.credit()).is_alerting


@pytest.mark.parametrize("period", [Period.DAY, Period.WEEK])
async def test_a_short_window_says_its_period_and_rings_at_once_when_set_too_low(
    spender: Spender, caplog: pytest.LogCaptureFixture, period: Period
) -> None:
    await spender.grant(10_000)
    await spender.spend(100)
    place = spender.place(CapScope.KEY, period)

    await spender.set_cap(place, 50)
    rung = await told(spender, caplog)
    (line,) = [vars(record) for record in caplog.records if record.msg == "spending_alert"]
    await spender.clear_cap(place)
    await spender.set_cap(place, 1_000)

    assert rung == [("api_key", str(period.window_start(datetime.now(UTC).date())))]
    assert line["period"] == period
    assert await told(spender, caplog) == []


async def test_a_raised_cap_is_quiet_until_its_own_share_is_spent(
    spender: Spender, caplog: pytest.LogCaptureFixture
) -> None:
    await spender.grant(10_000)
    place = spender.place(CapScope.PROJECT, Period.LIFETIME)
    await spender.set_cap(place, 100, alert_percent=50)
    await spender.spend(50)
    assert len(await told(spender, caplog)) == 1

    assert not (await spender.set_cap(place, 1000, alert_percent=50)).is_alerting
    await spender.spend(449)
    assert await told(spender, caplog) == []
    await spender.spend(1)

    assert await told(spender, caplog) == [("project", "lifetime")]


async def test_a_cap_set_below_what_is_spent_rings_at_once(
    spender: Spender, caplog: pytest.LogCaptureFixture
) -> None:
    await spender.grant(10_000)
    await spender.spend(100)

    use = await spender.set_cap(spender.place(CapScope.KEY, Period.LIFETIME), 50)

    assert use.is_alerting
    assert await told(spender, caplog) == [("api_key", "lifetime")]


async def test_more_credit_ends_the_alert_and_a_correction_brings_it_back(
    spender: Spender, caplog: pytest.LogCaptureFixture
) -> None:
    await spender.grant(100)
    await spender.spend(80)
    assert await told(spender, caplog) == [("credit", "lifetime")]

    await spender.grant(1)
    assert not (await spender.credit()).is_alerting
    await spender.grant(-1, GrantKind.CORRECTION)

    assert await told(spender, caplog) == [("credit", "lifetime")]
    assert (await spender.credit()).is_alerting


async def test_more_alerts_than_fit_a_batch_are_all_told(
    spender: Spender, caplog: pytest.LogCaptureFixture
) -> None:
    async with spender.org.database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO spending_alerts (organization_id, scope, scope_id, window_start)
            SELECT $1, 'project', gen_random_uuid(), '-infinity' FROM generate_series(1, $2)
            """,
            spender.org.organization_id,
            2 * alerts.BATCH_MAX + 1,
        )

    assert len(await told(spender, caplog)) == 2 * alerts.BATCH_MAX + 1
    assert await told(spender, caplog) == []


async def test_the_share_is_exact_for_the_largest_caps(spender: Spender) -> None:
    """The database's own division would round the share of such a cap."""
    limit = 123_456_789_012_345_678_901_234
    use = await spender.set_cap(
        spender.place(CapScope.KEY, Period.LIFETIME), limit, alert_percent=83
    )
    await spender.grant(1)
    await spender.spend(1)

    async with spender.org.database.transaction() as tx:
        stored = await tx.fetch_value(
            "SELECT alert_pico FROM spending_counters WHERE organization_id = $1 AND scope_id = $2"
            " AND alert_pico IS NOT NULL",
            spender.org.organization_id,
            spender.api_key_id,
        )
    assert stored == use.cap.alert_pico_usd == 102_469_134_880_246_913_488_025
    await assert_conserved(spender.org.database)
