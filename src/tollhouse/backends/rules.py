"""Which replica a call goes to, when one is left alone, and how often a call may be repeated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol, TypeVar

from tollhouse.backends.errors import BackendError, Repeat

FAILURES_MAX = 5
"""In a row; then the breaker opens."""
PAUSE_SECONDS = 5.0
"""How long an open breaker keeps calls away; then one is let through, and one in each further
pause until one succeeds."""
ATTEMPTS_MAX = 3
LOAD_FACTOR = 1.25
"""How far above the mean load of all replicas affinity may draw one of them."""
RETRY_COST = 5
"""In calls: a fifth of the calls may be repeated, ..."""
RETRIES_SAVED_MAX = 10
"""... and this many more after a quiet time."""
_NUMBER_BYTES = 8
_NUMBER_MASK = 2 ** (8 * _NUMBER_BYTES) - 1


@dataclass(frozen=True, slots=True)
class Breaker:
    """Closed as long as fewer calls failed in a row than `FAILURES_MAX`."""

    failures: int = 0
    closed_from_seconds: float = 0.0

    @property
    def is_open(self) -> bool:
        """Whether only trials are let through."""
        return self.failures >= FAILURES_MAX

    def allows(self, now_seconds: float) -> bool:
        """Whether a call may go there now."""
        return self.failures < FAILURES_MAX or now_seconds >= self.closed_from_seconds

    def after_call_began(self, now_seconds: float) -> "Breaker":
        """A trial keeps others away for a pause, however it ends and whoever abandons it."""
        return Breaker(self.failures, now_seconds + PAUSE_SECONDS) if self.is_open else self

    def after_success(self) -> "Breaker":
        """One success forgives all."""
        return CLOSED

    def after_failure(self, now_seconds: float) -> "Breaker":
        """One more in a row."""
        return Breaker(self.failures + 1, now_seconds + PAUSE_SECONDS)


CLOSED = Breaker()


@dataclass(slots=True)
class RetryBudget:
    """Repetitions stay below a fifth of all calls: an outage must not multiply the load."""

    saved: int = RETRY_COST * RETRIES_SAVED_MAX

    def earn(self) -> None:
        """Once for each call."""
        self.saved = min(self.saved + 1, RETRY_COST * RETRIES_SAVED_MAX)

    def spend(self) -> bool:
        """Whether one more repetition is within the budget, which is then smaller."""
        if self.saved < RETRY_COST:
            return False
        self.saved -= RETRY_COST
        return True


class Loaded(Protocol):
    """What choosing looks at. `number` is odd and follows from the replica's address alone."""

    in_flight: int

    @property
    def number(self) -> int:
        """See `replica_number`."""
        ...


L = TypeVar("L", bound=Loaded)


def replica_number(url: str) -> int:
    """The same on every worker, and whatever the order of the replicas."""
    return _number(url.encode()) | 1


def choose(
    candidates: Sequence[L], affinity: bytes | None, *, draw: Callable[[Sequence[L]], L]
) -> L:
    """One of at least one. `draw` decides between equals.

    With affinity: rendezvous hashing among those that are not loaded above their share, so that
    keys move only when their replica goes, is full, or a better one for them comes.
    """
    if affinity is None:
        least = min(candidate.in_flight for candidate in candidates)
        return draw([candidate for candidate in candidates if candidate.in_flight == least])
    key = _number(affinity)
    load_max = LOAD_FACTOR * sum(c.in_flight for c in candidates) / len(candidates)
    return max(
        (candidate for candidate in candidates if candidate.in_flight <= load_max),
        key=lambda candidate: key * candidate.number & _NUMBER_MASK,
    )


def may_repeat(failure: BackendError, *, attempts: int, bills_without_answer: bool) -> bool:
    """Whether sending the same call again may help and cannot be billed twice."""
    if attempts >= ATTEMPTS_MAX or failure.repeat is Repeat.NEVER:
        return False
    return not (bills_without_answer and failure.was_sent)


def _number(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=_NUMBER_BYTES).digest())
