"""Alert subscriptions: read, create, edit, delete, rotate, test, retry; and their deliveries."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from tollhouse.alerts import rules, service
from tollhouse.alerts.errors import AlertSubscriptionNotFound
from tollhouse.alerts.rules import Networks
from tollhouse.alerts.types import AlertSubscription
from tollhouse.api import parameters
from tollhouse.api.admin_database import AdminDatabase, Creation
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.wire import alerts as alerts_wire
from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import (
    AlertDeliveryId,
    AlertSubscriptionId,
    parse_uuid,
    time_ordered_uuid,
)
from tollhouse.contract import alerts as contract
from tollhouse.contract.listing import ListQuery, NoQuery
from tollhouse.keys.types import Admin
from tollhouse.storage.database import Mutation


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertDestinations:
    """Where the operator delivers alerts to, and how many subscriptions an organization has."""

    networks: Networks
    email_domains: tuple[str, ...]
    sends_email: bool
    subscriptions_max: int

    def check(self, sent: contract.SetAlertSubscription) -> None:
        """Raise if the subscription is incomplete, or if its destination is refused."""
        contract.check(sent)
        if isinstance(sent.url, str):
            rules.check_url(sent.url, self.networks)
        rules.check_emails(sent.emails, self.email_domains, sends_email=self.sends_email)


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertHandlers:
    """Handlers of the operations on alerts."""

    database: AdminDatabase
    destinations: AlertDestinations

    async def page(self, call: OperationCall[Admin, None, ListQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/alert_subscriptions"""
        after = parameters.cursor(call.query.after)
        async with self.database.transaction() as tx:
            found = await service.page(
                tx,
                call.organization_id,
                after=None if after is None else AlertSubscriptionId(after),
                limit=call.query.limit + 1,
            )
        listed = wire.page(
            contract.AlertSubscriptionList, found, call.query.limit, alerts_wire.subscription
        )
        return OperationAnswer(body=listed)

    async def create(
        self, call: OperationCall[Admin, contract.SetAlertSubscription, NoQuery]
    ) -> OperationAnswer:
        """POST /manage/v1/organization/alert_subscriptions"""
        self.destinations.check(call.body)
        subscription_id = AlertSubscriptionId(time_ordered_uuid())
        secret, sealed = None, None
        if not call.body.emails:
            secret, sealed = await service.mint_secret(self.database.sealer, subscription_id)

        async def make(tx: Mutation) -> AlertSubscription:
            await service.require_room(tx, self.destinations.subscriptions_max)
            subscription = alerts_wire.from_wire(tx, subscription_id, call.body)
            await service.create(tx, subscription, sealed=sealed)
            return subscription

        return await self._made(
            call,
            Creation(resource_id=subscription_id, create=make, find=_find, secret=secret),
        )

    async def rotate_secret(
        self, call: OperationCall[Admin, contract.RotateAlertSecret, NoQuery]
    ) -> OperationAnswer:
        """POST /manage/v1/organization/alert_subscriptions/{alert_subscription_id}/rotate_secret"""
        subscription_id = subscription_of(call)
        secret, sealed = await service.mint_secret(self.database.sealer, subscription_id)
        overlap = timedelta(seconds=call.body.overlap_seconds)

        async def make(tx: Mutation) -> AlertSubscription:
            return await service.rotate_secret(tx, subscription_id, sealed=sealed, overlap=overlap)

        return await self._made(
            call,
            Creation(resource_id=subscription_id, create=make, find=_find, secret=secret),
        )

    async def _made(
        self,
        call: OperationCall[Admin, contract.SetAlertSubscription, NoQuery]
        | OperationCall[Admin, contract.RotateAlertSecret, NoQuery],
        creation: Creation[AlertSubscription],
    ) -> OperationAnswer:
        created = await self.database.create_once(call, creation)
        shown = alerts_wire.subscription(created.resource, secret=created.secret)
        return OperationAnswer(body=shown, headers=created.headers)

    async def retrieve(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/alert_subscriptions/{alert_subscription_id}"""
        async with self.database.transaction() as tx:
            found = await service.retrieve(tx, call.organization_id, subscription_of(call))
        return OperationAnswer(body=alerts_wire.subscription(found))

    async def edit(
        self, call: OperationCall[Admin, contract.SetAlertSubscription, NoQuery]
    ) -> OperationAnswer:
        """PUT /manage/v1/organization/alert_subscriptions/{alert_subscription_id}"""
        self.destinations.check(call.body)
        async with self.database.mutation_by(call) as tx:
            sent = alerts_wire.from_wire(tx, subscription_of(call), call.body)
            edited = await service.edit(tx, sent)
        return OperationAnswer(body=alerts_wire.subscription(edited))

    async def delete(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """DELETE /manage/v1/organization/alert_subscriptions/{alert_subscription_id}"""
        subscription_id = subscription_of(call)
        async with self.database.mutation_by(call) as tx:
            await service.delete(tx, subscription_id)
        deleted = contract.AlertSubscriptionDeleted(id=str(subscription_id), deleted=True)
        return OperationAnswer(body=deleted)

    async def test(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """POST /manage/v1/organization/alert_subscriptions/{alert_subscription_id}/test"""
        async with self.database.mutation_by(call) as tx:
            sent = await service.send_test(tx, subscription_of(call))
        return OperationAnswer(body=alerts_wire.delivery(sent))

    async def retry(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """POST /manage/v1/organization/alert_subscriptions/{alert_subscription_id}/retry"""
        async with self.database.mutation_by(call) as tx:
            found = await service.retry(tx, subscription_of(call))
        return OperationAnswer(body=alerts_wire.subscription(found))

    async def page_of_deliveries(
        self, call: OperationCall[Admin, None, ListQuery]
    ) -> OperationAnswer:
        """GET /manage/v1/organization/alert_deliveries"""
        after = parameters.cursor(call.query.after)
        async with self.database.transaction() as tx:
            found = await service.deliveries(
                tx,
                call.organization_id,
                after=None if after is None else AlertDeliveryId(after),
                limit=call.query.limit + 1,
            )
        listed = wire.page(
            contract.AlertDeliveryList, found, call.query.limit, alerts_wire.delivery
        )
        return OperationAnswer(body=listed)


async def _find(tx: Mutation, made_id: UUID) -> AlertSubscription:
    return await service.retrieve(tx, tx.organization_id, AlertSubscriptionId(made_id))


def subscription_of(call: OperationCall[Any, Any, Any]) -> AlertSubscriptionId:
    """Return the subscription ID in the path. Raises `AlertSubscriptionNotFound`."""
    parsed = parse_uuid(call.path["alert_subscription_id"])
    if parsed is None:
        raise AlertSubscriptionNotFound
    return AlertSubscriptionId(parsed)
