"""Verdicts that were just given: a retry, or a turn that is sent again, costs no judge.

A score is kept, and the threshold of the policy's version decides anew. Failures are not kept.
"""

from collections import OrderedDict
from dataclasses import dataclass

from tollhouse.base.clock import Clock
from tollhouse.base.ids import PolicyId
from tollhouse.judging.types import Score
from tollhouse.policies.types import DRAFT_VERSION, AppliedPolicy

_Key = tuple[PolicyId, int, bytes, str]


@dataclass(frozen=True, slots=True)
class _Kept:
    score: Score
    until_seconds: float


class VerdictCache:
    """One per worker. The oldest goes first, whether it is full or stale."""

    def __init__(self, clock: Clock, *, verdicts_max: int, age_seconds_max: float) -> None:
        self._clock = clock
        self._verdicts_max = verdicts_max
        self._age_seconds_max = age_seconds_max
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, policy: AppliedPolicy, digest: bytes, judge: str) -> Score | None:
        """What this judge said about this very content and version; never of a draft."""
        kept = self._kept.get(_key(policy, digest, judge))
        if kept is None or kept.until_seconds <= self._clock.monotonic_seconds():
            return None
        return kept.score

    def keep(self, policy: AppliedPolicy, digest: bytes, judge: str, score: Score) -> None:
        """An answer over the whole content. What a draft asks changes under the same number."""
        if policy.version == DRAFT_VERSION:
            return
        now_seconds = self._clock.monotonic_seconds()
        key = _key(policy, digest, judge)
        self._kept.pop(key, None)
        self._kept[key] = _Kept(score, now_seconds + self._age_seconds_max)
        while len(self._kept) > self._verdicts_max or self._oldest_ends_by(now_seconds):
            self._kept.popitem(last=False)

    def _oldest_ends_by(self, now_seconds: float) -> bool:
        return next(iter(self._kept.values())).until_seconds <= now_seconds


def _key(policy: AppliedPolicy, digest: bytes, judge: str) -> _Key:
    return policy.id, policy.version, digest, judge
