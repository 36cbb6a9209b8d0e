"""A gateway with a past, for whoever tests the console in a browser.

Writes one line of JSON, its address and its keys, and serves until standard input ends.
"""

import asyncio
import sys

import msgspec

from tests.console.seeding import seed
from tests.console.trading import on_shelf, silent_address, trade
from tests.support import databases
from tests.support.gateway import running_gateway, settings_for
from tests.support.upstream import running_upstream
from tests.support.world import new_world
from tollhouse.app import connect
from tollhouse.keys.secrets import Peppers
from tollhouse.settings import Settings
from tollhouse.storage import schema
from tollhouse.testing.upstream import ScriptedUpstream


async def main() -> None:
    async with databases.temporary() as url, running_upstream(chunk_delay_ms=20) as upstream:
        await schema.migrate(url)
        hasty = f"{url}?options=-csynchronous_commit%3Doff"
        with silent_address() as silent_url:
            settings = on_shelf(settings_for(hasty), upstream.base_url, silent_url)
            await serve(settings, upstream)


async def serve(settings: Settings, upstream: ScriptedUpstream) -> None:
    database = await connect(settings)
    world = await new_world(database, Peppers(settings.secrets.pepper_bytes()))
    seeded = await seed(world)
    await database.close()
    async with running_gateway(settings) as gateway:
        await gateway.application.reap()
        failed_id = await trade(gateway, upstream, seeded.project_key, seeded.admin_key)
        told = {
            "base_url": gateway.base_url,
            "failed_request_id": failed_id,
            **msgspec.to_builtins(seeded),
        }
        print(msgspec.json.encode(told).decode(), flush=True)  # noqa: T201 - its one answer
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
