"""Redis as the limiter uses it: buckets and slots, counted by its own clock, and lost at times."""

import asyncio
import hashlib
from collections import deque
from dataclasses import dataclass, field

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError

from tests.simulation.system import SimulatedSystem
from tollhouse.limits import scripts

MICROSECONDS = 1_000_000
HANGING_SECONDS = 5.0
"""Longer than the limiter waits for an answer."""


@dataclass
class RedisServer:
    """One for all workers. Slots are leases: each ends at an instant, in microseconds."""

    system: SimulatedSystem
    full_at: dict[str, int] = field(default_factory=dict[str, int])
    slots: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    has_lost: bool = False

    def run(self, words: list[str]) -> bytes | NoScriptError:
        """Run one command whole."""
        if words[0] == "SCRIPT":
            digest = hashlib.sha1(words[2].encode(), usedforsecurity=False).hexdigest()
            self.texts[digest] = words[2]
            return digest.encode()
        text = self.texts.get(words[1])
        if text is None:
            return NoScriptError("unknown")
        count = int(words[2])
        keys, arguments = words[3 : 3 + count], words[3 + count :]
        if text.endswith(scripts.COUNT):
            return self._count(keys, arguments)
        if text.endswith(scripts.LEAVE):
            return self._leave(keys, arguments)
        if text.endswith(scripts.RENEW):
            return self._renew(keys[0], arguments)
        return b""

    def taken(self) -> list[str]:
        """The requests whose leases run."""
        now = self._now()
        return [
            member
            for members in self.slots.values()
            for member, until in members.items()
            if until > now
        ]

    def _count(self, keys: list[str], arguments: list[str]) -> bytes:
        buckets, now = int(arguments[0]), self._now()
        costs = [int(each) for each in arguments[1 : 1 + 2 * buckets : 2]]
        fulls = [int(each) for each in arguments[2 : 2 + 2 * buckets : 2]]
        limits = [int(each) for each in arguments[1 + 2 * buckets : -2]]
        lease_ms, member = int(arguments[-2]), arguments[-1]
        missing = [self._missing(key, full) for key, full in zip(keys, fulls, strict=False)]
        waits = [left + cost - full for left, cost, full in zip(missing, costs, fulls, strict=True)]
        longest = max([0, *waits])
        refusing = 1 + waits.index(longest) if longest else 0
        for place, (key, limit) in enumerate(zip(keys[buckets:], limits, strict=True), buckets + 1):
            if not refusing and len(self._live(key)) >= limit:
                refusing = place
        if not refusing:
            missing = [left + cost for left, cost in zip(missing, costs, strict=True)]
            for key, left in zip(keys, missing, strict=False):
                self.full_at[key] = now + left
            for key in keys[buckets:]:
                self.slots.setdefault(key, {})[member] = now + lease_ms * 1_000
        return " ".join(map(str, [refusing, longest, *missing])).encode()

    def _leave(self, keys: list[str], arguments: list[str]) -> bytes:
        buckets, now = int(arguments[0]), self._now()
        for place, key in enumerate(keys[:buckets]):
            more, full = int(arguments[1 + 2 * place]), int(arguments[2 + 2 * place])
            left = self._missing(key, full) + more
            self.full_at[key] = now + min(max(left, 0), full)
        for key in keys[buckets:]:
            self.slots.get(key, {}).pop(arguments[-1], None)
        return b""

    def _renew(self, key: str, arguments: list[str]) -> bytes:
        until = self._now() + int(arguments[0]) * 1_000
        self.slots.setdefault(key, {}).update(dict.fromkeys(arguments[1].split(), until))
        return b""

    def _missing(self, key: str, full: int) -> int:
        now = self._now()
        return min(max(self.full_at.get(key, now) - now, 0), full)

    def _live(self, key: str) -> list[str]:
        now = self._now()
        return [member for member, until in self.slots.get(key, {}).items() if until > now]

    def _now(self) -> int:
        return int(self.system.loop.time() * MICROSECONDS)


class SimulatedRedisConnection:
    """One worker's connection."""

    def __init__(self, server: RedisServer, name: str) -> None:
        self._server = server
        self._world = server.system
        self._random = server.system.random(f"redis of {name}")
        self._answers: deque[bytes | NoScriptError] = deque()
        self.is_connected = False

    async def connect(self) -> None:
        """Open the connection."""
        await asyncio.sleep(0.0005)
        self.is_connected = True

    async def disconnect(self, nowait: bool = False) -> None:  # noqa: FBT002 - the library's
        """Close it; answers that nobody read are lost."""
        self.is_connected = False
        self._answers.clear()

    async def can_read(self) -> bool:
        """Whether the server has hung up."""
        return False

    async def send_packed_command(self, command: list[bytes]) -> None:
        """Send some commands; what is lost may have been run before."""
        await asyncio.sleep(self._random.choice((0.0002, 0.001, 0.05)))
        is_lost = self._random.random() < self._world.plan.redis_faults
        if not is_lost or self._random.random() < 0.5:
            self._answers += [self._server.run(_words(each)) for each in command]
        if is_lost:
            self._server.has_lost = True
            self._world.note("redis", "is lost")
            if self._random.random() < 0.5:
                await asyncio.sleep(HANGING_SECONDS)
            message = "lost"
            raise RedisConnectionError(message)

    async def read_response(self) -> bytes:
        """The next answer, in the order of the commands."""
        await asyncio.sleep(0)
        answer = self._answers.popleft()
        if isinstance(answer, NoScriptError):
            raise answer
        return answer


def _words(packed: bytes) -> list[str]:
    """Read an array of strings, by their lengths."""
    words: list[str] = []
    at = packed.index(b"\r\n") + 2
    while at < len(packed):
        end = packed.index(b"\r\n", at)
        start, length = end + 2, int(packed[at + 1 : end])
        words.append(packed[start : start + length].decode())
        at = start + length + 2
    return words
