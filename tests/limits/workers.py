"""Workers in processes of their own, which a test may kill."""

import asyncio
from multiprocessing.connection import Connection
from typing import Any

from redis.asyncio import Redis

from tests.limits.gates import Caller, gate
from tollhouse.limits.errors import ConcurrencyLimited
from tollhouse.limits.limiter import RENEW_EVERY_SECONDS, Limiter

INSIDE = "inside"
"""Where everybody who is inside counts himself, beside the product."""


def come_and_go(line: Connection, url: str, caller: Caller, callers: int, visits: int) -> None:
    """Many callers at once; tells the most that ever were inside, over all processes."""
    line.send(asyncio.run(_come_and_go(url, caller, callers, visits)))


async def _come_and_go(url: str, caller: Caller, callers: int, visits: int) -> int:
    witness: Any = Redis.from_url(url)  # pyright: ignore[reportUnknownMemberType] - theirs
    async with gate(url) as door:
        most = await asyncio.gather(
            *(_visit(door.limiter, caller, witness, visits) for _ in range(callers))
        )
    await witness.aclose()
    return max(most)


async def _visit(limiter: Limiter, caller: Caller, witness: Any, visits: int) -> int:  # noqa: ANN401 - half typed
    most = 0
    while visits:
        try:
            entered = await limiter.enter(caller.request())
        except ConcurrencyLimited:
            continue
        most = max(most, await witness.incr(INSIDE))
        await witness.decr(INSIDE)
        entered.leave()
        visits -= 1
    return most


def stay(line: Connection, url: str, caller: Caller, requests: int, lease_seconds: float) -> None:
    """Hold slots and renew them until killed; says so when all are held."""
    asyncio.run(_stay(line, url, caller, requests, lease_seconds))


async def _stay(
    line: Connection, url: str, caller: Caller, requests: int, lease_seconds: float
) -> None:
    async with gate(url, lease_seconds=lease_seconds) as door:
        for _ in range(requests):
            await door.limiter.enter(caller.request())
        line.send("inside")
        while True:
            await asyncio.sleep(min(lease_seconds / 4, RENEW_EVERY_SECONDS))
            await door.limiter.renew_leases()
