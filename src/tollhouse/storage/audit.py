"""The audit log: one append-only row per mutation, written in the mutation's own transaction."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from tollhouse.base.errors import OrganizationMoving
from tollhouse.base.ids import AuditId, OrganizationId, RequestId, time_ordered_uuid
from tollhouse.storage import changes
from tollhouse.storage.changes import Change, Fields
from tollhouse.storage.database import Actor, Mutation, Row, Transaction

_INSERT: Final = """
    INSERT INTO audit_log (organization_id, id, occurred_at, actor_type, actor_id, action,
                           resource_type, resource_id, changes, digest_before, digest_after,
                           request_id, actor_name)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditEntry:
    """One change: its author, the fields that differ, and both digests of the resource."""

    id: AuditId
    occurred_at: datetime
    actor: Actor
    action: str
    resource_type: str
    resource_id: str
    changes: list[Change]
    digest_before: bytes | None
    digest_after: bytes | None
    request_id: RequestId | None


async def record(
    tx: Mutation,
    *,
    action: str,
    resource: tuple[str, object],
    before: object | None,
    after: object | None,
    is_move: bool = False,
) -> None:
    """Write the mutation's one audit row; the transaction does not commit without it.

    Raises `OrganizationMoving` while the organization is frozen, and keeps it from being frozen
    until the commit. Only the steps of a move itself pass `is_move`.
    """
    if not is_move:
        await _refuse_frozen(tx, tx.organization_id)
    resource_type, resource_id = resource
    fields_before, fields_after = changes.audited(before), changes.audited(after)
    actor = tx.authority.actor
    row = (
        tx.organization_id,
        time_ordered_uuid(),
        tx.now,
        actor.type,
        actor.id,
        action,
        resource_type,
        str(resource_id),
        msgspec.json.encode(changes.between(fields_before, fields_after)).decode(),
        _digest(fields_before),
        _digest(fields_after),
        tx.authority.request_id,
        actor.name,
    )
    await tx.execute(_INSERT, *row)
    tx.note_audited()


async def _refuse_frozen(tx: Transaction, organization_id: OrganizationId) -> None:
    is_frozen = await tx.fetch_value(
        """
        SELECT frozen_until > clock_timestamp()
          FROM organizations
         WHERE id = $1
           FOR KEY SHARE
        """,
        organization_id,
    )
    if is_frozen:
        raise OrganizationMoving


async def page(
    tx: Transaction, organization_id: OrganizationId, *, after: AuditId | None, limit: int
) -> list[AuditEntry]:
    """Return a page of entries, newest first; `after` is the last ID of the previous page."""
    rows = await tx.fetch_all(
        """
        SELECT id, occurred_at, actor_type, actor_id, actor_name, action, resource_type,
               resource_id, changes, digest_before, digest_after, request_id
          FROM audit_log
         WHERE organization_id = $1
           AND ($2::uuid IS NULL OR id < $2)
         ORDER BY id DESC
         LIMIT $3
        """,
        organization_id,
        after,
        limit,
    )
    return [_entry(row) for row in rows]


async def exists(tx: Transaction, organization_id: OrganizationId, audit_id: AuditId) -> bool:
    """Return whether the organization has an audit entry with this ID."""
    found = await tx.fetch_value(
        "SELECT 1 FROM audit_log WHERE organization_id = $1 AND id = $2", organization_id, audit_id
    )
    return found is not None


def _digest(fields: Fields | None) -> bytes | None:
    if fields is None:
        return None
    return hashlib.sha256(msgspec.json.encode(fields, order="sorted")).digest()


def _entry(row: Row) -> AuditEntry:
    return AuditEntry(
        id=row["id"],
        occurred_at=row["occurred_at"],
        actor=Actor(type=row["actor_type"], id=row["actor_id"], name=row["actor_name"]),
        action=row["action"],
        resource_type=row["resource_type"],
        resource_id=row["resource_id"],
        changes=msgspec.json.decode(row["changes"], type=list[Change]),
        digest_before=row["digest_before"],
        digest_after=row["digest_after"],
        request_id=row["request_id"],
    )


async def recorded(
    tx: Transaction, organization_id: OrganizationId, request_ids: Sequence[RequestId]
) -> set[RequestId]:
    """Return those of the requests that have an audit row."""
    rows = await tx.fetch_all(
        "SELECT request_id FROM audit_log WHERE organization_id = $1 AND request_id = ANY($2)",
        organization_id,
        list(request_ids),
    )
    return {RequestId(row["request_id"]) for row in rows}
