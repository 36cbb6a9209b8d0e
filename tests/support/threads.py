"""A gateway in a thread of its own, for tests that cannot be coroutines."""

import asyncio
import threading
from collections.abc import Coroutine, Generator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
import msgspec

from tests.support import catalogs, databases
from tests.support.gateway import NO_AUTHORITIES, Gateway, running_gateway, settings_for
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tollhouse.app import connect
from tollhouse.storage.database import Database

T = TypeVar("T")

ANSWER_SECONDS_MAX = 120.0
IMPATIENT = "?options=-csynchronous_commit%3Doff"


@dataclass(frozen=True)
class Served:
    """What the thread runs; `do` runs a coroutine there."""

    loop: asyncio.AbstractEventLoop
    gateway: Gateway
    database: Database

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return _on(self.loop, work)

    def new_organization_fixture(self) -> OrganizationFixture:
        return self.do(new_organization_fixture(self.database))

    def client(self, org: OrganizationFixture) -> httpx2.Client:
        """Calls with an Admin key that holds all permissions."""
        key = self.do(org.admin_key()).value
        return httpx2.Client(
            base_url=self.gateway.base_url,
            headers={"authorization": f"Bearer {key}"},
            timeout=60,
            trust_env=False,
            verify=NO_AUTHORITIES,
        )


def _on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(work, loop).result(ANSWER_SECONDS_MAX)


@contextmanager
def served(template: str) -> Generator[Served]:
    """A database and a gateway on it, until the block is left."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    stack = AsyncExitStack()
    try:
        yield _on(loop, _open(loop, stack, template))
    finally:
        _on(loop, stack.aclose())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _open(loop: asyncio.AbstractEventLoop, stack: AsyncExitStack, template: str) -> Served:
    url = await stack.enter_async_context(databases.temporary(template=template))
    settings = msgspec.structs.replace(
        settings_for(url + IMPATIENT), backends=catalogs.BACKENDS, models=catalogs.MODELS
    )
    database = await connect(settings)
    stack.push_async_callback(database.close)
    gateway = await stack.enter_async_context(running_gateway(settings))
    return Served(loop, gateway, database)
