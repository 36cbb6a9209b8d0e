"""Subscriptions as the operator makes them, and the outbox as it is stored."""

from tests.support.organization_fixture import OrganizationFixture
from tollhouse.alerts import service
from tollhouse.alerts.outbox import look
from tollhouse.alerts.types import AlertDelivery, AlertSubscription, AlertThresholds
from tollhouse.base.ids import AlertSubscriptionId, time_ordered_uuid
from tollhouse.storage.sealing import Sealer


async def subscribe(
    org: OrganizationFixture,
    thresholds: AlertThresholds,
    *,
    url: str | None = "https://receiver.example/alerts",
    emails: tuple[str, ...] = (),
    sealer: Sealer | None = None,
) -> tuple[AlertSubscription, str | None]:
    """Create a subscription and look; return it and its secret, if there is a sealer for one."""
    subscription_id = AlertSubscriptionId(time_ordered_uuid())
    secret, sealed = None, None
    if sealer is not None:
        secret, sealed = await service.mint_secret(sealer, subscription_id)
    async with org.database.mutation(org.authority()) as tx:
        subscription = AlertSubscription(
            organization_id=org.organization_id,
            id=subscription_id,
            name="the team",
            url=url,
            emails=emails,
            thresholds=thresholds,
            created_at=tx.now,
        )
        await service.create(tx, subscription, sealed=sealed)
    await look_now(org)
    return subscription, secret


async def look_now(org: OrganizationFixture) -> None:
    """Raise what all organizations have reached."""
    async with org.database.transaction() as tx:
        await look(tx, None, limit=10_000)


async def send_tests(
    org: OrganizationFixture, subscription: AlertSubscription, count: int = 1
) -> None:
    """Put test alerts into the outbox, of which the product itself allows one each minute."""
    for number in range(count):
        async with org.database.mutation(org.authority()) as tx:
            sent = await service.send_test(tx, subscription.id)
            await tx.execute(
                "UPDATE alert_deliveries SET dedup_key = $2 WHERE id = $1", sent.id, str(number)
            )


async def outbox(org: OrganizationFixture) -> list[AlertDelivery]:
    """All deliveries of the organization after a look, oldest first."""
    await look_now(org)
    async with org.database.transaction() as tx:
        found = await service.deliveries(tx, org.organization_id, after=None, limit=10_000)
    return found[::-1]
