"""Sessions in SQL. They belong to keys and people, and a person may act in many organizations."""

from datetime import datetime
from typing import Final
from uuid import UUID

from tollhouse.base.ids import OrganizationId, SessionId
from tollhouse.sessions.types import ConsoleSession
from tollhouse.storage.database import Row, Transaction

_OPEN: Final = """
    SELECT id, owner_id, key_digest, person_name, groups, organization_ids, created_at, expires_at
      FROM console_sessions
     WHERE ended_at IS NULL
"""
_BY_SECRET: Final = f"{_OPEN} AND secret_digest = $1 AND expires_at > $2"
_BY_ID: Final = f"{_OPEN} AND id = $1 AND expires_at > $2"
_BY_ID_FOR_SHARE: Final = f"{_BY_ID} FOR SHARE"
_ALL: Final = f"{_OPEN} AND expires_at > $1 ORDER BY created_at DESC LIMIT $2"


async def insert(  # all organizations: a session belongs to a key or a person
    tx: Transaction, session: ConsoleSession, *, secret_digest: bytes, state_digest: bytes | None
) -> bool:
    """Write a new session; return False if the sign-in has made one before."""
    written = await tx.execute(
        """
        INSERT INTO console_sessions (id, secret_digest, owner_id, key_digest, person_name, groups,
                                      organization_ids, state_digest, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        ON CONFLICT (state_digest) DO NOTHING
        """,
        session.id,
        secret_digest,
        session.owner_id,
        session.key_digest,
        session.person_name,
        session.groups,
        session.organization_ids,
        state_digest,
        session.created_at,
        session.expires_at,
    )
    return written == 1


async def end_oldest(  # all organizations: a session belongs to a key or a person
    tx: Transaction, owner_id: UUID, *, kept: int, now: datetime
) -> None:
    """End all sessions of an owner but the `kept` newest. Sign-ins of one owner wait here."""
    await tx.execute("SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))", str(owner_id))
    await tx.execute(
        """
        UPDATE console_sessions
           SET ended_at = $3
         WHERE id IN (
               SELECT id
                 FROM console_sessions
                WHERE owner_id = $1
                  AND ended_at IS NULL
                ORDER BY created_at DESC, id DESC
               OFFSET $2)
        """,
        owner_id,
        kept,
        now,
    )


async def find_by_secret(  # all organizations: the secret determines the session
    tx: Transaction, secret_digest: bytes, *, now: datetime
) -> ConsoleSession | None:
    """Return the open session of a browser's secret."""
    row = await tx.fetch_one(_BY_SECRET, secret_digest, now)
    return None if row is None else _session(row)


async def find(  # all organizations: a signed token names the session
    tx: Transaction, session_id: SessionId, *, now: datetime
) -> ConsoleSession | None:
    """Return an open session."""
    row = await tx.fetch_one(_BY_ID, session_id, now)
    return None if row is None else _session(row)


async def find_for_share(  # all organizations: a signed token names the session
    tx: Transaction, session_id: SessionId, *, now: datetime
) -> ConsoleSession | None:
    """Return an open session, and block its end until the transaction ends."""
    row = await tx.fetch_one(_BY_ID_FOR_SHARE, session_id, now)
    return None if row is None else _session(row)


async def newest(  # all organizations: the operator's list
    tx: Transaction, *, now: datetime, limit: int
) -> list[ConsoleSession]:
    """Return open sessions, newest first."""
    return [_session(row) for row in await tx.fetch_all(_ALL, now, limit)]


async def end(  # all organizations: a session belongs to a key or a person
    tx: Transaction, session_id: SessionId, *, now: datetime
) -> None:
    """End a session; one that has ended keeps its time."""
    await tx.execute(
        "UPDATE console_sessions SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL",
        session_id,
        now,
    )


async def delete_expired(  # all organizations: purges every expired session
    tx: Transaction, rows_max: int, *, expired_before: datetime
) -> int:
    """Delete up to `rows_max` sessions that expired before a time; return how many."""
    return await tx.execute(
        """
        DELETE FROM console_sessions
         WHERE id IN (
               SELECT id
                 FROM console_sessions
                WHERE expires_at < $1
                ORDER BY expires_at
                LIMIT $2)
        """,
        expired_before,
        rows_max,
    )


def _session(row: Row) -> ConsoleSession:
    return ConsoleSession(
        id=SessionId(row["id"]),
        owner_id=row["owner_id"],
        key_digest=row["key_digest"],
        person_name=row["person_name"],
        groups=tuple(row["groups"]),
        organization_ids=tuple(map(OrganizationId, row["organization_ids"])),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
    )
