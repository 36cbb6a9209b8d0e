"""The whole application behind its real HTTP server, on a free port of loopback."""

import asyncio
import secrets
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
import msgspec

from tollhouse.app import Application
from tollhouse.base.clock import Clock
from tollhouse.serving.server import HttpServer, http_server, listen
from tollhouse.settings import DatabaseSettings, SecretSettings, ServerSettings, Settings

TIMEOUT_SECONDS = 120.0
"""What a machine that stands still for a while must not exceed: no test waits for it to pass."""

POOL_SIZE = 4
"""Opening a connection costs more than most tests."""

NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients that use no TLS: each would spend 90 ms of CPU on reading certificates."""

SERVER: dict[str, object] = {
    "port": 0,
    "probe_port": 0,
    "workers": 1,
    # Tests of races send many requests at once, and some hold a lock while they do.
    "admin_requests_per_organization": 64,
    "admin_wait_seconds": TIMEOUT_SECONDS,
}


def settings_for(database_url: str, **server: object) -> Settings:
    """A sound configuration with secrets of its own."""
    return Settings(
        database=DatabaseSettings(
            url=database_url,
            pool_size=POOL_SIZE,
            admin_pool_size=POOL_SIZE,
            acquire_seconds=TIMEOUT_SECONDS,
            statement_seconds=TIMEOUT_SECONDS,
            admin_statement_seconds=TIMEOUT_SECONDS,
            report_statement_seconds=TIMEOUT_SECONDS,
        ),
        secrets=SecretSettings(master=secrets.token_urlsafe(48)),
        server=msgspec.convert({**SERVER, **server}, ServerSettings),
    )


@dataclass(frozen=True)
class Gateway:
    application: Application
    host: str
    port: int

    @property
    def base_url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def client(self, key: str | None = None) -> httpx2.AsyncClient:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        return httpx2.AsyncClient(
            base_url=self.base_url,
            headers=headers,
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
            verify=NO_AUTHORITIES,
        )


@asynccontextmanager
async def running_gateway(
    settings: Settings, clock: Clock | None = None, *, port: int = 0
) -> AsyncGenerator[Gateway]:
    application = Application(settings, clock)
    edge = await application.startup()
    server = http_server(edge, settings.server, documentation_url=settings.documentation_url)
    try:
        async with running_server(server, port) as address:
            yield Gateway(application, *address)
    finally:
        await application.shutdown()


@asynccontextmanager
async def running_server(server: HttpServer, port: int = 0) -> AsyncGenerator[tuple[str, int]]:
    """An HTTP server in this process; its address."""
    listener = listen("127.0.0.1", port)
    address = listener.getsockname()
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await server.accepting.wait()
    try:
        yield address
    finally:
        server.stop()
        await serving


async def run_jobs(application: Application, *names: str) -> None:
    """Run background jobs of a worker now, whether it has their leases or not."""
    for job in application.jobs:
        if job.name in names:
            await job.run()
