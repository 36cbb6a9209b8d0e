"""What may happen to limits, one step after the other, and two who live through it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.limits.gates import token_cost
from tests.support.redis_server import command_words
from tollhouse.limits import commands, counter, rules, scripts
from tollhouse.limits.rules import MINUTE_US
from tollhouse.limits.types import (
    BucketCost,
    ConcurrencySlot,
    Corrections,
    LimitDecision,
    LimitRequest,
    LimitScope,
)

INSTANT_US = 1_800_000_000_000_000
LEASE_MS = 30_000
LEASE_US = LEASE_MS * 1000

HELD_CLOCK = """
local now = tonumber(redis.call('GET', 'clock'))
local server = redis
-- What expires goes by the true clock, which this one leaves behind.
local redis = {call = function(name, ...)
    if name == 'PEXPIRE' then
        return 1
    end
    if name == 'SET' then
        local key, value = ...
        return server.call('SET', key, value)
    end
    return server.call(name, ...)
end}
"""


class Side(Protocol):
    """Somebody who counts."""

    def count(self, ask: LimitRequest) -> LimitDecision: ...
    def renew(self, key: str, members: Sequence[str]) -> None: ...
    def leave(self, ask: LimitRequest, corrections: Corrections) -> None: ...


@dataclass
class Model:
    """Counts by the rules."""

    now_us: int = INSTANT_US
    full_at_us: dict[str, int] = field(default_factory=dict[str, int])
    leases: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])

    def count(self, ask: LimitRequest) -> LimitDecision:
        decision = rules.decide(
            ask,
            full_at_us=[self.full_at_us.get(cost.key, self.now_us) for cost in ask.costs],
            taken_slots=[self._living(slot.key) for slot in ask.slots],
            expected_full_at_us=[
                self.full_at_us.get(cost.key, self.now_us) for cost in ask.expected
            ],
            now_us=self.now_us,
        )
        if decision.refused_by is None:
            for cost, missing_us in zip(ask.costs, decision.missing_us, strict=True):
                self.full_at_us[cost.key] = self.now_us + missing_us
            if decision.expected_missing_us is not None:
                for cost, left_us in zip(ask.expected, decision.expected_missing_us, strict=True):
                    self.full_at_us[cost.key] = self.now_us + left_us
            for slot in ask.slots:
                self.renew(slot.key, [ask.member])
        return decision

    def leave(self, ask: LimitRequest, corrections: Corrections) -> None:
        for slot in ask.slots:
            self.leases.get(slot.key, {}).pop(ask.member, None)
        for cost, more_us in corrections:
            full_at_us = self.full_at_us.get(cost.key, self.now_us)
            missing_us = rules.missing_us(cost, full_at_us, self.now_us)
            corrected_us = rules.corrected_us(cost, missing_us, more_us)
            self.full_at_us[cost.key] = self.now_us + corrected_us

    def renew(self, key: str, members: Sequence[str]) -> None:
        for member in members:
            self.leases.setdefault(key, {})[member] = self.now_us + LEASE_US

    def _living(self, key: str) -> int:
        return sum(expires_us > self.now_us for expires_us in self.leases.get(key, {}).values())


@dataclass
class Scripts:
    """Counts in Redis, by a clock that the test holds."""

    client: Any
    before: str = HELD_CLOCK

    def move_to(self, now_us: int) -> None:
        self.client.set("clock", now_us)

    def count(self, ask: LimitRequest) -> LimitDecision:
        template = commands.count_template(ask.costs, ask.slots, ask.expected, LEASE_MS)
        answer = self._run(scripts.COUNT, commands.count_command(template, ask))
        return counter.read_decision(ask, answer)

    def renew(self, key: str, members: Sequence[str]) -> None:
        command = commands.encoded(commands.RENEW, [key], [LEASE_MS, " ".join(members), ""])
        self._run(scripts.RENEW, command)

    def leave(self, ask: LimitRequest, corrections: Corrections) -> None:
        template = commands.leave_template([cost for cost, _ in corrections], ask.slots)
        self._run(scripts.LEAVE, commands.leave_command(template, corrections, ask.member))

    def _run(self, script: str, command: str) -> bytes:
        """Run the same words with the text of the script instead of its digest."""
        name, _, *words = command_words(command.encode())
        assert name == "EVALSHA"
        answer = self.client.eval(self.before + script, *words)
        assert isinstance(answer, str)
        return f"+{answer}".encode()


@dataclass(frozen=True)
class Count:
    ask: LimitRequest

    def happen_to(self, side: Side) -> LimitDecision:
        return side.count(self.ask)


@dataclass(frozen=True)
class Renew:
    key: str
    members: tuple[str, ...]

    def happen_to(self, side: Side) -> None:
        side.renew(self.key, self.members)


@dataclass(frozen=True)
class Leave:
    ask: LimitRequest
    corrections: Corrections

    def happen_to(self, side: Side) -> None:
        side.leave(self.ask, self.corrections)


Step = Count | Renew | Leave

NAMES = ("a", "b", "c")
MEMBERS = st.sampled_from([letter * commands.MEMBER_WIDTH for letter in "klmnop"])
PLACES = st.sampled_from([f"slots:{name}" for name in NAMES])


@st.composite
def asks(cost: DrawFn) -> LimitRequest:
    some = st.lists(st.sampled_from(NAMES), unique=True)
    token_names = cost(st.permutations(NAMES))
    taken, expected = sorted((cost(st.integers(0, 3)), cost(st.integers(0, 3))))
    return LimitRequest(
        costs=(
            *(
                rules.request_cost(
                    LimitScope.KEY,
                    f"requests:{name}",
                    cost(st.sampled_from([1, 2, 3, 7, 60, 10**7])),
                )
                for name in cost(some)
            ),
            *(cost(token_draws(name)) for name in token_names[:taken]),
        ),
        slots=tuple(
            ConcurrencySlot(
                scope=LimitScope.KEY, key=f"slots:{name}", limit=cost(st.integers(1, 3))
            )
            for name in cost(some)
        ),
        expected=tuple(cost(token_draws(name)) for name in token_names[taken:expected]),
        member=cost(MEMBERS),
    )


@st.composite
def token_draws(cost: DrawFn, name: str) -> BucketCost:
    limit = cost(st.sampled_from([1, 9, 100, 4_000, 10**12]))
    return token_cost(LimitScope.KEY, f"tokens:{name}", limit, cost(st.integers(0, 10_000)))


@st.composite
def corrections(cost: DrawFn) -> Corrections:
    names = cost(st.lists(st.sampled_from(NAMES), unique=True))
    more_us = st.integers(-MINUTE_US, MINUTE_US)
    return tuple((cost(token_draws(name)), cost(more_us)) for name in names)


steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(Count, asks()),
    st.builds(Count, asks()),
    st.builds(Renew, PLACES, st.lists(MEMBERS, min_size=1, unique=True).map(tuple)),
    st.builds(Leave, asks(), corrections()),
    st.builds(Leave, asks(), corrections()),
)
pauses = st.one_of(st.just(0), st.integers(0, 1000), st.integers(0, 2 * MINUTE_US))
