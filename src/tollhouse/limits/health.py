"""The health of Redis: which servers count, and whether each answers and may evict keys."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from tollhouse.base import redis_url
from tollhouse.base.redis_url import RedisMode, RedisUrl
from tollhouse.limits import redis_discovery
from tollhouse.limits.errors import CounterUnavailable
from tollhouse.limits.redis_discovery import RedisSurvey
from tollhouse.limits.redis_topology import HASH_SLOTS, Address


@dataclass(frozen=True, kw_only=True, slots=True)
class RedisHealth:
    """The version, memory settings and replicas of a Redis or Valkey server."""

    address: str
    version: str
    eviction_policy: str
    memory_bytes_max: int
    replicas: int

    @property
    def drops_keys(self) -> bool:
        """Whether the server may evict counters, which it does only with a memory limit."""
        return self.memory_bytes_max > 0 and self.eviction_policy != "noeviction"


@dataclass(frozen=True, kw_only=True, slots=True)
class RedisGroupHealth:
    """All masters, the Sentinels or nodes that do not answer, and slots without a master."""

    mode: RedisMode
    masters: Sequence[RedisHealth]
    members: int
    failures: Sequence[str]
    missing_slots: int


async def examine_group(url: str, *, patience_seconds: float) -> RedisGroupHealth:
    """Query all servers once; raise `CounterUnavailable` with the reason if a master is silent."""
    parsed = redis_url.parse(url)
    try:
        found = await redis_discovery.survey(parsed)
        if parsed.mode is RedisMode.CLUSTER:
            found = await redis_discovery.survey(parsed, found.masters)
    except RedisError as failure:
        raise CounterUnavailable(str(failure)) from None
    asked = (
        _examine(parsed.server(*address), address, patience_seconds) for address in found.masters
    )
    return RedisGroupHealth(
        mode=parsed.mode,
        masters=await asyncio.gather(*asked),
        members=_member_count(parsed, found),
        failures=found.failures,
        missing_slots=HASH_SLOTS - sum(map(len, found.masters.values())),
    )


def _member_count(url: RedisUrl, found: RedisSurvey) -> int:
    """Return how many Sentinels or nodes were asked."""
    return len({*url.hosts, *(found.masters if url.mode is RedisMode.CLUSTER else ())})


async def _examine(url: str, address: Address, patience_seconds: float) -> RedisHealth:
    shown = f"{address[0]}:{address[1]}"
    client = Redis.from_url(  # pyright: ignore[reportUnknownMemberType] - theirs
        url, protocol=2, retry=Retry(NoBackoff(), 0)
    )
    try:
        async with asyncio.timeout(patience_seconds):
            told = await client.info()  # pyright: ignore[reportUnknownMemberType] - theirs
    except TimeoutError:
        message = f"{shown}: no answer within {patience_seconds} s"
        raise CounterUnavailable(message) from None
    except (RedisError, OSError) as failure:
        message = f"{shown}: {failure}"
        raise CounterUnavailable(message) from None
    finally:
        await client.aclose()
    return RedisHealth(
        address=shown,
        version=str(told.get("valkey_version", told["redis_version"])),
        eviction_policy=str(told["maxmemory_policy"]),
        memory_bytes_max=int(told["maxmemory"]),
        replicas=int(told["connected_slaves"]),
    )
