"""The health of Redis: which servers count, and whether each answers and may evict keys."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis.exceptions import RedisError

from tollhouse.base import redis_url
from tollhouse.base.redis_url import RedisMode
from tollhouse.limits.errors import CounterUnavailable
from tollhouse.limits.redis_connection import (
    Address,
    ask,
    masters,
)


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
    """All masters, and the Sentinels or nodes that do not answer."""

    mode: RedisMode
    masters: Sequence[RedisHealth]
    members: int
    failures: Sequence[str]


async def examine_group(url: str, *, patience_seconds: float) -> RedisGroupHealth:
    """Query all servers once; raise `CounterUnavailable` with the reason if a master is silent."""
    parsed = redis_url.parse(url)
    try:
        found = await masters(parsed)
    except RedisError as failure:
        raise CounterUnavailable(str(failure)) from None
    members = dict(zip(parsed.hosts, parsed.members, strict=True))
    if parsed.mode is RedisMode.CLUSTER:
        members |= {address: parsed.server(*address) for address in found}
    told = await asyncio.gather(
        *(ask(each, parsed.server(*each), "INFO", seconds=patience_seconds) for each in found)
    )
    for answer in told:
        if isinstance(answer, str):
            raise CounterUnavailable(answer)
    pinged = await asyncio.gather(
        *(ask(address, member, "INFO") for address, member in members.items())
    )
    return RedisGroupHealth(
        mode=parsed.mode,
        masters=[
            _health(address, answer)
            for address, answer in zip(found, told, strict=True)
            if not isinstance(answer, str)
        ],
        members=len(members),
        failures=[answer for answer in pinged if isinstance(answer, str)],
    )


def _health(address: Address, told: Mapping[str, Any]) -> RedisHealth:
    return RedisHealth(
        address=f"{address[0]}:{address[1]}",
        version=str(told.get("valkey_version", told["redis_version"])),
        eviction_policy=str(told["maxmemory_policy"]),
        memory_bytes_max=int(told["maxmemory"]),
        replicas=int(told["connected_slaves"]),
    )
