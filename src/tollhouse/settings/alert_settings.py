"""The section of the configuration about the delivery of alerts."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Literal

from msgspec import Meta

from tollhouse.settings.section import InvalidSettings, Section

EmailDomain = Annotated[str, Meta(pattern=r"\A[a-z0-9.-]+\Z")]


class AlertSettings(Section, frozen=True, kw_only=True):
    """Delivery of alerts by webhook, and by e-mail if `smtp_host` and `smtp_sender` are set.

    Webhooks go to public addresses by https only. `allowed_networks` adds private ones, where plain
    http is allowed too. An attempt may take `timeout_seconds`; after `attempts_max` of them, with
    growing pauses that begin with `retry_seconds`, a delivery has failed. Deliveries are kept for
    `delivery_days`. E-mail is sent to addresses in `email_domains` only.
    """

    allowed_networks: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    timeout_seconds: Annotated[float, Meta(gt=0, le=60)] = 10.0
    attempts_max: Annotated[int, Meta(ge=1, le=100)] = 15
    retry_seconds: Annotated[float, Meta(gt=0, le=3600)] = 5.0
    delivery_days: Annotated[int, Meta(ge=1, le=3650)] = 30
    smtp_host: str | None = None
    smtp_port: Annotated[int, Meta(ge=1, le=65535)] = 587
    smtp_tls: Literal["starttls", "tls", "none"] = "starttls"
    smtp_user: str | None = None
    smtp_password: str | None = None
    smtp_sender: Annotated[str, Meta(pattern=r"\A[^\s@<>]+@[^\s@<>]+\Z")] | None = None
    email_domains: Annotated[tuple[EmailDomain, ...], Meta(max_length=100)] = ()

    def __post_init__(self) -> None:
        if (self.smtp_host is None) != (self.smtp_sender is None):
            message = "alerts: set both smtp_host and smtp_sender, or neither"
            raise InvalidSettings(message)
        if self.smtp_host is not None and not self.email_domains:
            message = (
                "alerts.email_domains: say to which domains smtp_host may send alerts, such as "
                'email_domains = ["example.com"]. Admins of organizations choose the addresses.'
            )
            raise InvalidSettings(message)
        if self.smtp_tls == "none" and self.smtp_password is not None:
            message = 'alerts.smtp_tls: a password is never sent without TLS. Use "starttls".'
            raise InvalidSettings(message)
        self.networks()

    def networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Return the allowed networks. Raises `InvalidSettings`."""
        try:
            return tuple(map(ip_network, self.allowed_networks))
        except ValueError as error:
            message = f"alerts.allowed_networks: {error}"
            raise InvalidSettings(message) from None
