"""Asks Sentinels or cluster nodes which Redis servers count."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from tollhouse.base.redis_url import RedisMode, RedisUrl
from tollhouse.limits import redis_topology
from tollhouse.limits.redis_connection import prepare
from tollhouse.limits.redis_topology import Address, SlotRange

DISCOVERY_SECONDS: Final = 1.0
"""How long one Sentinel or node is waited for; all are asked at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RedisSurvey:
    """What the Sentinels or nodes have answered, and why others did not."""

    masters: Mapping[Address, Sequence[int]]
    failures: Sequence[str]


async def servers(url: RedisUrl, known: Iterable[Address] = ()) -> Mapping[Address, Sequence[int]]:
    """Return the address of each master, with its hash slots. Raises RedisError if none answers."""
    return (await survey(url, known)).masters


async def survey(url: RedisUrl, known: Iterable[Address] = ()) -> RedisSurvey:
    """Ask all, because one that is cut off still names a master of the past.

    `known` are nodes of a cluster to ask beside those of the URL. Raises RedisError if none
    answers.
    """
    if url.mode is RedisMode.SINGLE:
        return RedisSurvey(masters={url.hosts[0]: range(redis_topology.HASH_SLOTS)}, failures=())
    asked = dict(zip(url.hosts, url.members, strict=True))
    if url.mode is RedisMode.CLUSTER:
        asked.update({address: url.server(*address) for address in known})
    answers = await asyncio.gather(*(_claims(url, *each) for each in asked.items()))
    claims = [claim for answer in answers if isinstance(answer, list) for claim in answer]
    failures = [answer for answer in answers if isinstance(answer, str)]
    if not claims:
        raise RedisConnectionError("; ".join(failures) or "no node has a hash slot")
    return RedisSurvey(masters=redis_topology.owners(claims), failures=failures)


async def _claims(url: RedisUrl, address: Address, member: str) -> list[SlotRange] | str:
    """Return what one Sentinel or node knows, or why it does not answer."""
    try:
        if url.mode is RedisMode.SENTINEL:
            answer = await ask(member, "SENTINEL", "MASTER", url.service)
            return [redis_topology.read_sentinel(answer)]
        answer = await ask(member, "CLUSTER", "NODES")
        return redis_topology.read_nodes(answer, address, by_name=url.is_encrypted)
    except TimeoutError:
        return f"{address[0]}:{address[1]}: no answer within {DISCOVERY_SECONDS:g} s"
    except (RedisError, OSError) as failure:
        return f"{address[0]}:{address[1]}: {failure}"


async def ask(url: str, *words: str, seconds: float = DISCOVERY_SECONDS) -> Any:  # noqa: ANN401 - an answer of any type
    """Run one command on a connection of its own; return the answer as Redis sent it."""
    client = Redis.from_url(  # pyright: ignore[reportUnknownMemberType] - theirs
        url, protocol=2, retry=Retry(NoBackoff(), 0), redis_connect_func=prepare
    )
    try:
        async with asyncio.timeout(seconds):
            return cast("Any", await client.execute_command(*words))  # pyright: ignore[reportUnknownMemberType] - theirs
    finally:
        await client.aclose()
