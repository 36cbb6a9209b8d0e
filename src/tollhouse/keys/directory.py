"""Finding keys at the door: believed for a moment, asked for once, looked up in batches.

An answer, found or not, is believed for 800 ms counted from before the query. So a
revocation holds on every worker within a second, without any message between them.

Keys that were found before are looked up before all others, and keys that do not exist are
remembered apart from them: a flood of unknown keys neither delays nor displaces a known one.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks
from tollhouse.keys import store
from tollhouse.keys.errors import TooManyLookups
from tollhouse.keys.secrets import Peppers, is_well_formed
from tollhouse.keys.types import KnownKey
from tollhouse.observability import metrics
from tollhouse.observability.metrics import LookupOutcome
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable

BELIEVED_SECONDS = 0.8
BATCH_KEYS_MAX = 256
NEW_KEYS_MIN = 64
"""Of each batch, kept for keys that this worker has not found before."""
WAITING_NEW_KEYS_MAX = 4_096
MISSING_KEYS_MAX = 10_000
"""Keys that do not exist and are remembered as such."""


@dataclass(frozen=True, slots=True)
class _Belief:
    known: KnownKey | None
    asked_at_seconds: float


@dataclass(frozen=True, slots=True)
class _Question:
    digests: Sequence[bytes]
    answer: "asyncio.Future[KnownKey | None]"


class KeyDirectory:
    """One per worker."""

    def __init__(
        self,
        database: Database,
        peppers: Peppers,
        clock: Clock,
        tasks: Tasks,
        *,
        believed_keys_max: int,
    ) -> None:
        self._database = database
        self._peppers = peppers
        self._clock = clock
        self._tasks = tasks
        self._believed_keys_max = believed_keys_max
        self._found: dict[bytes, _Belief] = {}
        self._missing: dict[bytes, _Belief] = {}
        self._renewals: dict[bytes, _Question] = {}
        self._new: dict[bytes, _Question] = {}
        self._in_flight: dict[bytes, _Question] = {}
        self._asked_at_seconds = 0.0
        self._is_asking = False

    async def find(self, value: str) -> KnownKey | None:
        """What is known of this secret. Garbage is unknown without a query.

        Raises `TooManyLookups` if too many other keys that were never found wait already.
        """
        name = self._peppers.digest(value, self._peppers.versions[0])
        belief = self._found.get(name) or self._missing.get(name)
        if belief is not None and self._is_fresh(belief):
            metrics.key_looked_up(LookupOutcome.BELIEVED)
            return belief.known
        if not is_well_formed(value):
            return None
        return await asyncio.shield(self._ask(name, value))

    def _is_fresh(self, belief: _Belief) -> bool:
        age_seconds = self._clock.monotonic_seconds() - belief.asked_at_seconds
        return age_seconds < BELIEVED_SECONDS

    def _ask(self, name: bytes, value: str) -> "asyncio.Future[KnownKey | None]":
        """Join the question that is already waiting or under way, or put a new one."""
        question = self._renewals.get(name) or self._new.get(name) or self._under_way(name)
        if question is None:
            if name not in self._found and len(self._new) >= WAITING_NEW_KEYS_MAX:
                raise TooManyLookups
            answer: asyncio.Future[KnownKey | None] = asyncio.get_running_loop().create_future()
            question = _Question(digests=self._peppers.digests(value), answer=answer)
            waiting = self._renewals if name in self._found else self._new
            waiting[name] = question
            if not self._is_asking:
                self._is_asking = True
                self._tasks.start("key-lookup", self._ask_all())
        return question.answer

    def _under_way(self, name: bytes) -> _Question | None:
        """A query that began too long ago may have seen the key before it was revoked."""
        age_seconds = self._clock.monotonic_seconds() - self._asked_at_seconds
        return self._in_flight.get(name) if age_seconds < BELIEVED_SECONDS else None

    async def _ask_all(self) -> None:
        """While one batch is under way the next one gathers; ends when nobody waits."""
        try:
            while self._renewals or self._new:
                self._in_flight = self._take_batch()
                self._asked_at_seconds = self._clock.monotonic_seconds()
                await self._ask_batch(self._in_flight, self._asked_at_seconds)
        finally:
            _fail(self._in_flight | self._renewals | self._new, DatabaseUnavailable())
            self._in_flight, self._renewals, self._new = {}, {}, {}
            self._is_asking = False

    def _take_batch(self) -> dict[bytes, _Question]:
        kept_for_new = min(len(self._new), NEW_KEYS_MIN)
        batch = _take(self._renewals, BATCH_KEYS_MAX - kept_for_new)
        return batch | _take(self._new, BATCH_KEYS_MAX - len(batch))

    async def _ask_batch(self, batch: dict[bytes, _Question], asked_at_seconds: float) -> None:
        digests = [digest for question in batch.values() for digest in question.digests]
        metrics.key_lookup_batch_sent(len(batch))
        try:
            found = await store.find_by_digests(self._database, digests)
        except DatabaseUnavailable as failure:
            for _ in batch:
                metrics.key_looked_up(LookupOutcome.FAILED)
            _fail(batch, failure)
            return
        for name, question in batch.items():
            known = next((found[d] for d in question.digests if d in found), None)
            metrics.key_looked_up(LookupOutcome.FOUND if known else LookupOutcome.UNKNOWN)
            self._believe(name, _Belief(known, asked_at_seconds))
            if not question.answer.done():
                question.answer.set_result(known)

    def _believe(self, name: bytes, belief: _Belief) -> None:
        self._found.pop(name, None)
        self._missing.pop(name, None)
        if belief.known is None:
            held, held_max = self._missing, min(MISSING_KEYS_MAX, self._believed_keys_max)
        else:
            held, held_max = self._found, self._believed_keys_max
        held[name] = belief
        if len(held) > held_max:
            del held[next(iter(held))]


def _take(waiting: dict[bytes, _Question], count: int) -> dict[bytes, _Question]:
    """Remove so many of the questions that wait longest."""
    names = list(islice(waiting, count))
    return {name: waiting.pop(name) for name in names}


def _fail(batch: dict[bytes, _Question], failure: DatabaseUnavailable) -> None:
    """Answer whoever still waits."""
    for question in batch.values():
        if not question.answer.done():
            question.answer.set_exception(failure)
            # Read it once, so that a caller who has left does not make the loop complain.
            question.answer.exception()
