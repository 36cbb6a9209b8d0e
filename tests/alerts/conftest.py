"""A deliverer that may send to loopback and tries again at once, and the sealer of its secrets."""

from collections.abc import Callable
from ipaddress import ip_network

import pytest

from tollhouse.alerts.delivery import AlertDeliverer, DeliveryConfig
from tollhouse.alerts.mail import MailServer
from tollhouse.base.clock import SystemClock
from tollhouse.settings import Settings
from tollhouse.storage.database import Database
from tollhouse.storage.master_secrets import MasterSecrets
from tollhouse.storage.sealing import Sealer

NewDeliverer = Callable[..., AlertDeliverer]


@pytest.fixture
def sealer(database: Database, settings: Settings) -> Sealer:
    return Sealer(database, MasterSecrets(settings.secrets.master_bytes()))


@pytest.fixture
def new_deliverer(database: Database, sealer: Sealer) -> NewDeliverer:
    def make(
        *,
        networks: tuple[str, ...] = ("127.0.0.0/8",),
        seconds: float = 60.0,
        attempts_max: int = 50,
        attempts_per_hour: int = 10_000,
        retry_seconds: float = 0.000_001,
        mail_server: MailServer | None = None,
    ) -> AlertDeliverer:
        config = DeliveryConfig(
            seconds=seconds,
            attempts_max=attempts_max,
            attempts_per_hour=attempts_per_hour,
            retry_seconds=retry_seconds,
            days=30,
            networks=tuple(map(ip_network, networks)),
            mail_server=mail_server,
        )
        return AlertDeliverer(database, sealer, SystemClock(), config)

    return make
