"""The attempts of an organization's hour bound all causes, repeated attempts and workers."""

import asyncio
from collections import Counter

import pytest

from tests.alerts.conftest import NewDeliverer
from tests.alerts.receiver import running_receiver
from tests.alerts.subscribing import outbox, send_tests, subscribe
from tests.identity.waiting import until_a_lock_is_awaited
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.alerts import rules, service
from tollhouse.alerts.outbox import claim, lock_hours
from tollhouse.alerts.types import AlertThresholds, AlertType, DeliveryState
from tollhouse.base.money import PicoUsd
from tollhouse.observability import registry
from tollhouse.storage.sealing import Sealer

ATTEMPTS = 10
CAP = AlertThresholds(cap_percents=(80,))
NO_CREDIT = AlertThresholds(credit_below_pico_usd=PicoUsd(1))
"""Reached at once: nothing was granted."""
WITHHELD = "tollhouse_alerts_withheld_total "


def withheld_so_far() -> float:
    lines = registry.exposition(None).decode().splitlines()
    return next((float(line.split()[1]) for line in lines if line.startswith(WITHHELD)), 0.0)


async def begin_an_hour(org: OrganizationFixture) -> None:
    async with org.database.transaction() as tx:
        await tx.execute("UPDATE alert_hours SET hour = hour - interval '1 hour'")


async def test_what_exceeds_the_hour_is_withheld_and_says_why(
    org: OrganizationFixture,
    other_org: OrganizationFixture,
    sealer: Sealer,
    new_deliverer: NewDeliverer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = withheld_so_far()
    async with running_receiver() as receiver:
        for _ in range(4):
            await subscribe(org, NO_CREDIT, url=receiver.url, sealer=sealer)
        subscription, _ = await subscribe(org, CAP, url=receiver.url, sealer=sealer)
        await send_tests(org, subscription, 30)
        another, _ = await subscribe(other_org, CAP, url=receiver.url, sealer=sealer)
        await send_tests(other_org, another)

        workers = [new_deliverer(attempts_per_hour=ATTEMPTS) for _ in range(4)]
        await asyncio.gather(*(worker.run() for worker in workers))

    alerts = await outbox(org)
    states = Counter(alert.state for alert in alerts)
    withheld = [alert for alert in alerts if alert.state is DeliveryState.WITHHELD]
    assert len(receiver.received) == ATTEMPTS + 1
    assert states == {DeliveryState.DELIVERED: ATTEMPTS, DeliveryState.WITHHELD: 34 - ATTEMPTS}
    assert {alert.last_error for alert in withheld} == {rules.reason_withheld(ATTEMPTS)}
    assert {alert.attempts for alert in withheld} == {0}
    assert {alert.type for alert in alerts} == {AlertType.CREDIT, AlertType.TEST}
    assert [alert.state for alert in await outbox(other_org)] == [DeliveryState.DELIVERED]
    assert withheld_so_far() - before == len(withheld)
    told = [record for record in caplog.records if record.msg == "alerts_withheld"]
    assert {vars(record)["organization_id"] for record in told} == {str(org.organization_id)}
    assert sum(vars(record)["count"] for record in told) == len(withheld)


async def test_a_worker_waits_until_another_has_counted_its_attempts(
    org: OrganizationFixture, sealer: Sealer, new_deliverer: NewDeliverer, database_url: str
) -> None:
    async with running_receiver() as receiver:
        subscription, _ = await subscribe(org, CAP, url=receiver.url, sealer=sealer)
        await send_tests(org, subscription, 2)
        async with org.database.transaction() as tx:
            await lock_hours(tx)

        async with org.database.transaction() as tx:
            claimed = await claim(
                tx,
                await lock_hours(tx),
                deliveries_max=1,
                per_organization_max=1,
                per_hour_max=1,
                seconds=60,
            )
            other = asyncio.create_task(new_deliverer(attempts_per_hour=1).run())
            await until_a_lock_is_awaited(database_url)
        await other

    states = {alert.id: alert.state for alert in await outbox(org)}
    assert receiver.received == []
    assert states.pop(claimed[0].delivery.id) is DeliveryState.PENDING
    assert list(states.values()) == [DeliveryState.WITHHELD]


async def test_another_subscription_gives_no_more_attempts_and_a_retry_gets_those_of_its_hour(
    org: OrganizationFixture, sealer: Sealer, new_deliverer: NewDeliverer
) -> None:
    deliverer = new_deliverer(attempts_per_hour=1)
    async with running_receiver() as receiver:
        first, _ = await subscribe(org, CAP, url=receiver.url, sealer=sealer)
        await send_tests(org, first)
        await deliverer.run()
        async with org.database.mutation(org.authority()) as tx:
            await service.delete(tx, first.id)
        second, _ = await subscribe(org, CAP, url=receiver.url, sealer=sealer)
        await send_tests(org, second)
        await deliverer.run()
        [withheld] = await outbox(org)

        await begin_an_hour(org)
        await deliverer.run()
        [unchanged] = await outbox(org)
        async with org.database.mutation(org.authority()) as tx:
            await service.retry(tx, second.id)
        await deliverer.run()

    assert withheld.state is unchanged.state is DeliveryState.WITHHELD
    assert [alert.state for alert in await outbox(org)] == [DeliveryState.DELIVERED]
    assert len(receiver.received) == 2


async def test_repeated_attempts_use_half_of_the_hour_and_wait_for_the_next(
    org: OrganizationFixture, sealer: Sealer, new_deliverer: NewDeliverer
) -> None:
    deliverer = new_deliverer(attempts_per_hour=ATTEMPTS)
    async with running_receiver(lambda _: b"HTTP/1.1 500 Oops\r\n\r\n") as broken:
        failing, _ = await subscribe(org, CAP, url=broken.url, sealer=sealer)
        await send_tests(org, failing, 2)
        await deliverer.run()
        repeated = len(broken.received)
        async with running_receiver() as receiver:
            working, _ = await subscribe(org, CAP, url=receiver.url, sealer=sealer)
            await send_tests(org, working, ATTEMPTS)
            await deliverer.run()
        await begin_an_hour(org)
        await deliverer.run()

    states = Counter(alert.state for alert in await outbox(org))
    assert repeated == len(receiver.received) == ATTEMPTS // 2
    assert len(broken.received) == ATTEMPTS
    assert states == {
        DeliveryState.PENDING: 2,
        DeliveryState.DELIVERED: ATTEMPTS // 2,
        DeliveryState.WITHHELD: ATTEMPTS // 2,
    }
