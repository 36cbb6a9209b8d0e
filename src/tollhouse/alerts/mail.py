"""Deliver an alert by e-mail, over the operator's SMTP server."""

import asyncio
import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime

from tollhouse.alerts import rules
from tollhouse.alerts.types import AlertDelivery, DeliveryAttempt

_PERMANENT_FROM = 500


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

    async def send(self, alert: AlertDelivery, recipients: Sequence[str]) -> DeliveryAttempt:
        """Send one message to all recipients and return its outcome. Never raises."""
        message = mail_message(alert, self.sender, recipients)
        try:
            async with asyncio.timeout(2 * self.seconds):
                await asyncio.to_thread(self._send, message)
        except TimeoutError:
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
        except (smtplib.SMTPException, OSError) as failure:
            return DeliveryAttempt(error=f"SMTP: {failure}"[:200])
        return DeliveryAttempt()

    def _send(self, message: EmailMessage) -> None:
        with self._connection() as server:
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
