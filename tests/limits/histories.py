"""What may happen to limits, one step after the other, and two who live through it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tollhouse.limits import rules, scripts, shared
from tollhouse.limits.rules import MINUTE_US
from tollhouse.limits.types import Ask, Corrections, Decision, Draw, Scope, Slot

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

    def count(self, ask: Ask) -> Decision: ...
    def renew(self, key: str, members: Sequence[str]) -> None: ...
    def leave(self, ask: Ask, corrections: Corrections) -> None: ...


@dataclass
class Model:
    """Counts by the rules."""

    now_us: int = INSTANT_US
    full_at_us: dict[str, int] = field(default_factory=dict[str, int])
    leases: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])

    def count(self, ask: Ask) -> Decision:
        decision = rules.decide(
            ask,
            full_at_us=[self.full_at_us.get(draw.key, self.now_us) for draw in ask.draws],
            taken_slots=[self._living(slot.key) for slot in ask.slots],
            now_us=self.now_us,
        )
        if decision.refused_by is None:
            for draw, missing_us in zip(ask.draws, decision.missing_us, strict=True):
                self.full_at_us[draw.key] = self.now_us + missing_us
            for slot in ask.slots:
                self.renew(slot.key, [ask.member])
        return decision

    def leave(self, ask: Ask, corrections: Corrections) -> None:
        for slot in ask.slots:
            self.leases.get(slot.key, {}).pop(ask.member, None)
        for draw, more_us in corrections:
            full_at_us = self.full_at_us.get(draw.key, self.now_us)
            missing_us = rules.missing_us(draw, full_at_us, self.now_us)
            corrected_us = rules.corrected_us(draw, missing_us, more_us)
            self.full_at_us[draw.key] = self.now_us + corrected_us

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

    def count(self, ask: Ask) -> Decision:
        keys = [counted.key for counted in (*ask.draws, *ask.slots)]
        arguments = shared.count_arguments(ask, LEASE_MS)
        return shared.read_decision(ask, self._run(scripts.COUNT, keys, arguments))

    def renew(self, key: str, members: Sequence[str]) -> None:
        self._run(scripts.RENEW, [key], [LEASE_MS, " ".join(members)])

    def leave(self, ask: Ask, corrections: Corrections) -> None:
        keys = shared.leave_keys(ask, corrections)
        self._run(scripts.LEAVE, keys, shared.leave_arguments(ask, corrections))

    def _run(self, script: str, keys: Sequence[str], arguments: Sequence[str | int]) -> bytes:
        answer = self.client.eval(self.before + script, len(keys), *keys, *arguments)
        assert isinstance(answer, str)
        return answer.encode()


@dataclass(frozen=True)
class Count:
    ask: Ask

    def happen_to(self, side: Side) -> Decision:
        return side.count(self.ask)


@dataclass(frozen=True)
class Renew:
    key: str
    members: tuple[str, ...]

    def happen_to(self, side: Side) -> None:
        side.renew(self.key, self.members)


@dataclass(frozen=True)
class Leave:
    ask: Ask
    corrections: Corrections

    def happen_to(self, side: Side) -> None:
        side.leave(self.ask, self.corrections)


Step = Count | Renew | Leave

NAMES = ("a", "b", "c")
MEMBERS = st.sampled_from("klmnop")
PLACES = st.sampled_from([f"slots:{name}" for name in NAMES])


@st.composite
def asks(draw: DrawFn) -> Ask:
    some = st.lists(st.sampled_from(NAMES), unique=True)
    return Ask(
        draws=(
            *(
                rules.request_draw(
                    Scope.KEY, f"requests:{name}", draw(st.sampled_from([1, 2, 3, 7, 60, 10**7]))
                )
                for name in draw(some)
            ),
            *(draw(token_draws(name)) for name in draw(some)),
        ),
        slots=tuple(
            Slot(scope=Scope.KEY, key=f"slots:{name}", limit=draw(st.integers(1, 3)))
            for name in draw(some)
        ),
        member=draw(MEMBERS),
    )


@st.composite
def token_draws(draw: DrawFn, name: str) -> Draw:
    limit = draw(st.sampled_from([1, 9, 100, 4_000, 10**12]))
    return rules.token_draw(Scope.KEY, f"tokens:{name}", limit, draw(st.integers(0, 10_000)))


@st.composite
def corrections(draw: DrawFn) -> Corrections:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    more_us = st.integers(-MINUTE_US, MINUTE_US)
    return tuple((draw(token_draws(name)), draw(more_us)) for name in names)


steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(Count, asks()),
    st.builds(Count, asks()),
    st.builds(Renew, PLACES, st.lists(MEMBERS, min_size=1, unique=True).map(tuple)),
    st.builds(Leave, asks(), corrections()),
    st.builds(Leave, asks(), corrections()),
)
pauses = st.one_of(st.just(0), st.integers(0, 1000), st.integers(0, 2 * MINUTE_US))
