"""Counting in this process alone: where there is no Redis, and while it is lost."""

from collections.abc import Mapping
from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.limits import rules
from tollhouse.limits.types import Ask, Corrections, Decision, Draw

BUCKETS_MAX: Final = 100_000
"""The ones drawn from longest ago are forgotten first, which is to say full."""


class LocalCounting:
    """One per worker. Knows the slots of all its requests, whoever has granted them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._full_at_us: dict[str, int] = {}
        self._held: dict[str, set[str]] = {}

    @property
    def held(self) -> Mapping[str, set[str]]:
        """The requests of this process in each place of slots."""
        return self._held

    def count(self, ask: Ask) -> Decision:
        """Grant all that is asked for, or nothing."""
        now_us = self._now_us()
        decision = rules.decide(
            ask,
            full_at_us=[self._full_at_us.get(draw.key, now_us) for draw in ask.draws],
            taken_slots=[len(self._held.get(slot.key, ())) for slot in ask.slots],
            now_us=now_us,
        )
        if decision.refused_by is None:
            for draw, missing_us in zip(ask.draws, decision.missing_us, strict=True):
                self._fill_later(draw, missing_us, now_us)
        return decision

    def correct(self, corrections: Corrections) -> None:
        """Take more from buckets, or give back."""
        now_us = self._now_us()
        for draw, more_us in corrections:
            full_at_us = self._full_at_us.get(draw.key, now_us)
            missing_us = rules.missing_us(draw, full_at_us, now_us)
            self._fill_later(draw, rules.corrected_us(draw, missing_us, more_us), now_us)

    def hold(self, ask: Ask) -> None:
        """Remember granted slots until they are left."""
        for slot in ask.slots:
            self._held.setdefault(slot.key, set()).add(ask.member)

    def leave(self, ask: Ask) -> None:
        """Give the slots back."""
        for slot in ask.slots:
            members = self._held[slot.key]
            members.discard(ask.member)
            if not members:
                del self._held[slot.key]

    def _fill_later(self, draw: Draw, missing_us: int, now_us: int) -> None:
        self._full_at_us.pop(draw.key, None)
        if missing_us:
            self._full_at_us[draw.key] = now_us + missing_us
        if len(self._full_at_us) > BUCKETS_MAX:
            del self._full_at_us[next(iter(self._full_at_us))]

    def _now_us(self) -> int:
        return int(self._clock.monotonic_seconds() * rules.SECOND_US)
