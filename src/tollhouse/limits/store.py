"""Queries of stored limits. Enforcement reads them together with the key instead."""

from tollhouse.base.ids import OrganizationId
from tollhouse.base.traffic import TrafficLimits
from tollhouse.limits.types import LimitId, LimitOwner, LimitScope, RateLimit
from tollhouse.storage.database import Mutation, Row, Transaction


async def lock_limits(tx: Mutation, organization_id: OrganizationId) -> None:
    """Lock an organization's limits until the commit, so that each change sees the previous one."""
    await tx.execute("SELECT 1 FROM organizations WHERE id = $1 FOR NO KEY UPDATE", organization_id)


async def has_scope(tx: Transaction, organization_id: OrganizationId, place: LimitId) -> bool:
    """Return whether the scope of a limit exists in the organization."""
    return await tx.fetch_value(
        """
        SELECT CASE $2::text
               WHEN 'organization' THEN $1::uuid = $3::uuid
               WHEN 'project' THEN EXISTS (
                    SELECT FROM projects WHERE organization_id = $1 AND id = $3)
               WHEN 'api_key' THEN EXISTS (
                    SELECT FROM project_keys WHERE organization_id = $1 AND id = $3)
               END
        """,
        organization_id,
        place.scope,
        place.scope_id,
    )


async def get_limit(
    tx: Transaction, organization_id: OrganizationId, place: LimitId
) -> RateLimit | None:
    """Return a limit, or None if it is not set."""
    row = await tx.fetch_one(
        """
        SELECT *
          FROM rate_limits
         WHERE organization_id = $1
           AND scope = $2
           AND scope_id = $3
           AND owner = $4
        """,
        organization_id,
        place.scope,
        place.scope_id,
        place.owner,
    )
    return None if row is None else _limit(row)


async def page_limits(
    tx: Transaction, organization_id: OrganizationId, *, after: LimitId | None, limit: int
) -> list[RateLimit]:
    """Return limits in the order in which their scopes were created, the organization first."""
    rows = await tx.fetch_all(
        """
        SELECT *
          FROM rate_limits
         WHERE organization_id = $1
           AND ($2::text IS NULL OR (scope_id, scope, owner) > ($3::uuid, $2, $4))
         ORDER BY scope_id, scope, owner
         LIMIT $5
        """,
        organization_id,
        None if after is None else after.scope,
        None if after is None else after.scope_id,
        None if after is None else after.owner,
        limit,
    )
    return [_limit(row) for row in rows]


async def save_limit(tx: Mutation, limit: RateLimit) -> None:
    """Insert or replace a limit."""
    await tx.execute(
        """
        INSERT INTO rate_limits (organization_id, scope, scope_id, owner, requests_per_minute,
                                 tokens_per_minute, concurrent_requests)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (organization_id, scope_id, scope, owner) DO UPDATE
           SET requests_per_minute = EXCLUDED.requests_per_minute,
               tokens_per_minute = EXCLUDED.tokens_per_minute,
               concurrent_requests = EXCLUDED.concurrent_requests
        """,
        limit.organization_id,
        limit.scope,
        limit.scope_id,
        limit.owner,
        limit.traffic.requests_per_minute,
        limit.traffic.tokens_per_minute,
        limit.traffic.concurrent_requests,
    )


async def delete_limit(tx: Mutation, organization_id: OrganizationId, place: LimitId) -> None:
    """Delete a limit."""
    await tx.execute(
        """
        DELETE FROM rate_limits
         WHERE organization_id = $1
           AND scope = $2
           AND scope_id = $3
           AND owner = $4
        """,
        organization_id,
        place.scope,
        place.scope_id,
        place.owner,
    )


def _limit(row: Row) -> RateLimit:
    return RateLimit(
        organization_id=OrganizationId(row["organization_id"]),
        scope=LimitScope(row["scope"]),
        scope_id=row["scope_id"],
        owner=LimitOwner(row["owner"]),
        traffic=TrafficLimits(
            requests_per_minute=row["requests_per_minute"],
            tokens_per_minute=row["tokens_per_minute"],
            concurrent_requests=row["concurrent_requests"],
        ),
    )
