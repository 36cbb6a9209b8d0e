"""Signatures, sentences, retries and checks of destinations. Pure."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from tollhouse.alerts.errors import AlertDestinationRefused
from tollhouse.alerts.types import AlertDelivery, AlertType
from tollhouse.base.money import PicoUsd, to_decimal_string

Networks = Sequence[IPv4Network | IPv6Network]
Details = Mapping[str, Any]

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the beginning of all
RETRY_FACTOR: Final = 2
RETRY_SECONDS_MAX: Final = 21_600.0
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_IPV4_MASK: Final = 0xFFFF_FFFF
_PICO: Final = "_pico"
_SCHEMES: Final = frozenset({"http", "https"})


def secret_text(key: bytes) -> str:
    """Return a signing key as Standard Webhooks write it."""
    return SECRET_PREFIX + base64.b64encode(key).decode()


def signatures(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the header `webhook-signature`: one signature for each valid secret."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(
        "v1," + base64.b64encode(hmac.digest(_key(secret), signed, hashlib.sha256)).decode()
        for secret in secrets
    )


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(SECRET_PREFIX))


def retry_delay(attempts: int, first_seconds: float, draw: float) -> float:
    """Return the seconds until the next attempt; `draw` in [0, 1) spreads them by a half."""
    seconds = min(first_seconds * RETRY_FACTOR ** (attempts - 1), RETRY_SECONDS_MAX)
    return seconds * (0.5 + draw)


def reason_withheld(per_hour_max: int) -> str:
    """Return why an alert is not sent, and what can be done."""
    return (
        f"The {per_hour_max} attempts that the organization has in an hour were used. Try again in "
        "the next one, or let the operator raise quotas.alert_attempts_per_hour."
    )


def is_public(address: str) -> bool:
    """Return whether an address is one of the public internet, also inside of IPv6 tunnels."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        inner = _inner(ip)
        if inner is None:
            return ip in _GLOBAL_UNICAST and ip.is_global
        ip = inner
    return ip.is_global and not ip.is_multicast


def _inner(ip: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address stands for, or None."""
    if ip in _NAT64:
        return IPv4Address(int(ip) & _IPV4_MASK)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)


def is_allowed(address: str, networks: Networks) -> bool:
    """Return whether the operator allows an address that is not public."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return any(ip in network for network in networks)


def check_url(url: str, networks: Networks) -> None:
    """Raise `AlertDestinationRefused` for a URL that can never be delivered to."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if not host or not is_plain or parts.scheme not in _SCHEMES or "@" in parts.netloc:
        reason = "not of the form https://HOST/PATH, percent-encoded, without user and password."
        raise AlertDestinationRefused("url", reason)
    if parts.scheme == "http" and not networks:
        reason = "the URL must begin with https://."
        raise AlertDestinationRefused("url", reason)


def check_emails(emails: Sequence[str], domains: Sequence[str], *, sends_email: bool) -> None:
    """Raise `AlertDestinationRefused` unless the operator sends e-mail to these addresses."""
    if emails and not sends_email:
        reason = (
            "this deployment sends no e-mail. Use 'url', or let the operator set alerts.smtp_host."
        )
        raise AlertDestinationRefused("emails", reason)
    for email in emails:
        domain = email.rpartition("@")[2].lower()
        if domain not in domains:
            reason = f"the operator sends no e-mail to {domain}."
            raise AlertDestinationRefused("emails", reason)


def sentence(alert: AlertDelivery) -> str:
    """Return what happened, as one sentence for people."""
    return _SENTENCES[alert.type](alert.details)


def _cap_sentence(found: Details) -> str:
    subject = {"project": "Project", "api_key": "Key"}.get(found["scope"])
    named = f"{subject} {found['name']}" if subject else "The organization"
    since = "" if found["window_start"] is None else f" since {found['window_start']}"
    cap = f"{found['percent']} % of the {found['period']} cap of ${_usd(found['limit_pico'])}"
    return f"{named} has reached {cap}: ${_usd(found['used_pico'])} is used{since}."


def _credit_sentence(found: Details) -> str:
    if found["percent"] is not None:
        share = f"{found['percent']} % of the credit of ${_usd(found['credit_pico'])}"
        return f"{share} is used: ${_usd(found['used_pico'])}."
    left = PicoUsd(int(found["credit_pico"]) - int(found["used_pico"]))
    below = _usd(found["below_pico"])
    return f"The remaining credit is ${to_decimal_string(left)}, at or below ${below}."


def _unsettled_sentence(found: Details) -> str:
    held = f"${_usd(found['held_pico'])}"
    return f"{found['requests']} requests have no final cost yet. {held} is held for them."


_SENTENCES: Final[Mapping[AlertType, Callable[[Details], str]]] = {
    AlertType.CAP: _cap_sentence,
    AlertType.CREDIT: _credit_sentence,
    AlertType.POLICY_MATCHES: lambda found: (
        f"Policy {found['name']} matched {found['threshold']} times in one hour."
    ),
    AlertType.UNSETTLED: _unsettled_sentence,
    AlertType.BACKEND_DOWN: lambda found: (
        f"Backend {found['backend']} answers no requests: no replica is available."
    ),
    AlertType.TEST: lambda _: "This is a test alert. Nothing has happened.",
}


def message(alert: AlertDelivery) -> Mapping[str, Any]:
    """Return the body of a webhook. It is the same for every attempt."""
    return {
        "type": alert.type.value,
        "timestamp": _iso(alert.raised_at),
        "text": sentence(alert),
        "data": {
            "id": str(alert.id),
            "organization_id": str(alert.organization_id),
            "subscription_id": str(alert.subscription_id),
            **shown_details(alert.details),
        },
    }


def shown_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details with amounts in dollars: `used_pico` becomes `used`."""
    return {
        name.removesuffix(_PICO): {"value": _usd(value), "currency": "usd"}
        if name.endswith(_PICO) and value is not None
        else value
        for name, value in details.items()
    }


def _usd(pico: str) -> str:
    return to_decimal_string(PicoUsd(int(pico)))


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
