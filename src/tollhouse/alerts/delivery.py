"""The jobs that raise alerts, deliver them, and remove what is old."""

import asyncio
import logging
import random
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

import msgspec

from tollhouse.alerts import outbox, rules
from tollhouse.alerts.mail import MailServer
from tollhouse.alerts.rules import Networks
from tollhouse.alerts.types import ClaimedDelivery, DeliveryAttempt, DeliveryState
from tollhouse.alerts.webhook import WebhookClient
from tollhouse.base.clock import Clock, unix_seconds
from tollhouse.base.ids import OrganizationId
from tollhouse.observability import alert_metrics
from tollhouse.storage.batches import in_batches
from tollhouse.storage.database import Database
from tollhouse.storage.leases import PURGE_EVERY_SECONDS, LeasedJob
from tollhouse.storage.sealing import DataKeyGone, Sealer

logger = logging.getLogger("tollhouse.alerts")

LOOK_EVERY: Final = timedelta(seconds=15)
"""A worker that dies while it holds the lease delays a look by three times as long."""
ORGANIZATIONS_MAX: Final = 200
"""Organizations whose amounts one statement looks at."""
DELIVER_EVERY: Final = timedelta(seconds=5)
DELIVERIES_MAX: Final = 64
"""Attempts at the same time."""
PER_ORGANIZATION_MAX: Final = 8
"""Of these, so that a slow destination does not hold up those of other organizations."""
WITHHELD_MAX: Final = 1_000
"""Alerts that one statement withholds."""
CLAIM_FACTOR: Final = 3
"""A claim lasts for this many timeouts: longer than an attempt can take."""
DOWN_LOOKS: Final = 3
LOOK_AT_BACKENDS_EVERY_SECONDS: Final = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryConfig:
    """The operator's bounds, and the mail server, if there is one."""

    seconds: float
    attempts_max: int
    attempts_per_hour: int
    retry_seconds: float
    days: int
    networks: Networks
    mail_server: MailServer | None


class AlertDeliverer:
    """Delivers due alerts. Of several workers, only one gets each alert at a time."""

    def __init__(
        self, database: Database, sealer: Sealer, clock: Clock, config: DeliveryConfig
    ) -> None:
        self._database = database
        self._sealer = sealer
        self._clock = clock
        self._config = config
        alert_metrics.alerts_end_as(DeliveryState)
        self._webhooks = WebhookClient(
            seconds=config.seconds, networks=config.networks, tls=ssl.create_default_context()
        )

    async def look(self) -> None:
        """Put alerts about caps, credit and unsettled requests into the outbox."""
        last: OrganizationId | None = None
        while True:
            async with self._database.transaction() as tx:
                last = await outbox.look(tx, last, limit=ORGANIZATIONS_MAX)
            if last is None:
                return

    async def run(self) -> None:
        """Attempt all alerts that are due."""
        while claimed := await self._claim():
            ended = await asyncio.gather(*map(self._deliver, claimed), return_exceptions=True)
            for failure in filter(None, ended):
                raise failure

    def jobs(self) -> tuple[LeasedJob, ...]:
        """Return the jobs that raise and deliver alerts, and that delete old deliveries."""
        purge = partial(outbox.purge, days=self._config.days)

        async def remove_old() -> None:
            await in_batches(self._database, lambda tx, rows: purge(tx, rows_max=rows))

        return (
            LeasedJob(name="alert-look", every_seconds=LOOK_EVERY.total_seconds(), run=self.look),
            LeasedJob(
                name="alert-delivery",
                every_seconds=DELIVER_EVERY.total_seconds(),
                run=self.run,
            ),
            LeasedJob(
                name="alert-retention",
                every_seconds=PURGE_EVERY_SECONDS,
                run=remove_old,
            ),
        )

    async def _claim(self) -> list[ClaimedDelivery]:
        per_hour_max = self._config.attempts_per_hour
        async with self._database.transaction() as tx:
            locked = await outbox.lock_hours(tx)
            claimed = await outbox.claim(
                tx,
                locked,
                deliveries_max=DELIVERIES_MAX,
                per_organization_max=PER_ORGANIZATION_MAX,
                per_hour_max=per_hour_max,
                seconds=CLAIM_FACTOR * self._config.seconds,
            )
            withheld = await outbox.withhold(
                tx,
                locked,
                per_hour_max=per_hour_max,
                rows_max=WITHHELD_MAX,
                reason=rules.reason_withheld(per_hour_max),
            )
        for organization_id, alerts in withheld.items():
            alert_metrics.alerts_withheld(alerts)
            logger.warning(
                "alerts_withheld",
                extra={"organization_id": str(organization_id), "count": alerts},
            )
        return claimed

    async def _deliver(self, claimed: ClaimedDelivery) -> None:
        delivery = claimed.delivery
        attempt = await self._attempt(claimed)
        if attempt.is_delivered:
            state = DeliveryState.DELIVERED
        elif attempt.is_final or delivery.attempts >= self._config.attempts_max:
            state = DeliveryState.FAILED
        else:
            state = DeliveryState.PENDING
        delay = rules.retry_delay(
            delivery.attempts,
            self._config.retry_seconds,
            random.random(),  # noqa: S311 - no secret
        )
        async with self._database.transaction() as tx:
            await outbox.finish(
                tx,
                delivery.organization_id,
                delivery.id,
                state=state,
                attempt=attempt,
                retry_after=timedelta(seconds=delay),
            )
        alert_metrics.alert_attempted("email" if claimed.url is None else "webhook", state)
        if state is DeliveryState.FAILED:
            logger.warning(
                "alert_not_delivered",
                extra={
                    "organization_id": str(delivery.organization_id),
                    "delivery_id": str(delivery.id),
                    "reason": attempt.error,
                },
            )

    async def _attempt(self, claimed: ClaimedDelivery) -> DeliveryAttempt:
        delivery = claimed.delivery
        if claimed.url is None:
            if self._config.mail_server is None:
                return DeliveryAttempt(error="this deployment sends no e-mail", is_final=True)
            return await self._config.mail_server.send(delivery, claimed.emails)
        try:
            secrets = [
                await self._sealer.open_lasting(sealed, bound_to=delivery.subscription_id.bytes)
                for sealed in claimed.sealed_secrets
            ]
        except DataKeyGone:
            secrets = []
        if not secrets:
            error = "the signing secret is not known here: rotate it"
            return DeliveryAttempt(error=error, is_final=True)
        body = msgspec.json.encode(rules.message(delivery))
        timestamp = unix_seconds(self._clock.now())
        headers = {
            "webhook-id": str(delivery.id),
            "webhook-timestamp": str(timestamp),
            "webhook-signature": rules.signatures(
                [secret.decode() for secret in secrets], str(delivery.id), timestamp, body
            ),
        }
        return await self._webhooks.post(delivery.organization_id, claimed.url, headers, body)


class BackendWatch:
    """Raises an alert when a backend has no available replica at several looks in a row."""

    def __init__(
        self, database: Database, backends: Iterable[str], is_ready: Callable[[str], bool]
    ) -> None:
        self._database = database
        self._is_ready = is_ready
        self._looks_down = dict.fromkeys(backends, 0)

    async def look(self) -> None:
        """Look at all backends. Workers that see the same raise one alert each hour together."""
        for backend, looks in self._looks_down.items():
            self._looks_down[backend] = 0 if self._is_ready(backend) else looks + 1
        down = [backend for backend, looks in self._looks_down.items() if looks >= DOWN_LOOKS]
        if not down:
            return
        async with self._database.transaction() as tx:
            for backend in down:
                await outbox.raise_backend_down(tx, backend)
