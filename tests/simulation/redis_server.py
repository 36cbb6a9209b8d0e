"""Redis as the limiter uses it: buckets and slots, counted by its own clock, and lost at times."""

import asyncio
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.simulation.system import SimulatedSystem
from tests.support.redis_server import command_words
from tollhouse.limits import scripts
from tollhouse.limits.redis_connection import AnswerReader

MICROSECONDS = 1_000_000


@dataclass
class RedisServer:
    """One for all workers. Slots are leases: each ends at an instant, in microseconds."""

    system: SimulatedSystem
    full_at: dict[str, int] = field(default_factory=dict[str, int])
    slots: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    has_lost: bool = False

    def run(self, words: list[str]) -> bytes:
        """Run one command whole, and return the line of its answer."""
        if words[0] == "PING":
            return b"+PONG"
        if words[0] == "SCRIPT":
            digest = hashlib.sha1(words[2].encode(), usedforsecurity=False).hexdigest()
            self.texts[digest] = words[2]
            return digest.encode()
        text = self.texts.get(words[1])
        if text is None:
            return b"-NOSCRIPT unknown"
        count = int(words[2])
        keys, arguments = words[3 : 3 + count], words[3 + count :]
        if text.endswith(scripts.COUNT):
            return self._count(keys, arguments)
        if text.endswith(scripts.LEAVE):
            self._leave(keys, arguments)
        elif text.endswith(scripts.RENEW):
            self._renew(keys[0], arguments)
        return b"+"

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
        buckets, slots, now = int(arguments[0]), int(arguments[1]), self._now()
        sizes, costs, limits, expected = _sizes_and_costs(arguments, buckets, slots)
        lease_ms, member = int(arguments[-2]), arguments[-1]
        missing = [self._missing(key, full) for key, full in zip(keys, sizes, strict=False)]
        waits = [left + cost - full for left, cost, full in zip(missing, costs, sizes, strict=True)]
        longest = max([0, *waits])
        refusing = 1 + waits.index(longest) if longest else 0
        slot_keys = keys[buckets : buckets + slots]
        for place, (key, limit) in enumerate(zip(slot_keys, limits, strict=True), buckets + 1):
            if not refusing and len(self._live(key)) >= limit:
                refusing = place
        if not refusing:
            missing = [left + cost for left, cost in zip(missing, costs, strict=True)]
            for key in slot_keys:
                self.slots.setdefault(key, {})[member] = now + lease_ms * 1_000
            token_keys = keys[buckets + slots :]
            lefts = [
                self._missing(key, full) + cost
                for key, (full, cost) in zip(token_keys, expected, strict=True)
            ]
            if any(2 * left > full for left, (full, _) in zip(lefts, expected, strict=True)):
                token_keys, lefts = [], []
            missing += lefts
            for key, left in zip([*keys[:buckets], *token_keys], missing, strict=True):
                self.full_at[key] = now + left
        return f"+{' '.join(map(str, [refusing, longest, *missing]))}".encode()

    def _leave(self, keys: list[str], arguments: list[str]) -> None:
        buckets, now = int(arguments[0]), self._now()
        for place, key in enumerate(keys[:buckets]):
            more, full = int(arguments[1 + 2 * place]), int(arguments[2 + 2 * place])
            left = self._missing(key, full) + more
            self.full_at[key] = now + min(max(left, 0), full)
        for key in keys[buckets:]:
            self.slots.get(key, {}).pop(arguments[-1], None)

    def _renew(self, key: str, arguments: list[str]) -> None:
        until = self._now() + int(arguments[0]) * 1_000
        members = self.slots.setdefault(key, {})
        members.update(dict.fromkeys(arguments[1].split(), until))
        for ended in arguments[2].split():
            members.pop(ended, None)

    def _missing(self, key: str, full: int) -> int:
        now = self._now()
        return min(max(self.full_at.get(key, now) - now, 0), full)

    def _live(self, key: str) -> list[str]:
        now = self._now()
        return [member for member, until in self.slots.get(key, {}).items() if until > now]

    def _now(self) -> int:
        return int(self.system.loop.time() * MICROSECONDS)


class SimulatedRedisTransport:
    """One worker's connection. Answers arrive in the order of the commands."""

    def __init__(self, server: RedisServer, name: str, reader: AnswerReader) -> None:
        self._server = server
        self._world = server.system
        self._random = server.system.random(f"redis of {name}")
        self._reader = reader
        self._arrives_at = 0.0
        self._is_closed = False

    def write(self, data: bytes) -> None:
        """Send some commands; what is lost may have been run before."""
        loop = asyncio.get_running_loop()
        delay = self._random.choice((0.0002, 0.001, 0.05))
        self._arrives_at = max(self._arrives_at, loop.time() + delay)
        loop.call_at(self._arrives_at, self._run, data)

    def abort(self) -> None:
        """Close it; answers that nobody read are lost."""
        self._is_closed = True

    def _run(self, data: bytes) -> None:
        if self._is_closed:
            return
        is_lost = self._random.random() < self._world.plan.redis_faults
        answers: list[bytes] = []
        if not is_lost or self._random.random() < 0.5:
            answers = [self._server.run(words) for words in _commands(data)]
        if not is_lost:
            self._reader.data_received(b"".join(b"%b\r\n" % answer for answer in answers))
            return
        self._server.has_lost = True
        self._world.note("redis", "is lost")
        if self._random.random() < 0.5:
            self._is_closed = True
            self._reader.connection_lost(ConnectionResetError("lost"))


def _sizes_and_costs(
    arguments: list[str], buckets: int, slots: int
) -> tuple[list[int], list[int], list[int], list[tuple[int, int]]]:
    """Sizes and costs of the buckets, limits of the slots, and both of the expected costs."""
    numbers = [int(each) for each in arguments[2:-2]]
    limits_at, expected_at = 2 * buckets, 2 * buckets + slots
    return (
        numbers[:limits_at:2],
        numbers[1:limits_at:2],
        numbers[limits_at:expected_at],
        list(zip(numbers[expected_at::2], numbers[expected_at + 1 :: 2], strict=True)),
    )


def _commands(packed: bytes) -> Iterator[list[str]]:
    """Read commands, which are arrays of strings."""
    for command in re.split(rb"(?:^|(?<=\r\n))(?=\*\d+\r\n)", packed):
        if command:
            yield command_words(command)
