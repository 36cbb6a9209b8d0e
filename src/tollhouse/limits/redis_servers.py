"""The Redis servers that count traffic, each for its hash slots, and how a worker follows them.

One server has all slots, be it named by the URL or by Sentinels. In a cluster each master has some.
After a failover another server has the slots; it is used as soon as it has the leases of the
requests that run.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

from redis.exceptions import RedisError

from tollhouse.base import redis_url
from tollhouse.base.redis_url import RedisMode
from tollhouse.base.tasks import Tasks
from tollhouse.limits import redis_discovery, redis_topology
from tollhouse.limits.redis_connection import Connect
from tollhouse.limits.redis_topology import HASH_SLOTS, Address
from tollhouse.limits.shared_counter import RedisState, SharedLimitCounter
from tollhouse.limits.stale_leases import StaleLeases
from tollhouse.limits.types import LimitRequest
from tollhouse.observability import metrics

logger = logging.getLogger("tollhouse.limits")

_REASON_LENGTH_MAX: Final = 200
_DISCOVERY: Final = "discovery"


class LimitsFallback:
    """The lost servers. Logs and measures when the first is lost, and when the last is back."""

    def __init__(self) -> None:
        self._lost: set[object] = set()

    @property
    def is_on(self) -> bool:
        """Whether the worker counts at least some traffic alone."""
        return bool(self._lost)

    def begin(self, lost: object, failure: BaseException) -> None:
        """Count the traffic of `lost` alone from now on."""
        if not self._lost:
            metrics.limits_fallback(is_on=True)
            reason = f"{type(failure).__name__}: {failure}"[:_REASON_LENGTH_MAX]
            logger.warning("limits_fallback_began", extra={"reason": reason})
        self._lost.add(lost)

    def end(self, lost: object) -> None:
        """Note that `lost` is back, or is not needed any more."""
        if lost in self._lost:
            self._lost.discard(lost)
            if not self._lost:
                metrics.limits_fallback(is_on=False)
                logger.warning("limits_fallback_ended")


class RedisServers:
    """The counters of all servers. One per worker.

    `by_slot` has the counter of each hash slot, and None where no server is known. `held` has the
    requests that run, by the key of their slots.
    """

    def __init__(
        self,
        url: str,
        tasks: Tasks,
        *,
        held: Mapping[str, set[str]],
        answer_seconds: float,
        lease_ms: int,
        connect: Connect,
    ) -> None:
        self._url = redis_url.parse(url)
        self._tasks = tasks
        self._answer_seconds = answer_seconds
        self._lease_ms = lease_ms
        self._connect = connect
        self._held = held
        self._stale = StaleLeases(lease_ms / 1000)
        self._fallback = LimitsFallback()
        self._servers: dict[Address, SharedLimitCounter] = {}
        self._has_moved = False
        self.by_slot: list[SharedLimitCounter | None] = [None] * HASH_SLOTS
        if self._url.mode is RedisMode.SINGLE:
            self._use({self._url.hosts[0]: range(HASH_SLOTS)}, RedisState.UP)

    @property
    def needs_attention(self) -> bool:
        """Whether a server is lost, or slots were seen to have moved."""
        return self._has_moved or self._fallback.is_on

    async def renew_leases(self) -> None:
        """Follow a failover, renew the leases of running requests, use lost servers again."""
        dropped = await self._follow() if self._url.mode is not RedisMode.SINGLE else []
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
        for counter in dropped:
            self._fallback.end(counter)

    def lost(
        self,
        counter: SharedLimitCounter,
        failure: BaseException,
        unanswered: Sequence[LimitRequest],
    ) -> None:
        """Count the traffic of a server alone from now on.

        It may have entered what is unanswered, and has what runs: all this may end before it is
        used again.
        """
        self._fallback.begin(counter, failure)
        now_seconds = _now_seconds()
        self._stale.add_requests(unanswered, now_seconds)
        for key, members in self._held.items():
            if self._counter_of(key) is counter:
                self._stale.add((key,), members, now_seconds)

    def moved(self, refused: Sequence[LimitRequest]) -> None:
        """Look for the new server of some keys with the next check."""
        self._has_moved = True
        self._stale.add_requests(refused, _now_seconds())

    def returned(self, counter: SharedLimitCounter) -> None:
        """Count the traffic of a server there again."""
        self._fallback.end(counter)

    async def drain(self) -> None:
        """Wait until all servers have answered everything, or are lost."""
        await asyncio.gather(*(each.drain() for each in self._servers.values()))

    async def close(self) -> None:
        """Close all connections, after the servers have answered everything."""
        await asyncio.gather(*(each.close() for each in self._servers.values()))

    async def _follow(self) -> list[SharedLimitCounter]:
        """Ask who counts now; return the counters of servers that do not any more."""
        self._has_moved = False
        try:
            found = await redis_discovery.servers(self._url, list(self._servers))
        except RedisError as failure:
            self._fallback.begin(_DISCOVERY, failure)
            return []
        missing = HASH_SLOTS - sum(map(len, found.values()))
        if missing:
            message = f"{missing} of {HASH_SLOTS} hash slots have no master"
            self._fallback.begin(_DISCOVERY, RedisError(message))
        else:
            self._fallback.end(_DISCOVERY)
        dropped = [each for address, each in self._servers.items() if address not in found]
        self._use(found, RedisState.DOWN)
        for counter in dropped:
            self._tasks.start("limits-redis-close", counter.close())
        return dropped

    def _use(self, found: Mapping[Address, Sequence[int]], initial: RedisState) -> None:
        """Count at these servers from now on. A new one has `initial` as its state."""
        before, self._servers = self._servers, {}
        by_slot: list[SharedLimitCounter | None] = [None] * HASH_SLOTS
        for address, slots in found.items():
            counter = before.get(address) or self._counter(address, initial)
            counter.probe_key = redis_topology.probe_key(slots)
            self._servers[address] = counter
            for slot in slots:
                by_slot[slot] = counter
        self.by_slot = by_slot

    def _counter(self, address: Address, initial: RedisState) -> SharedLimitCounter:
        return SharedLimitCounter(
            self._url.server(*address),
            self._tasks,
            answer_seconds=self._answer_seconds,
            lease_ms=self._lease_ms,
            connect=self._connect,
            observer=self,
            state=initial,
        )

    def _counter_of(self, key: str) -> SharedLimitCounter | None:
        return self.by_slot[redis_topology.hash_slot(key)]


def _now_seconds() -> float:
    return asyncio.get_running_loop().time()
