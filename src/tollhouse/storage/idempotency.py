"""Idempotent creations: claim an `Idempotency-Key`, or find what it created before.

The record is written in the transaction of the creation, so only successes are recorded, and a
crash leaves either both or neither.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.base.ids import AdminKeyId
from tollhouse.storage.batches import in_batches
from tollhouse.storage.database import Database, Mutation, Transaction
from tollhouse.storage.errors import LockTimedOut
from tollhouse.storage.sealing import Sealed

SECRET_LIFETIME = timedelta(hours=24)
_WAIT_FOR_TWIN = "2s"


class IdempotencyKeyReused(GatewayError):
    """The key already stands for another operation or another body."""

    kind = Kind.CONFLICT
    code = "idempotency_key_reused"
    should_retry = False
    param = "Idempotency-Key"
    template = "This Idempotency-Key was used for a different request. Use a new key."


class IdempotencyKeyInProgress(GatewayError):
    """The first request with this key is still running; a retry will find its result."""

    kind = Kind.CONFLICT
    code = "idempotency_key_in_progress"
    should_retry = True
    retry_after_seconds = 1
    param = "Idempotency-Key"
    template = (
        "A request with this Idempotency-Key is still running. Send the same request again in a "
        "second."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """The claim of an `Idempotency-Key`, made before the resource is created."""

    idempotency_key: str
    fingerprint: bytes
    resource_id: UUID
    creator_id: AdminKeyId
    sealed: Sealed | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay:
    """The result of an earlier request with this key. `sealed` is None if it may not be shown."""

    resource_id: UUID
    sealed: Sealed | None


async def claim(tx: Mutation, wanted: Claim, *, record_days: int) -> Replay | None:
    """Claim the key and return None, or return the result of the earlier request.

    The creation must run in the same transaction. Waits up to 2 seconds for a running request with
    the same key, then raises `IdempotencyKeyInProgress`. Raises `IdempotencyKeyReused` if the
    earlier request was a different one.
    """
    await tx.execute("SELECT set_config('lock_timeout', $1, true)", _WAIT_FOR_TWIN)
    try:
        claimed = await _insert(tx, wanted, expired_before=tx.now - timedelta(days=record_days))
    except LockTimedOut:
        raise IdempotencyKeyInProgress from None
    return None if claimed else await _replay(tx, wanted)


async def _insert(tx: Mutation, wanted: Claim, *, expired_before: datetime) -> bool:
    row = await tx.fetch_one(
        """
        INSERT INTO idempotency_records AS record
               (organization_id, idempotency_key, fingerprint, resource_id, creator_id,
                created_at, sealed, sealed_day)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (organization_id, idempotency_key) DO UPDATE
           SET fingerprint = EXCLUDED.fingerprint, resource_id = EXCLUDED.resource_id,
               creator_id = EXCLUDED.creator_id, created_at = EXCLUDED.created_at,
               sealed = EXCLUDED.sealed, sealed_day = EXCLUDED.sealed_day
         WHERE record.created_at <= $9
        RETURNING resource_id
        """,
        tx.organization_id,
        wanted.idempotency_key,
        wanted.fingerprint,
        wanted.resource_id,
        wanted.creator_id,
        tx.now,
        wanted.sealed.ciphertext if wanted.sealed else None,
        wanted.sealed.day if wanted.sealed else None,
        expired_before,
    )
    return row is not None


async def _replay(tx: Mutation, wanted: Claim) -> Replay:
    row = await tx.fetch_one(
        """
        SELECT fingerprint, resource_id, creator_id, created_at, sealed, sealed_day
          FROM idempotency_records
         WHERE organization_id = $1
           AND idempotency_key = $2
        """,
        tx.organization_id,
        wanted.idempotency_key,
    )
    assert row is not None, "the record that refused the claim is visible to it"
    if row["fingerprint"] != wanted.fingerprint:
        raise IdempotencyKeyReused
    may_show = (
        row["sealed"] is not None
        and row["creator_id"] == wanted.creator_id
        and tx.now < row["created_at"] + SECRET_LIFETIME
    )
    sealed = Sealed(ciphertext=row["sealed"], day=row["sealed_day"]) if may_show else None
    return Replay(resource_id=row["resource_id"], sealed=sealed)


async def purge(database: Database, now: datetime, *, record_days: int) -> int:
    """Delete sealed secrets after a day, and records after `record_days`; return the row count."""
    forget = partial(_forget_sealed, created_until=now - SECRET_LIFETIME)
    remove = partial(_remove, created_until=now - timedelta(days=record_days))
    return await in_batches(database, forget) + await in_batches(database, remove)


async def _forget_sealed(  # all organizations: retention
    tx: Transaction, rows_max: int, *, created_until: datetime
) -> int:
    return await tx.execute(
        """
        UPDATE idempotency_records
           SET sealed = NULL, sealed_day = NULL
         WHERE sealed IS NOT NULL
           AND created_at <= $1
           AND (organization_id, idempotency_key) IN (
               SELECT organization_id, idempotency_key
                 FROM idempotency_records
                WHERE sealed IS NOT NULL
                  AND created_at <= $1
                ORDER BY created_at
                LIMIT $2)
        """,
        created_until,
        rows_max,
    )


async def _remove(  # all organizations: retention
    tx: Transaction, rows_max: int, *, created_until: datetime
) -> int:
    """Delete old records, but not one that a concurrent claim has renewed."""
    return await tx.execute(
        """
        DELETE FROM idempotency_records
         WHERE created_at <= $1
           AND (organization_id, idempotency_key) IN (
               SELECT organization_id, idempotency_key
                 FROM idempotency_records
                WHERE created_at <= $1
                ORDER BY created_at
                LIMIT $2)
        """,
        created_until,
        rows_max,
    )
