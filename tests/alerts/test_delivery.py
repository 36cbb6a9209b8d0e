"""Webhooks are signed, tried again, bounded, and each alert is delivered by one worker."""

import asyncio
from datetime import timedelta

import pytest

from tests.alerts.conftest import NewDeliverer
from tests.alerts.receiver import Received, accept, running_receiver
from tests.alerts.subscribing import outbox, send_tests, subscribe
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.alerts import rules, service
from tollhouse.alerts.outbox import claim, lock_hours
from tollhouse.alerts.types import (
    AlertDelivery,
    AlertThresholds,
    DeliveryState,
)
from tollhouse.storage.sealing import Sealer

THRESHOLDS = AlertThresholds(cap_percents=(80,))
ERROR = b"HTTP/1.1 500 Oops\r\n\r\n"


async def one(org: OrganizationFixture) -> AlertDelivery:
    [found] = await outbox(org)
    return found


async def test_an_accepted_alert_is_signed_and_delivered_once(
    org: OrganizationFixture, sealer: Sealer, new_deliverer: NewDeliverer
) -> None:
    async with running_receiver() as receiver:
        subscription, secret = await subscribe(org, THRESHOLDS, url=receiver.url, sealer=sealer)
        await send_tests(org, subscription)

        await new_deliverer().run()
        await new_deliverer().run()

    [received] = receiver.received
    delivery = await one(org)
    assert (delivery.state, delivery.attempts) == (DeliveryState.DELIVERED, 1)
    assert (delivery.last_status, delivery.last_error) == (204, None)
    assert received.message["type"] == "test"
    assert received.message["text"] == "This is a test alert. Nothing has happened."
    assert received.message["data"]["id"] == received.id == str(delivery.id)
    assert secret is not None
    assert received.headers["webhook-signature"] == rules.signatures(
        [secret], received.id, int(received.headers["webhook-timestamp"]), received.body
    )


async def test_a_failed_attempt_is_repeated_with_the_same_id_and_body(
    org: OrganizationFixture, sealer: Sealer, new_deliverer: NewDeliverer
) -> None:
    answers = iter([ERROR, b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 302 Found\r\n\r\n", None])

    async with running_receiver(lambda got: next(answers, accept(got))) as receiver:
        subscription, _ = await subscribe(org, THRESHOLDS, url=receiver.url, sealer=sealer)
        await send_tests(org, subscription)
        while (await one(org)).state is DeliveryState.PENDING:
            await new_deliverer(seconds=1.0).run()

    assert (await one(org)).attempts == len(receiver.received) == 5
    assert len({(got.id, got.body) for got in receiver.received}) == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ERROR, "answered 500"),
        (b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\n\r\n", "answered 302"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 100_000 + b"\r\n\r\n", "the answer is not HTTP"),
        (b"HTTP/1.1 nothing\r\n\r\n", "the answer is not HTTP"),
        (b"", "the answer is not HTTP"),
        (None, "no answer within 0.5 s"),
    ],
)
async def test_a_delivery_fails_after_its_last_attempt_and_says_why(
    org: OrganizationFixture,
    sealer: Sealer,
    new_deliverer: NewDeliverer,
    answer: bytes | None,
    error: str,
) -> None:
    async with running_receiver(lambda _: answer) as receiver:
        subscription, _ = await subscribe(org, THRESHOLDS, url=receiver.url, sealer=sealer)
        await send_tests(org, subscription)

        deliverer = new_deliverer(seconds=60.0 if answer is not None else 0.5, attempts_max=2)
        while (await one(org)).state is DeliveryState.PENDING:
            await deliverer.run()

    delivery = await one(org)
    assert (delivery.state, delivery.attempts) == (DeliveryState.FAILED, 2)
    assert delivery.last_error == error


async def test_a_destination_that_is_gone_is_not_tried_again(
    org: OrganizationFixture, sealer: Sealer, new_deliverer: NewDeliverer
) -> None:
    async with running_receiver(lambda _: b"HTTP/1.1 410 Gone\r\n\r\n") as receiver:
        subscription, _ = await subscribe(org, THRESHOLDS, url=receiver.url, sealer=sealer)
        await send_tests(org, subscription)
        await new_deliverer().run()

    assert (await one(org)).state is DeliveryState.FAILED


async def test_an_informational_answer_is_skipped(
    org: OrganizationFixture, sealer: Sealer, new_deliverer: NewDeliverer
) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\nbody"
    async with running_receiver(lambda _: hints) as receiver:
        subscription, _ = await subscribe(org, THRESHOLDS, url=receiver.url, sealer=sealer)
        await send_tests(org, subscription)
        await new_deliverer().run()

    assert (await one(org)).last_status == 202


async def test_both_secrets_sign_until_the_overlap_ends(
    org: OrganizationFixture, sealer: Sealer, new_deliverer: NewDeliverer
) -> None:
    async with running_receiver() as receiver:
        subscription, first = await subscribe(org, THRESHOLDS, url=receiver.url, sealer=sealer)
        secrets = [first]
        for overlap in (timedelta(hours=1), timedelta(0)):
            secret, sealed = await service.mint_secret(sealer, subscription.id)
            secrets.insert(0, secret)
            async with org.database.mutation(org.authority()) as tx:
                await service.rotate_secret(tx, subscription.id, sealed=sealed, overlap=overlap)
            async with org.database.mutation(org.authority()) as tx:
                sent = await service.send_test(tx, subscription.id)
                await tx.execute(
                    "UPDATE alert_deliveries SET dedup_key = $2 WHERE id = $1", sent.id, secret
                )
            await new_deliverer().run()

    def expected(got: Received, valid: list[str | None]) -> str:
        known = [secret for secret in valid if secret is not None]
        stamp = int(got.headers["webhook-timestamp"])
        return rules.signatures(known, got.id, stamp, got.body)

    during, after = receiver.received
    assert during.headers["webhook-signature"] == expected(during, secrets[1:])
    assert after.headers["webhook-signature"] == expected(after, secrets[:1])


async def test_a_secret_of_another_deployment_is_reported_and_not_replaced(
    org: OrganizationFixture, new_deliverer: NewDeliverer
) -> None:
    async with running_receiver() as receiver:
        subscription, _ = await subscribe(org, THRESHOLDS, url=receiver.url)
        await send_tests(org, subscription)
        await new_deliverer().run()

    assert (await one(org)).last_error == "the signing secret is not known here: rotate it"
    assert receiver.received == []


async def test_workers_that_deliver_at_the_same_time_share_the_work(
    org: OrganizationFixture, sealer: Sealer, new_deliverer: NewDeliverer
) -> None:
    async with running_receiver() as receiver:
        subscription, _ = await subscribe(org, THRESHOLDS, url=receiver.url, sealer=sealer)
        await send_tests(org, subscription, 50)

        await asyncio.gather(*(new_deliverer().run() for _ in range(4)))

    assert len(receiver.received) == len({got.id for got in receiver.received}) == 50
    assert {delivery.state for delivery in await outbox(org)} == {DeliveryState.DELIVERED}


async def test_a_slow_destination_gets_a_share_of_the_attempts(
    org: OrganizationFixture, other_org: OrganizationFixture, sealer: Sealer
) -> None:
    for each in (org, other_org):
        subscription, _ = await subscribe(each, THRESHOLDS, sealer=sealer)
        await send_tests(each, subscription, 20)

    async with org.database.transaction() as tx:
        claimed = await claim(
            tx,
            await lock_hours(tx),
            deliveries_max=64,
            per_organization_max=8,
            per_hour_max=100,
            seconds=60,
        )

    counts = [each.delivery.organization_id for each in claimed]
    assert [counts.count(each.organization_id) for each in (org, other_org)] == [8, 8]


async def test_old_deliveries_are_removed(
    org: OrganizationFixture, sealer: Sealer, new_deliverer: NewDeliverer
) -> None:
    subscription, _ = await subscribe(org, THRESHOLDS, sealer=sealer)
    await send_tests(org, subscription, 2)
    old, _ = await outbox(org)
    async with org.database.transaction() as tx:
        await tx.execute(
            "UPDATE alert_deliveries SET raised_at = now() - interval '31 days' WHERE id = $1",
            old.id,
        )

    [retention] = [job for job in new_deliverer().jobs() if job.name == "alert-retention"]
    await retention.run()

    assert old.id != (await one(org)).id
