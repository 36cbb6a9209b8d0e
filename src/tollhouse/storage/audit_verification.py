"""Reads the audit rows of organizations, to verify their chains."""

from dataclasses import dataclass
from typing import Final

from tollhouse.base.ids import AuditId, OrganizationId
from tollhouse.storage.audit_chain import ChainHead, ChainVerifier, FirstFault
from tollhouse.storage.database import Row, Transaction

ROWS_AT_ONCE: Final = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifiedChain:
    """The last sound row of a chain, the number of rows older than it, and the first fault."""

    head: ChainHead
    unchained_rows: int
    fault: FirstFault | None


async def verify(
    tx: Transaction, organization_id: OrganizationId, *, stored: ChainHead | None
) -> VerifiedChain:
    """Recompute an organization's chain from all its audit rows, in bounded memory.

    `tx` has to be a snapshot. `stored` is a head that was kept outside of the database.
    """
    found = await tx.fetch_one(
        """
        SELECT h.number, h.hash, h.unchained_rows,
               (SELECT count(*) FROM audit_log WHERE organization_id = $1) AS rows_in_all
          FROM (SELECT 1) one
          LEFT JOIN audit_heads h ON h.organization_id = $1
        """,
        organization_id,
    )
    assert found is not None
    head, rows_in_all = _head(organization_id, found), int(found["rows_in_all"])
    unchained_rows = rows_in_all if head is None else int(found["unchained_rows"])
    verifier = ChainVerifier(
        organization_id, unchained_rows=unchained_rows, head=head, stored=stored
    )
    async for rows in tx.stream(
        """
        SELECT c.number, c.audit_id, c.previous_hash, c.hash, a.organization_id, a.id,
               a.occurred_at, a.actor_type, a.actor_id, a.action, a.resource_type, a.resource_id,
               a.changes::text AS changes, a.digest_before, a.digest_after, a.request_id,
               a.actor_name
          FROM audit_chain c
          LEFT JOIN audit_log a ON a.organization_id = c.organization_id AND a.id = c.audit_id
         WHERE c.organization_id = $1
         ORDER BY c.number
        """,
        organization_id,
        rows_at_once=ROWS_AT_ONCE,
    ):
        for row in rows:
            verifier.add(dict(row))
        if verifier.fault is not None:
            break
    verifier.finish()
    outside = rows_in_all - verifier.recomputed.number
    if verifier.fault is None and outside != unchained_rows:
        newest = await _newest_outside(tx, organization_id)
        verifier.count(expected=unchained_rows, found=outside, newest=newest)
    return VerifiedChain(
        head=verifier.recomputed, unchained_rows=unchained_rows, fault=verifier.fault
    )


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


async def _newest_outside(tx: Transaction, organization_id: OrganizationId) -> AuditId | None:
    return await tx.fetch_value(
        """
        SELECT a.id
          FROM audit_log a
         WHERE a.organization_id = $1
           AND NOT EXISTS (SELECT
                             FROM audit_chain c
                            WHERE c.organization_id = $1 AND c.audit_id = a.id)
         ORDER BY a.id DESC
         LIMIT 1
        """,
        organization_id,
    )


def _head(organization_id: OrganizationId, row: Row) -> ChainHead | None:
    if row["number"] is None:
        return None
    return ChainHead(organization_id=organization_id, number=row["number"], hash=row["hash"])
