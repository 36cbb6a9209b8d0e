"""Verifies the hash chain of an organization's audit rows, without the functions of the database.

A hash is the SHA-256 over fields, each with its length before it as four bytes, or -1 for NULL. A
chain begins with the hash of the organization's ID.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tollhouse.base.ids import AuditId, OrganizationId
from tollhouse.storage.database import Transaction


class ChainFault(StrEnum):
    """What is wrong with a row of a chain."""

    CHANGED = "changed"
    MISSING = "missing"
    INSERTED = "inserted"
    UNLINKED = "unlinked"
    """It does not follow the row before: rows were exchanged, or that one was rewritten."""
    TRUNCATED = "truncated"
    REWRITTEN = "rewritten"
    """The chain is sound in itself, and does not have a head that was stored elsewhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainHead:
    """The last row of an organization's chain."""

    organization_id: OrganizationId
    number: int
    hash: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstFault:
    """The first wrong row of a chain. `audit_id` is None if the row is not there."""

    organization_id: OrganizationId
    fault: ChainFault
    number: int | None
    audit_id: AuditId | None


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifiedChain:
    """The last sound row of a chain, and the first fault."""

    head: ChainHead
    fault: FirstFault | None


_VERIFY: Final = """
    WITH head AS (
        SELECT number, hash FROM audit_heads WHERE organization_id = $1
    ), beginning AS (
        SELECT sha256(int4send(17) || 'tollhouse audit 1' || int4send(16) || uuid_send($1)) AS hash
    ), links AS (
        SELECT row_number() OVER w AS place, c.number, c.audit_id, c.previous_hash, c.hash,
               a.id, lag(c.hash, 1, b.hash) OVER w AS before, recomputed.hash AS wanted
          FROM audit_chain c
         CROSS JOIN beginning b
          LEFT JOIN audit_log a
            ON a.organization_id = c.organization_id AND a.id = c.audit_id
         CROSS JOIN LATERAL (
                SELECT sha256(string_agg(coalesce(int4send(octet_length(field)) || field,
                                                  int4send(-1)), ''::bytea ORDER BY place)) AS hash
                  FROM unnest(ARRAY[
                       'tollhouse audit 1', c.previous_hash, int8send(c.number),
                       uuid_send(a.organization_id), uuid_send(a.id),
                       int8send((extract(epoch FROM a.occurred_at) * 1000000)::bigint),
                       convert_to(a.actor_type, 'UTF8'), convert_to(a.actor_id, 'UTF8'),
                       convert_to(a.action, 'UTF8'), convert_to(a.resource_type, 'UTF8'),
                       convert_to(a.resource_id, 'UTF8'), convert_to(a.changes::text, 'UTF8'),
                       a.digest_before, a.digest_after, uuid_send(a.request_id),
                       convert_to(a.actor_name, 'UTF8')]) WITH ORDINALITY f (field, place)
               ) recomputed
         WHERE c.organization_id = $1
        WINDOW w AS (ORDER BY c.number)
    ), checked AS (
        SELECT place, hash, CASE WHEN number = place THEN audit_id END AS audit_id,
               CASE WHEN number <> place THEN 'missing'
                    WHEN number > coalesce((SELECT number FROM head), 0) THEN 'inserted'
                    WHEN id IS NULL THEN 'missing'
                    WHEN previous_hash <> before THEN 'unlinked'
                    WHEN hash <> wanted THEN 'changed'
                    WHEN number = $2 AND hash <> $3 THEN 'rewritten'
                END AS fault
          FROM links
    ), first AS (
        SELECT * FROM checked WHERE fault IS NOT NULL ORDER BY place LIMIT 1
    ), sound AS (
        SELECT coalesce(max(place), 0) AS number
          FROM checked
         WHERE place < ALL (SELECT place FROM first)
    ), ending AS (
        SELECT s.number, coalesce(c.hash, b.hash) AS hash
          FROM sound s
         CROSS JOIN beginning b
          LEFT JOIN checked c ON c.place = s.number
    ), faults AS (
        SELECT 1 AS severity, fault, place, audit_id FROM first
         UNION ALL
        SELECT 2, 'truncated', number + 1, NULL
          FROM ending
         WHERE number < greatest((SELECT number FROM head), $2, 0)
         UNION ALL
        SELECT 3, 'unlinked', e.number, NULL FROM ending e JOIN head h ON h.hash <> e.hash
         UNION ALL
        SELECT 4, 'inserted', NULL,
               (SELECT id FROM audit_log a
                 WHERE a.organization_id = $1
                   AND NOT EXISTS (SELECT FROM audit_chain c
                                    WHERE c.organization_id = $1 AND c.audit_id = a.id)
                 ORDER BY id DESC LIMIT 1)
    )
    SELECT e.number, e.hash, f.fault, f.place, f.audit_id
      FROM ending e
      LEFT JOIN LATERAL (
            SELECT *
              FROM faults
             WHERE severity < 4 OR audit_id IS NOT NULL
             ORDER BY severity
             LIMIT 1) f ON true
"""


async def verify(
    tx: Transaction, organization_id: OrganizationId, *, stored: ChainHead | None
) -> VerifiedChain:
    """Recompute an organization's chain. `stored` is a head that was kept elsewhere."""
    row = await tx.fetch_one(
        _VERIFY,
        organization_id,
        None if stored is None else stored.number,
        None if stored is None else stored.hash,
    )
    assert row is not None, "the statement returns one row"
    head = ChainHead(organization_id=organization_id, number=row["number"], hash=bytes(row["hash"]))
    if row["fault"] is None:
        return VerifiedChain(head=head, fault=None)
    fault = FirstFault(
        organization_id=organization_id,
        fault=ChainFault(row["fault"]),
        number=row["place"],
        audit_id=row["audit_id"],
    )
    return VerifiedChain(head=head, fault=fault)


async def page(  # all organizations: the operator verifies each
    tx: Transaction, *, after: OrganizationId | None, limit: int
) -> list[OrganizationId]:
    """Return organizations in the order of their IDs, also one that has only a chain."""
    rows = await tx.fetch_all(
        """
        (SELECT id FROM organizations WHERE $1::uuid IS NULL OR id > $1 ORDER BY id LIMIT $2)
         UNION
        (SELECT organization_id FROM audit_heads
          WHERE $1::uuid IS NULL OR organization_id > $1
          ORDER BY organization_id LIMIT $2)
         ORDER BY id
         LIMIT $2
        """,
        after,
        limit,
    )
    return [OrganizationId(row["id"]) for row in rows]


async def heads_moved(  # all organizations: heads are for the operator's log
    tx: Transaction, *, seconds: float
) -> list[ChainHead]:
    """Return the heads of organizations whose last audit row is younger than this."""
    rows = await tx.fetch_all(
        """
        SELECT h.organization_id, h.number, h.hash
          FROM audit_heads h
          JOIN audit_chain c ON c.organization_id = h.organization_id AND c.number = h.number
          JOIN audit_log a ON a.organization_id = c.organization_id AND a.id = c.audit_id
         WHERE a.occurred_at > clock_timestamp() - make_interval(secs => $1)
        """,
        seconds,
    )
    return [ChainHead(**row) for row in rows]
