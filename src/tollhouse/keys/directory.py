"""Lookup of API keys, cached briefly and queried in batches, and the time of their last use.

An answer, found or not, is cached for 800 ms counted from before the query. So a revocation takes
effect on every worker within a second, without any message between them.

Keys that were found before are queried first, and keys that do not exist have a cache of their
own: a flood of unknown keys neither delays nor evicts a known one.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import islice
from uuid import UUID

from tollhouse.base.clock import Clock
from tollhouse.base.errors import ServiceUnavailable
from tollhouse.base.ids import OrganizationId
from tollhouse.base.joined import BatchRunner, fail
from tollhouse.base.tasks import Tasks
from tollhouse.keys.errors import TooManyLookups
from tollhouse.keys.lookup import find_by_digests
from tollhouse.keys.secrets import digest, is_well_formed
from tollhouse.keys.types import Admin, Caller, KnownKey
from tollhouse.observability import metrics
from tollhouse.observability.metrics import LookupOutcome
from tollhouse.storage.database import Database, Transaction
from tollhouse.storage.errors import DatabaseUnavailable

CACHED_SECONDS = 0.8
BATCH_KEYS_MAX = 256
NEW_KEYS_MIN = 64
"""Places in each batch that are reserved for keys that this worker has not found before."""
WAITING_NEW_KEYS_MAX = 4_096
MISSING_KEYS_MAX = 10_000
"""The size of the cache of keys that do not exist."""
LAST_USED_RESOLUTION = timedelta(seconds=60)
FLUSH_EVERY_SECONDS = 2.0
_REMEMBERED_KEYS_MAX = 100_000

Marks = Mapping[tuple[OrganizationId, UUID], datetime]


@dataclass(frozen=True, slots=True)
class _CachedKey:
    known: KnownKey | None
    asked_at_seconds: float


@dataclass(frozen=True, slots=True)
class _Lookup:
    name: bytes
    digest: bytes
    answer: "asyncio.Future[KnownKey | None]"


class KeyDirectory:
    """Looks up keys by their secrets and caches the answers. One per worker.

    The cache has no secret of a caller, but digests of them that only this process can compute. A
    key that a later lookup finds unchanged stays the same object.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        tasks: Tasks,
        *,
        cache_size: int,
    ) -> None:
        self._database = database
        self._clock = clock
        self._cache_size = cache_size
        self._cache_secret = secrets.token_bytes(blake2b.MAX_KEY_SIZE)
        self._found: dict[bytes, _CachedKey] = {}
        self._missing: dict[bytes, _CachedKey] = {}
        self._renewals: dict[bytes, _Lookup] = {}
        self._new: dict[bytes, _Lookup] = {}
        self._in_flight: dict[bytes, _Lookup] = {}
        self._asked_at_seconds = 0.0
        self._runner = BatchRunner[_Lookup](
            tasks,
            "key-lookup",
            next_batch=self._next_batch,
            run=self._run,
            stopped=self._fail_all,
        )

    async def find(self, value: str) -> KnownKey | None:
        """Return the key of this secret, or None. A malformed secret needs no query.

        Raises `TooManyLookups` if too many other unknown keys wait already.
        """
        name = blake2b(value.encode(), key=self._cache_secret).digest()
        cached = self._found.get(name) or self._missing.get(name)
        if cached is not None:
            age_seconds = self._clock.monotonic_seconds() - cached.asked_at_seconds
            if age_seconds < CACHED_SECONDS:
                metrics.key_found_in_cache()
                return cached.known
        if not is_well_formed(value):
            return None
        return await asyncio.shield(self._joined(name, value))

    def _joined(self, name: bytes, value: str) -> "asyncio.Future[KnownKey | None]":
        """Return the answer of the lookup that waits or is under way, or start a new one."""
        lookup = self._renewals.get(name) or self._new.get(name) or self._under_way(name)
        if lookup is None:
            if name not in self._found and len(self._new) >= WAITING_NEW_KEYS_MAX:
                raise TooManyLookups
            answer: asyncio.Future[KnownKey | None] = asyncio.get_running_loop().create_future()
            lookup = _Lookup(name, digest(value), answer)
            waiting = self._renewals if name in self._found else self._new
            waiting[name] = lookup
            self._runner.wake()
        return lookup.answer

    def _under_way(self, name: bytes) -> _Lookup | None:
        """Return the lookup in flight, unless it may have read the key before a revocation."""
        age_seconds = self._clock.monotonic_seconds() - self._asked_at_seconds
        return self._in_flight.get(name) if age_seconds < CACHED_SECONDS else None

    def _next_batch(self) -> list[_Lookup]:
        kept_for_new = min(len(self._new), NEW_KEYS_MIN)
        batch = _remove_oldest(self._renewals, BATCH_KEYS_MAX - kept_for_new)
        self._in_flight = batch | _remove_oldest(self._new, BATCH_KEYS_MAX - len(batch))
        return list(self._in_flight.values())

    async def _run(self, batch: Sequence[_Lookup]) -> None:
        asked_at_seconds = self._asked_at_seconds = self._clock.monotonic_seconds()
        digests = [lookup.digest for lookup in batch]
        metrics.key_lookup_batch_sent(len(batch))
        try:
            found = await find_by_digests(self._database, digests)
        except DatabaseUnavailable as failure:
            for lookup in batch:
                metrics.key_looked_up(LookupOutcome.FAILED)
                fail(lookup.answer, failure)
            return
        for lookup in batch:
            known = found.get(lookup.digest)
            metrics.key_looked_up(LookupOutcome.FOUND if known else LookupOutcome.UNKNOWN)
            before = self._found.get(lookup.name)
            if before is not None and before.known == known:
                known = before.known
            self._store(lookup.name, _CachedKey(known, asked_at_seconds))
            if not lookup.answer.done():
                lookup.answer.set_result(known)

    def _fail_all(self, _: Sequence[_Lookup]) -> None:
        """Fail the batch that did not return, and the lookups that wait behind it."""
        for lookups in (self._in_flight, self._renewals, self._new):
            for lookup in lookups.values():
                fail(lookup.answer, DatabaseUnavailable())
            lookups.clear()

    def _store(self, name: bytes, cached: _CachedKey) -> None:
        self._found.pop(name, None)
        self._missing.pop(name, None)
        if cached.known is None:
            held, held_max = self._missing, min(MISSING_KEYS_MAX, self._cache_size)
        else:
            held, held_max = self._found, self._cache_size
        held[name] = cached
        if len(held) > held_max:
            del held[next(iter(held))]


def _remove_oldest(waiting: dict[bytes, _Lookup], count: int) -> dict[bytes, _Lookup]:
    names = list(islice(waiting, count))
    return {name: waiting.pop(name) for name in names}


class LastUsed:
    """Writes `last_used_at` in batches, at most once per key and minute. One per worker.

    A worker that stops loses the last uses that it has not written.
    """

    def __init__(self) -> None:
        self._recorded: dict[UUID, datetime] = {}
        self._project_keys: dict[tuple[OrganizationId, UUID], datetime] = {}
        self._admin_keys: dict[tuple[OrganizationId, UUID], datetime] = {}

    def mark(self, caller: Caller, now: datetime) -> None:
        """Record a use, unless one was recorded within the last minute."""
        recorded = self._recorded.get(caller.key_id)
        if recorded is not None and now - recorded < LAST_USED_RESOLUTION:
            return
        if len(self._recorded) >= _REMEMBERED_KEYS_MAX:
            self._recorded.clear()
        self._recorded[caller.key_id] = now
        marks = self._admin_keys if isinstance(caller, Admin) else self._project_keys
        marks[caller.organization_id, caller.key_id] = now

    async def flush(self, database: Database) -> None:
        """Write the recorded uses; a later time that another worker wrote is kept."""
        project_keys, self._project_keys = self._project_keys, {}
        admin_keys, self._admin_keys = self._admin_keys, {}
        if not project_keys and not admin_keys:
            return
        try:
            async with database.transaction() as tx:
                if project_keys:
                    await _touch_project_keys(tx, project_keys)
                if admin_keys:
                    await _touch_admin_keys(tx, admin_keys)
        except ServiceUnavailable:
            # Newer uses, marked meanwhile, replace these.
            self._project_keys = project_keys | self._project_keys
            self._admin_keys = admin_keys | self._admin_keys
            raise


async def _touch_project_keys(tx: Transaction, marks: Marks) -> None:
    """Write last uses. Skip locked rows, whose next use is written a minute later."""
    await tx.execute(
        """
        WITH due AS (
            SELECT k.organization_id, k.id, mark.used_at
              FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[])
                   AS mark (organization_id, id, used_at)
              JOIN project_keys k ON k.organization_id = mark.organization_id AND k.id = mark.id
             WHERE k.last_used_at IS NULL OR k.last_used_at <= mark.used_at - $4::interval
               FOR UPDATE OF k SKIP LOCKED
        )
        UPDATE project_keys k
           SET last_used_at = due.used_at
          FROM due
         WHERE k.organization_id = due.organization_id
           AND k.id = due.id
        """,
        *_columns(marks),
        LAST_USED_RESOLUTION,
    )


async def _touch_admin_keys(tx: Transaction, marks: Marks) -> None:
    """Write last uses. Skip locked rows, whose next use is written a minute later."""
    await tx.execute(
        """
        WITH due AS (
            SELECT k.organization_id, k.id, mark.used_at
              FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[])
                   AS mark (organization_id, id, used_at)
              JOIN admin_keys k ON k.organization_id = mark.organization_id AND k.id = mark.id
             WHERE k.last_used_at IS NULL OR k.last_used_at <= mark.used_at - $4::interval
               FOR UPDATE OF k SKIP LOCKED
        )
        UPDATE admin_keys k
           SET last_used_at = due.used_at
          FROM due
         WHERE k.organization_id = due.organization_id
           AND k.id = due.id
        """,
        *_columns(marks),
        LAST_USED_RESOLUTION,
    )


def _columns(marks: Marks) -> tuple[list[OrganizationId], list[UUID], list[datetime]]:
    return (
        [organization_id for organization_id, _ in marks],
        [key_id for _, key_id in marks],
        list(marks.values()),
    )
