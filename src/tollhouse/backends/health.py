"""Health checks of replicas: continuous ones in a worker, and a single probe for an operator."""

import asyncio
import random
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from tollhouse.backends.errors import NotConnected, NotHttp, NotTrusted, TransportError
from tollhouse.backends.http1 import Headers
from tollhouse.backends.replicas import Replica, Replicas
from tollhouse.backends.transport import Transport
from tollhouse.backends.types import BackendConfig
from tollhouse.base.dialects import Dialect
from tollhouse.base.tasks import Tasks

HEALTH_EVERY_SECONDS: Final = 5.0
HEALTH_ANSWER_SECONDS: Final = 5.0
HEALTH_SPREAD: Final = 0.2
"""Periods vary by this share, so that the checks of many replicas do not coincide."""
_SERVER_ERRORS_FROM: Final = 500
WITHOUT_HEALTH_ROUTE: Final = frozenset({404, 405})
"""Statuses of a server that has no health route. Only its calls show whether it works."""


ANTHROPIC_VERSION: Final = "2023-06-01"


class HealthChecks:
    """Checks every replica of one backend, from `start` to `stop`."""

    def __init__(
        self,
        config: BackendConfig,
        transport: Transport,
        replicas: Replicas,
        *,
        every_seconds: float = HEALTH_EVERY_SECONDS,
        answer_seconds: float = HEALTH_ANSWER_SECONDS,
    ) -> None:
        self._config = config
        self._transport = transport
        self._replicas = replicas
        self._every_seconds = every_seconds
        self._answer_seconds = answer_seconds
        self._checks: list[asyncio.Task[None]] = []

    def start(self, tasks: Tasks) -> None:
        """Start one task for each replica."""
        for replica in self._replicas.all:
            spread = random.uniform(1 - HEALTH_SPREAD, 1 + HEALTH_SPREAD)  # noqa: S311 - no secret
            check = tasks.repeat(
                f"health-{self._config.name}",
                partial(self._check, replica),
                self._every_seconds * spread,
            )
            self._checks.append(check)

    async def stop(self) -> None:
        """Cancel all checks and wait until they have ended."""
        for check in self._checks:
            check.cancel()
        await asyncio.gather(*self._checks, return_exceptions=True)
        self._checks.clear()

    async def _check(self, replica: Replica) -> None:
        self._replicas.record_health(replica, is_well=await self._is_well(replica))

    async def _is_well(self, replica: Replica) -> bool:
        """Return whether a replica answers below 500: not every server has a health route."""
        try:
            async with asyncio.timeout(self._answer_seconds):
                response = await self._transport.send(
                    "GET",
                    replica.host_url + self._config.health_path,
                    headers={},
                    body=None,
                    connect_seconds=self._config.connect_seconds,
                )
        except (TimeoutError, TransportError):
            return False
        response.close()
        return response.status < _SERVER_ERRORS_FROM


def credential_headers(dialect: Dialect, api_key: str | None) -> Headers:
    """Return the headers for the gateway's credential, and the version of the API."""
    version = (("anthropic-version", ANTHROPIC_VERSION),) if dialect == "anthropic" else ()
    if api_key is None:
        return version
    if dialect == "openai":
        return (("authorization", f"Bearer {api_key}"),)
    return (*version, ("x-api-key" if dialect == "anthropic" else "api-key", api_key))


async def probe(
    base_url: str,
    health_path: str,
    *,
    headers: Headers,
    seconds: float,
    ca_certificates: str | None = None,
) -> str | None:
    """Check a replica once. Return the problem, or None if it is healthy.

    `health_path` begins at the host of `base_url`.
    """
    host = urlsplit(base_url)
    transport = Transport(ca_certificates)
    try:
        async with asyncio.timeout(seconds):
            response = await transport.send(
                "GET",
                f"{host.scheme}://{host.netloc}{health_path}",
                headers=dict(headers),
                body=None,
                # The timeout above expires first, while connecting as well.
                connect_seconds=2 * seconds,
            )
            response.close()
    except TimeoutError:
        return f"does not answer within {seconds:g} s"
    except NotTrusted as refusal:
        return f"has a certificate that was refused: {refusal.reason}"
    except NotConnected:
        return "cannot be connected to"
    except NotHttp:
        return "does not answer in HTTP"
    except TransportError:
        return "closes the connection without an answer"
    finally:
        await transport.close()
    is_well = response.status // 100 == 2 or response.status in WITHOUT_HEALTH_ROUTE  # noqa: PLR2004
    return None if is_well else f"answers {response.status} to GET {health_path}"
