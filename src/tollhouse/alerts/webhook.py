"""Deliver an alert by HTTP to an address that is checked, and connected to as checked."""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from tollhouse.alerts import rules
from tollhouse.alerts.rules import Networks
from tollhouse.alerts.types import DeliveryAttempt

HEAD_BYTES_MAX: Final = 16_384
"""The most that is read of an answer: its status and headers. The body is not read."""
_GONE: Final = 410
_PORTS: Final = {"http": 80, "https": 443}
_REFUSED: Final = (
    "the host has an address that is not public. The operator can allow it by "
    "alerts.allowed_networks."
)


class _Refused(Exception):
    """The host has an address that alerts must not be sent to."""


async def post(
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    seconds: float,
    networks: Networks,
    tls: ssl.SSLContext,
) -> DeliveryAttempt:
    """Send one request, without following redirects, and return its outcome. Never raises."""
    try:
        async with asyncio.timeout(seconds):
            status = await _post(urlsplit(url), headers, body, networks, tls)
    except TimeoutError:
        return DeliveryAttempt(error=f"no answer within {seconds:g} s")
    except (_Refused, OSError, ValueError, EOFError, asyncio.LimitOverrunError) as failure:
        return DeliveryAttempt(error=_reason(failure))
    if 200 <= status < 300:  # noqa: PLR2004 - the statuses of success
        return DeliveryAttempt(status=status)
    return DeliveryAttempt(status=status, error=f"answered {status}", is_final=status == _GONE)


def _reason(failure: Exception) -> str:
    match failure:
        case _Refused():
            return _REFUSED
        case socket.gaierror():
            return "the host name cannot be resolved"
        case ssl.SSLError():
            return f"TLS failed: {failure.reason}"
        case OSError():
            return "the connection failed"
        case _:
            return "the answer is not HTTP"


async def _post(
    url: SplitResult,
    headers: Mapping[str, str],
    body: bytes,
    networks: Networks,
    tls: ssl.SSLContext,
) -> int:
    host = url.hostname or ""
    port = url.port or _PORTS[url.scheme]
    is_secure = url.scheme == "https"
    reader, writer = await asyncio.open_connection(
        await _checked_address(host, port, networks, is_secure=is_secure),
        port,
        limit=HEAD_BYTES_MAX,
        ssl=tls if is_secure else None,
        server_hostname=host if is_secure else None,
    )
    try:
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        sent = {
            "host": url.netloc,
            "content-type": "application/json",
            "content-length": str(len(body)),
            "user-agent": "tollhouse-alerts",
            "connection": "close",
            **headers,
        }
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        writer.write("\r\n".join((*lines, "", "")).encode() + body)
        await writer.drain()
        return await _read_status(reader)
    finally:
        writer.close()


async def _read_status(reader: asyncio.StreamReader) -> int:
    """Return the final status. The heads of informational answers are skipped."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        version, status, *_ = head.split(None, 2)
        if not version.startswith(b"HTTP/1.") or not 100 <= int(status) < 600:  # noqa: PLR2004
            raise ValueError
        if int(status) >= 200:  # noqa: PLR2004 - lower ones announce another answer
            return int(status)


async def _checked_address(host: str, port: int, networks: Networks, *, is_secure: bool) -> str:
    """Return an address of the host if all of them are allowed. Raises `_Refused`."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(address[0]) for *_, address in found]
    for address in addresses:
        if not rules.is_allowed(address, networks) and not (is_secure and rules.is_public(address)):
            raise _Refused
    return addresses[0]
