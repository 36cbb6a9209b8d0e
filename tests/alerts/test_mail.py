"""Alerts by e-mail, over a mail server with STARTTLS and a login."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.alerts.conftest import NewDeliverer
from tests.alerts.mail_server import MailReceiver, running_mail_server
from tests.alerts.subscribing import outbox, subscribe
from tests.support.certificates import make_certificates
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.alerts import rules, service
from tollhouse.alerts.errors import AlertDestinationRefused
from tollhouse.alerts.mail import MailServer
from tollhouse.alerts.types import AlertThresholds, DeliveryState
from tollhouse.settings import AlertSettings, InvalidSettings

TO = ("a@b.example", "c@d.example")


@pytest.fixture
async def receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MailReceiver]:
    certificates = make_certificates(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    async with running_mail_server(certificates) as running:
        yield running


def server_at(receiver: MailReceiver, host: str = "localhost", seconds: float = 30) -> MailServer:
    return MailServer(
        host=host,
        port=receiver.port,
        tls="starttls",
        user="tollhouse",
        password="a password",
        sender="alerts@tollhouse.example",
        seconds=seconds,
    )


async def send_test(org: OrganizationFixture) -> None:
    subscription, _ = await subscribe(
        org, AlertThresholds(credit_percents=(50,)), url=None, emails=TO
    )
    async with org.database.mutation(org.authority()) as tx:
        await service.send_test(tx, subscription.id)


async def test_an_alert_arrives_as_one_message_to_all_recipients(
    org: OrganizationFixture, new_deliverer: NewDeliverer, receiver: MailReceiver
) -> None:
    await send_test(org)

    await new_deliverer(mail_server=server_at(receiver)).run()

    [delivery] = await outbox(org)
    [message] = receiver.messages
    assert delivery.state is DeliveryState.DELIVERED
    assert receiver.recipients == [list(TO)]
    assert receiver.logins == ["tollhouse a password True"]
    assert message["Subject"] == "[Tollhouse] This is a test alert. Nothing has happened."
    assert message["From"] == "alerts@tollhouse.example"
    assert message["Message-ID"] == f"<{delivery.id}@tollhouse.example>"
    assert str(delivery.id) in message.get_content()


async def test_a_busy_server_is_asked_again_with_the_same_message_id(
    org: OrganizationFixture, new_deliverer: NewDeliverer, receiver: MailReceiver
) -> None:
    await send_test(org)
    receiver.is_busy = True
    await new_deliverer(mail_server=server_at(receiver), retry_seconds=60.0).run()
    [busy] = await outbox(org)
    receiver.is_busy = False
    async with org.database.transaction() as tx:
        await tx.execute("UPDATE alert_deliveries SET next_attempt_at = now()")

    await new_deliverer(mail_server=server_at(receiver)).run()

    [delivered] = await outbox(org)
    assert (busy.state, busy.last_status) == (DeliveryState.PENDING, 451)
    assert busy.last_error is not None
    assert "busy" in busy.last_error
    assert (delivered.state, delivered.attempts) == (DeliveryState.DELIVERED, 2)
    assert len(receiver.messages) == 1


async def test_an_attempt_that_timed_out_ends_its_connection(
    org: OrganizationFixture, new_deliverer: NewDeliverer, receiver: MailReceiver
) -> None:
    await send_test(org)
    receiver.is_slow = True

    server = server_at(receiver, seconds=2)
    await new_deliverer(mail_server=server, retry_seconds=60.0).run()
    await asyncio.wait_for(receiver.abandoned.wait(), 30)

    [delivery] = await outbox(org)
    assert (delivery.state, receiver.messages) == (DeliveryState.PENDING, [])
    assert "no answer within 4 s" in (delivery.last_error or "")


async def test_a_message_that_cannot_be_written_holds_up_no_other(
    org: OrganizationFixture, new_deliverer: NewDeliverer, receiver: MailReceiver
) -> None:
    await send_test(org)
    await send_test(org)
    async with org.database.transaction() as tx:
        await tx.execute(
            """
            UPDATE alert_subscriptions SET emails = ARRAY['a@b.example\nBcc: c@d.example']
             WHERE id = (SELECT min(id::text)::uuid FROM alert_subscriptions)
            """
        )

    await new_deliverer(mail_server=server_at(receiver), attempts_max=1).run()

    states = sorted(delivery.state for delivery in await outbox(org))
    assert states == [DeliveryState.DELIVERED, DeliveryState.FAILED]


async def test_recipients_that_do_not_exist_are_not_tried_again(
    org: OrganizationFixture, new_deliverer: NewDeliverer, receiver: MailReceiver
) -> None:
    await send_test(org)
    receiver.refused = set(TO)

    await new_deliverer(mail_server=server_at(receiver)).run()

    [delivery] = await outbox(org)
    assert (delivery.state, delivery.last_status) == (DeliveryState.FAILED, 550)


async def test_no_password_is_sent_to_a_server_with_another_name_or_without_tls(
    org: OrganizationFixture, new_deliverer: NewDeliverer, receiver: MailReceiver
) -> None:
    await send_test(org)

    await new_deliverer(mail_server=server_at(receiver, "127.0.0.2"), attempts_max=1).run()

    [delivery] = await outbox(org)
    assert delivery.state is DeliveryState.FAILED
    assert "CERTIFICATE_VERIFY_FAILED" in (delivery.last_error or "")
    assert receiver.logins == []
    with pytest.raises(InvalidSettings, match="never sent without TLS"):
        AlertSettings(
            smtp_host="mail.example",
            smtp_sender="a@b.example",
            smtp_tls="none",
            smtp_password="a password",
            email_domains=("b.example",),
        )


async def test_without_a_mail_server_a_delivery_fails_and_says_why(
    org: OrganizationFixture, new_deliverer: NewDeliverer
) -> None:
    await send_test(org)

    await new_deliverer().run()

    [delivery] = await outbox(org)
    assert delivery.last_error == "this deployment sends no e-mail"
    assert delivery.state is DeliveryState.FAILED


def test_the_operator_decides_which_domains_get_mail() -> None:
    rules.check_emails(["a@B.example"], ["b.example"], sends_email=True)

    for address in ("a@c.example", "a@b.example.c", "a@sub.b.example"):
        with pytest.raises(AlertDestinationRefused):
            rules.check_emails([address], ["b.example"], sends_email=True)


@pytest.mark.parametrize(
    "settings",
    [
        {"smtp_host": "mail.example"},
        {"smtp_sender": "a@b.example"},
        {"smtp_host": "mail.example", "smtp_sender": "a@b.example"},
        {"allowed_networks": ("10.0.0.1/8",)},
        {"allowed_networks": ("everywhere",)},
    ],
)
def test_settings_that_contradict_themselves_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InvalidSettings):
        AlertSettings(**settings)  # pyright: ignore[reportArgumentType] - each is right by its type
