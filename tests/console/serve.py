"""A gateway with a past, for whoever tests the console in a browser.

Writes one line of JSON, its address and its keys, and serves until standard input ends.
"""

import asyncio
import sys

import msgspec

from tests.console.seeding import seed
from tests.support import databases
from tests.support.gateway import running_gateway, settings_for
from tests.support.world import new_world
from tollhouse.app import connect
from tollhouse.keys.secrets import Peppers
from tollhouse.storage import schema


async def main() -> None:
    async with databases.temporary() as url:
        await schema.migrate(url)
        settings = settings_for(f"{url}?options=-csynchronous_commit%3Doff")
        database = await connect(settings)
        world = await new_world(database, Peppers(settings.secrets.pepper_bytes()))
        seeded = await seed(world)
        await database.close()
        async with running_gateway(settings) as gateway:
            await gateway.application.reap()
            told = {"base_url": gateway.base_url, **msgspec.to_builtins(seeded)}
            print(msgspec.json.encode(told).decode(), flush=True)  # noqa: T201 - its one answer
            await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
