"""Beginning, finding and ending sessions of the console."""

import hashlib
import secrets
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.base.errors import OrganizationMoving
from tollhouse.base.ids import OrganizationId, RequestId, SessionId
from tollhouse.sessions import rules, store
from tollhouse.sessions.errors import SessionEnded, SignInReplayed
from tollhouse.sessions.types import ConsoleSession
from tollhouse.storage import audit
from tollhouse.storage.batches import in_batches
from tollhouse.storage.database import Actor, Authority, Database, Mutation, Transaction
from tollhouse.storage.leases import PURGE_EVERY_SECONDS, LeasedJob

_SECRET_BYTES: Final = 32


def actor_of(session: ConsoleSession) -> Actor:
    """Return the author of what a session changes: its Admin key, or the person."""
    kind = "admin_api_key" if session.person_name is None else "person"
    return Actor(type=kind, id=str(session.owner_id), name=session.person_name)


async def begin(
    database: Database,
    session: ConsoleSession,
    *,
    request_id: RequestId,
    state_digest: bytes | None = None,
) -> str:
    """Store a session, audited in each of its organizations, and return the browser's secret.

    Raises `SignInReplayed` if `state_digest` has made a session before, and `OrganizationMoving`
    if an organization is frozen for a move.
    """
    secret = secrets.token_urlsafe(_SECRET_BYTES)

    async def insert(tx: Mutation) -> None:
        await store.end_oldest(
            tx, session.owner_id, kept=rules.SESSIONS_PER_OWNER_MAX - 1, now=tx.now
        )
        is_new = await store.insert(
            tx, session, secret_digest=digest_of(secret), state_digest=state_digest
        )
        if not is_new:
            raise SignInReplayed

    *others, last = session.organization_ids
    # Inserted last, so that no session exists whose beginning is not in every audit log.
    for organization_id, change in (*((each, _no_change) for each in others), (last, insert)):
        authority = _authority(actor_of(session), organization_id, session.created_at, request_id)
        async with database.mutation(authority) as tx:  # caller: just signed in
            await change(tx)
            await _audit(tx, "session.create", session, before=None, after=_audited(session))
    return secret


async def end(
    database: Database,
    session: ConsoleSession,
    *,
    now: datetime,
    request_id: RequestId | None = None,
    actor: Actor | None = None,
) -> None:
    """End a session, audited in each of its organizations that is not frozen for a move.

    Without an `actor` the session's own key or person ends it.
    """
    for organization_id in session.organization_ids:
        authority = _authority(actor or actor_of(session), organization_id, now, request_id)
        with suppress(OrganizationMoving):
            async with database.mutation(authority) as tx:  # caller: may always end it
                await store.end(tx, session.id, now=now)
                await _audit(tx, "session.end", session, before=_audited(session), after=None)
    async with database.transaction() as tx:
        await store.end(tx, session.id, now=now)


async def find_by_secret(tx: Transaction, secret: str, *, now: datetime) -> ConsoleSession | None:
    """Return the open session of a browser's secret, or None."""
    return await store.find_by_secret(tx, digest_of(secret), now=now)


async def find(tx: Transaction, session_id: SessionId, *, now: datetime) -> ConsoleSession:
    """Return an open session. Raises `SessionEnded`."""
    session = await store.find(tx, session_id, now=now)
    if session is None:
        raise SessionEnded
    return session


async def newest(tx: Transaction, *, now: datetime, limit: int) -> list[ConsoleSession]:
    """Return open sessions of all organizations, newest first, for the operator."""
    return await store.newest(tx, now=now, limit=limit)


async def require_open(tx: Mutation, session_id: SessionId, *, now: datetime) -> ConsoleSession:
    """Return an open session and block its end until the commit. Raises `SessionEnded`."""
    session = await store.find_for_share(tx, session_id, now=now)
    if session is None:
        raise SessionEnded
    return session


def digest_of(secret: str) -> bytes:
    """Return what is stored of a secret, which is too random to be guessed from its digest."""
    return hashlib.sha256(secret.encode()).digest()


def purge_job(database: Database, clock: Clock) -> LeasedJob:
    """Return the job that deletes expired sessions."""

    async def purge() -> None:
        await in_batches(database, partial(store.delete_expired, expired_before=clock.now()))

    return LeasedJob(
        name="console-sessions",
        every_seconds=PURGE_EVERY_SECONDS,
        run=purge,
    )


def _authority(
    actor: Actor,
    organization_id: OrganizationId,
    now: datetime,
    request_id: RequestId | None,
) -> Authority:
    return Authority(organization_id=organization_id, actor=actor, request_id=request_id, now=now)


def _audited(session: ConsoleSession) -> dict[str, object]:
    """Return what an audit row shows of a session: nothing that finds its key."""
    return {"groups": session.groups, "expires_at": session.expires_at}


async def _audit(
    tx: Mutation,
    action: str,
    session: ConsoleSession,
    *,
    before: dict[str, object] | None,
    after: dict[str, object] | None,
) -> None:
    resource = ("console_session", session.id)
    await audit.record(tx, action=action, resource=resource, before=before, after=after)


async def _no_change(_: Mutation) -> None:
    """Change nothing: the session is stored with its last organization."""
