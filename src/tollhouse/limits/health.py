"""The health of a Redis server: whether it answers, and whether it may evict keys."""

import asyncio
from dataclasses import dataclass

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from tollhouse.limits.errors import CounterUnavailable


@dataclass(frozen=True, kw_only=True, slots=True)
class RedisHealth:
    """The version and memory settings of a Redis or Valkey server."""

    version: str
    eviction_policy: str
    memory_bytes_max: int

    @property
    def drops_keys(self) -> bool:
        """Whether the server may evict counters, which it does only with a memory limit."""
        return self.memory_bytes_max > 0 and self.eviction_policy != "noeviction"


async def examine(url: str, *, patience_seconds: float) -> RedisHealth:
    """Query the server once; raise `CounterUnavailable` with the reason if it does not answer."""
    client = Redis.from_url(  # pyright: ignore[reportUnknownMemberType] - theirs
        url, protocol=2, retry=Retry(NoBackoff(), 0)
    )
    try:
        async with asyncio.timeout(patience_seconds):
            told = await client.info()  # pyright: ignore[reportUnknownMemberType] - theirs
    except TimeoutError:
        message = f"no answer within {patience_seconds} s"
        raise CounterUnavailable(message) from None
    except (RedisError, OSError) as failure:
        raise CounterUnavailable(str(failure)) from None
    finally:
        await client.aclose()
    return RedisHealth(
        version=str(told.get("valkey_version", told["redis_version"])),
        eviction_policy=str(told["maxmemory_policy"]),
        memory_bytes_max=int(told["maxmemory"]),
    )
