"""The Redis servers that count traffic, each for its hash slots, and how a worker follows them.

One server has all slots, be it named by the URL or by Sentinels. In a cluster each master has some.
After a failover another server has the slots; it is used as soon as it has the leases of the
requests that run.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from typing import Final

from redis.crc import key_slot
from redis.exceptions import RedisError

from tollhouse.base import redis_url
from tollhouse.base.redis_url import RedisMode, RedisUrl
from tollhouse.base.tasks import Tasks
from tollhouse.limits.redis_connection import HASH_SLOTS, Address, Connect, masters
from tollhouse.limits.shared_counter import RedisState, SharedLimitCounter
from tollhouse.limits.stale_leases import StaleLeases
from tollhouse.limits.types import LimitRequest
from tollhouse.observability import metrics

logger = logging.getLogger("tollhouse.limits")

_REASON_LENGTH_MAX: Final = 200


class RedisServers:
    """The counters of all servers; without a URL there are none. One per worker.

    `by_slot` has the counter of each hash slot, and None until the servers are known. `held` has
    the requests that run, by the key of their slots.
    """

    def __init__(
        self,
        url: str | None,
        tasks: Tasks,
        *,
        held: Mapping[str, set[str]],
        answer_seconds: float,
        lease_ms: int,
        connect: Connect,
    ) -> None:
        self._url = None if url is None else redis_url.parse(url)
        self._tasks = tasks
        self._held = held
        self._stale = StaleLeases(lease_ms / 1000)
        self._counter = partial(
            SharedLimitCounter,
            tasks=tasks,
            answer_seconds=answer_seconds,
            lease_ms=lease_ms,
            connect=connect,
            lost=self._lost,
            moved=self._moved,
        )
        self._servers: dict[Address, SharedLimitCounter] = {}
        self._is_alone = False
        self._has_moved = self._url is not None
        self.by_slot: list[SharedLimitCounter | None] = [None] * HASH_SLOTS
        if self._url is not None and self._url.mode is RedisMode.SINGLE:
            self._has_moved = False
            self._use(self._url, {self._url.hosts[0]: range(HASH_SLOTS)}, RedisState.UP)

    @property
    def needs_attention(self) -> bool:
        """Whether a server is lost, or slots were seen to have moved."""
        return self._has_moved or self._is_alone

    async def renew_leases(self) -> None:
        """Follow a failover, renew the leases of running requests, use lost servers again."""
        if self._url is None:
            return
        if self._url.mode is not RedisMode.SINGLE:
            await self._follow(self._url)
        self._stale.expire(_now_seconds())
        keys: dict[SharedLimitCounter | None, list[str]] = {}
        for key in {*self._held, *self._stale.keys}:
            keys.setdefault(self._counter_of(key), []).append(key)
        await asyncio.gather(
            *(
                counter.renew_leases(self._held, self._stale, keys.get(counter, []))
                for counter in self._servers.values()
            )
        )
        self._observe()

    async def drain(self) -> None:
        """Wait until all servers have answered everything, or are lost."""
        await asyncio.gather(*(each.drain() for each in self._servers.values()))

    async def close(self) -> None:
        """Close all connections, after the servers have answered everything."""
        await asyncio.gather(*(each.close() for each in self._servers.values()))

    def _lost(
        self,
        counter: SharedLimitCounter,
        failure: BaseException,
        unanswered: Sequence[LimitRequest],
    ) -> None:
        """Count the traffic of a server alone from now on.

        It may have entered what is unanswered, and has what runs: all this may end before it is
        used again.
        """
        self._observe(failure)
        now_seconds = _now_seconds()
        self._stale.add_requests(unanswered, now_seconds)
        for key, members in self._held.items():
            if self._counter_of(key) is counter:
                self._stale.add((key,), members, now_seconds)

    def _moved(self, refused: Sequence[LimitRequest]) -> None:
        """Look for the new server of some keys with the next check."""
        self._has_moved = True
        self._stale.add_requests(refused, _now_seconds())

    def _observe(self, failure: BaseException | None = None) -> None:
        """Log and measure when the first server is lost, and when the last is back."""
        is_up = [each.state is RedisState.UP for each in self._servers.values()]
        is_alone = not is_up or not all(is_up)
        if is_alone is self._is_alone:
            return
        self._is_alone = is_alone
        metrics.limits_fallback(is_on=is_alone)
        if is_alone:
            reason = f"{type(failure).__name__}: {failure}"[:_REASON_LENGTH_MAX]
            logger.warning("limits_fallback_began", extra={"reason": reason})
        else:
            logger.warning("limits_fallback_ended")

    async def _follow(self, url: RedisUrl) -> None:
        """Ask which servers count now, and use these."""
        self._has_moved = False
        try:
            found = await masters(url, self._servers)
        except RedisError as failure:
            self._observe(failure)
            return
        dropped = [each for address, each in self._servers.items() if address not in found]
        self._use(url, found, RedisState.DOWN)
        for counter in dropped:
            self._tasks.start("limits-redis-close", counter.close())

    def _use(
        self, url: RedisUrl, found: Mapping[Address, Sequence[int]], initial: RedisState
    ) -> None:
        """Count at these servers from now on. A new one has `initial` as its state."""
        before, self._servers = self._servers, {}
        for address, slots in found.items():
            counter = before.get(address) or self._counter(url.server(*address), state=initial)
            counter.probe_key = _probe_key(frozenset(slots))
            self._servers[address] = counter
            for slot in slots:
                self.by_slot[slot] = counter

    def _counter_of(self, key: str) -> SharedLimitCounter | None:
        return self.by_slot[key_slot(key.encode())]


def _probe_key(slots: frozenset[int]) -> str:
    """Return a key in one of `slots`."""
    keys = (f"tollhouse:probe:{number}" for number in count())
    return next(key for key in keys if key_slot(key.encode()) in slots)


def _now_seconds() -> float:
    return asyncio.get_running_loop().time()
