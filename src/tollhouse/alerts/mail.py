"""Deliver an alert by e-mail, over the operator's SMTP server."""

import asyncio
import smtplib
import socket
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import format_datetime
from threading import Event
from typing import Final

from tollhouse.alerts import rules
from tollhouse.alerts.types import AlertDelivery, DeliveryAttempt

THREADS: Final = 4
"""Messages that are sent at the same time."""
_PERMANENT_FROM: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class MailServer:
    """An SMTP server. `tls` is "starttls", "tls" from the first byte, or "none"."""

    host: str
    port: int
    tls: str
    user: str | None
    password: str | None
    sender: str
    seconds: float

    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(THREADS, "alert-mail")
    )

    async def send(self, alert: AlertDelivery, recipients: Sequence[str]) -> DeliveryAttempt:
        """Send one message to all recipients and return its outcome. Never raises.

        When the time is over, the connection is cut: no message is accepted after that.
        """
        opened: list[smtplib.SMTP] = []
        is_over = Event()
        try:
            message = mail_message(alert, self.sender, recipients)
            async with asyncio.timeout(2 * self.seconds):
                await asyncio.get_running_loop().run_in_executor(
                    self.threads, self._send, message, opened, is_over
                )
        except TimeoutError:
            is_over.set()
            for server in opened:
                _cut(server)
            return DeliveryAttempt(error=f"SMTP: no answer within {2 * self.seconds:g} s")
        except smtplib.SMTPResponseException as failure:
            said = failure.smtp_error
            text = said.decode(errors="replace") if isinstance(said, bytes) else said
            return DeliveryAttempt(status=failure.smtp_code, error=f"SMTP: {text}"[:200])
        except smtplib.SMTPRecipientsRefused as failure:
            codes = [code for code, _ in failure.recipients.values()]
            return DeliveryAttempt(
                status=codes[0],
                error="SMTP: the recipients were refused",
                is_final=min(codes) >= _PERMANENT_FROM,
            )
        except (smtplib.SMTPException, OSError, ValueError) as failure:
            return DeliveryAttempt(error=f"SMTP: {failure}"[:200])
        return DeliveryAttempt()

    def _send(self, message: EmailMessage, opened: list[smtplib.SMTP], is_over: Event) -> None:
        if is_over.is_set():
            return
        with self._connection() as server:
            opened.append(server)
            if is_over.is_set():
                return
            if self.tls == "starttls":
                server.starttls(context=ssl.create_default_context())
            if self.user is not None:
                server.login(self.user, self.password or "")
            server.send_message(message)

    def _connection(self) -> smtplib.SMTP:
        if self.tls != "tls":
            return smtplib.SMTP(self.host, self.port, timeout=self.seconds)
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(self.host, self.port, timeout=self.seconds, context=context)


def _cut(server: smtplib.SMTP) -> None:
    """End a connection in use by another thread, which then raises."""
    if server.sock is not None:
        with suppress(OSError):
            # That of an encrypted socket would first go on in plain text.
            socket.socket.shutdown(server.sock, socket.SHUT_RDWR)


def mail_message(alert: AlertDelivery, sender: str, recipients: Sequence[str]) -> EmailMessage:
    """Return the message. Its ID is the same for every attempt, so that servers drop repeats."""
    message = EmailMessage()
    text = rules.sentence(alert)
    message["Subject"] = "[Tollhouse] " + " ".join(text.split())
    message["From"] = sender
    message["To"] = ", ".join(recipients)
    message["Date"] = format_datetime(alert.raised_at)
    message["Message-ID"] = f"<{alert.id}@{sender.rpartition('@')[2].rstrip('>')}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(
        f"{text}\n\nAlert: {alert.type}\nID: {alert.id}\nOrganization: {alert.organization_id}\n"
        f"Subscription: {alert.subscription_id}\nRaised: {alert.raised_at:%Y-%m-%d %H:%M:%S} UTC\n"
    )
    return message
