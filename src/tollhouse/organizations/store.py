"""Organizations in SQL."""

from tollhouse.base.ids import OrganizationId
from tollhouse.organizations.types import GrantedCheck, Organization, OrganizationStatus
from tollhouse.storage.database import Mutation, Row, Transaction


async def insert(tx: Mutation, organization: Organization) -> None:
    """Write a new organization."""
    await tx.execute(
        "INSERT INTO organizations (id, name, status, created_at) VALUES ($1, $2, $3, $4)",
        organization.id,
        organization.name,
        organization.status,
        organization.created_at,
    )


async def get(tx: Transaction, organization_id: OrganizationId) -> Organization | None:
    """Return an organization, or None."""
    row = await tx.fetch_one(
        "SELECT id, name, status, created_at FROM organizations WHERE id = $1", organization_id
    )
    return None if row is None else _organization(row)


async def get_for_update(tx: Mutation, organization_id: OrganizationId) -> Organization | None:
    """Return an organization, or None, and lock its row."""
    row = await tx.fetch_one(
        "SELECT id, name, status, created_at FROM organizations WHERE id = $1 FOR UPDATE",
        organization_id,
    )
    return None if row is None else _organization(row)


async def get_for_key_share(tx: Mutation, organization_id: OrganizationId) -> Organization | None:
    """Return an organization, or None, and block a change of its status.

    The lock is shared, so that creations do not wait for each other.
    """
    row = await tx.fetch_one(
        "SELECT id, name, status, created_at FROM organizations WHERE id = $1 FOR KEY SHARE",
        organization_id,
    )
    return None if row is None else _organization(row)


async def save_status(tx: Mutation, organization: Organization) -> None:
    """Write the status."""
    await tx.execute(
        "UPDATE organizations SET status = $2 WHERE id = $1", organization.id, organization.status
    )


async def page(  # all organizations: the operator's list
    tx: Transaction, *, after: OrganizationId | None, limit: int
) -> list[Organization]:
    """Return a page of all organizations in order of creation."""
    rows = await tx.fetch_all(
        """
        SELECT id, name, status, created_at
          FROM organizations
         WHERE $1::uuid IS NULL OR id > $1
         ORDER BY id
         LIMIT $2
        """,
        after,
        limit,
    )
    return [_organization(row) for row in rows]


async def insert_check(tx: Mutation, check: GrantedCheck) -> None:
    """Write a check that the organization does not have yet."""
    await tx.execute(
        """
        INSERT INTO organization_checks (organization_id, check_name, granted_at)
        VALUES ($1, $2, $3)
        """,
        check.organization_id,
        check.name,
        check.granted_at,
    )


async def delete_check(tx: Mutation, check: GrantedCheck) -> None:
    """Remove a check."""
    await tx.execute(
        "DELETE FROM organization_checks WHERE organization_id = $1 AND check_name = $2",
        check.organization_id,
        check.name,
    )


async def checks(
    tx: Transaction, organization_id: OrganizationId, *, limit: int
) -> list[GrantedCheck]:
    """Return up to `limit` granted checks, ordered by name."""
    rows = await tx.fetch_all(
        """
        SELECT organization_id, check_name, granted_at
          FROM organization_checks
         WHERE organization_id = $1
         ORDER BY check_name
         LIMIT $2
        """,
        organization_id,
        limit,
    )
    return [_check(row) for row in rows]


def _check(row: Row) -> GrantedCheck:
    return GrantedCheck(
        organization_id=OrganizationId(row["organization_id"]),
        name=row["check_name"],
        granted_at=row["granted_at"],
    )


def _organization(row: Row) -> Organization:
    return Organization(
        id=OrganizationId(row["id"]),
        name=row["name"],
        status=OrganizationStatus(row["status"]),
        created_at=row["created_at"],
    )
