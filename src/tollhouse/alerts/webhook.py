"""Deliver an alert by HTTP to an address that is checked, and connected to as checked."""

import asyncio
import socket
import ssl
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from tollhouse.alerts import rules
from tollhouse.alerts.rules import Networks
from tollhouse.alerts.types import DeliveryAttempt
from tollhouse.base.ids import OrganizationId

HEAD_BYTES_MAX: Final = 16_384
"""The most that is read of an answer: its status and headers. The body is not read."""
RESOLVING_MAX: Final = 64
RESOLVING_PER_ORGANIZATION_MAX: Final = 4
"""Host names that are resolved at a time, so that the name servers of one organization, which may
never answer, hold up no other one."""
_GONE: Final = 410
_PORTS: Final = {"http": 80, "https": 443}
_REFUSED: Final = (
    "the host has an address that is not public. The operator can allow it by "
    "alerts.allowed_networks."
)


class _Refused(Exception):
    """The host has an address that alerts must not be sent to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WebhookClient:
    """Sends webhooks. Threads of its own resolve host names: one cannot be stopped."""

    seconds: float
    networks: Networks
    tls: ssl.SSLContext
    look_up: Callable[..., list[Any]] = socket.getaddrinfo
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(RESOLVING_MAX, "alert-names")
    )
    _room: defaultdict[OrganizationId, asyncio.Semaphore] = field(
        default_factory=lambda: defaultdict(
            partial(asyncio.Semaphore, RESOLVING_PER_ORGANIZATION_MAX)
        )
    )

    async def post(
        self, organization_id: OrganizationId, url: str, headers: Mapping[str, str], body: bytes
    ) -> DeliveryAttempt:
        """Send one request, without following redirects, and return its outcome. Never raises."""
        try:
            async with asyncio.timeout(self.seconds):
                status = await self._post(organization_id, urlsplit(url), headers, body)
        except TimeoutError:
            return DeliveryAttempt(error=f"no answer within {self.seconds:g} s")
        except (_Refused, OSError, ValueError, EOFError, asyncio.LimitOverrunError) as failure:
            return DeliveryAttempt(error=_reason(failure))
        if 200 <= status < 300:  # noqa: PLR2004 - the statuses of success
            return DeliveryAttempt(status=status)
        return DeliveryAttempt(status=status, error=f"answered {status}", is_final=status == _GONE)

    async def _post(
        self,
        organization_id: OrganizationId,
        url: SplitResult,
        headers: Mapping[str, str],
        body: bytes,
    ) -> int:
        host = url.hostname or ""
        port = url.port or _PORTS[url.scheme]
        is_secure = url.scheme == "https"
        addresses = await self._resolve(organization_id, host, port)
        for address in addresses:
            is_public = is_secure and rules.is_public(address)
            if not is_public and not rules.is_allowed(address, self.networks):
                raise _Refused
        reader, writer = await asyncio.open_connection(
            addresses[0],
            port,
            limit=HEAD_BYTES_MAX,
            ssl=self.tls if is_secure else None,
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

    async def _resolve(self, organization_id: OrganizationId, host: str, port: int) -> list[str]:
        """Return the addresses of a host, after waiting for room among those of the organization.

        The thread may outlive the caller, and takes its room until it ends.
        """
        room, loop = self._room[organization_id], asyncio.get_running_loop()

        def release(_: object) -> None:
            # After the end of the loop, no caller waits for room.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(room.release)

        await room.acquire()
        looking = self._threads.submit(self.look_up, host, port, type=socket.SOCK_STREAM)
        looking.add_done_callback(release)
        found = await asyncio.wrap_future(looking)
        return [str(address[0]) for *_, address in found]


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


async def _read_status(reader: asyncio.StreamReader) -> int:
    """Return the final status. The heads of informational answers are skipped."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        version, status, *_ = head.split(None, 2)
        if not version.startswith(b"HTTP/1.") or not 100 <= int(status) < 600:  # noqa: PLR2004
            raise ValueError
        if int(status) >= 200:  # noqa: PLR2004 - lower ones announce another answer
            return int(status)
