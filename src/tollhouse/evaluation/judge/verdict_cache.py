"""The verdict cache: a content that is sent again soon is not judged again.

It caches scores, to which the threshold of the policy's version is applied anew. It caches no
failures.
"""

from collections import OrderedDict
from dataclasses import dataclass

from tollhouse.base.clock import Clock
from tollhouse.base.ids import PolicyId
from tollhouse.evaluation.types import Score
from tollhouse.policies.types import DRAFT_VERSION, AppliedPolicy

_Key = tuple[PolicyId, int, bytes, str]


@dataclass(frozen=True, slots=True)
class _CachedScore:
    score: Score
    until_seconds: float


class VerdictCache:
    """Caches scores for a time, and drops the oldest ones if it is full."""

    def __init__(self, clock: Clock, *, verdicts_max: int, age_seconds_max: float) -> None:
        self._clock = clock
        self._verdicts_max = verdicts_max
        self._age_seconds_max = age_seconds_max
        self._scores: OrderedDict[_Key, _CachedScore] = OrderedDict()

    def __len__(self) -> int:
        return len(self._scores)

    def find(self, policy: AppliedPolicy, digest: bytes, judge: str) -> Score | None:
        """Return the score of this content by this policy version and judge, or None."""
        cached = self._scores.get(_key(policy, digest, judge))
        if cached is None or cached.until_seconds <= self._clock.monotonic_seconds():
            return None
        return cached.score

    def keep(self, policy: AppliedPolicy, digest: bytes, judge: str, score: Score) -> None:
        """Cache a score over all windows, except of a draft, whose rule can change."""
        if policy.version == DRAFT_VERSION:
            return
        now_seconds = self._clock.monotonic_seconds()
        key = _key(policy, digest, judge)
        self._scores.pop(key, None)
        self._scores[key] = _CachedScore(score, now_seconds + self._age_seconds_max)
        while len(self._scores) > self._verdicts_max or self._oldest_ends_by(now_seconds):
            self._scores.popitem(last=False)

    def _oldest_ends_by(self, now_seconds: float) -> bool:
        return next(iter(self._scores.values())).until_seconds <= now_seconds


def _key(policy: AppliedPolicy, digest: bytes, judge: str) -> _Key:
    return policy.id, policy.version, digest, judge
