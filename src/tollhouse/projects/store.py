"""Projects in SQL."""

from tollhouse.base.ids import OrganizationId, ProjectId
from tollhouse.projects.types import Project
from tollhouse.storage.database import Mutation, Row, Transaction


async def insert(tx: Mutation, project: Project) -> None:
    """Write a new project."""
    await tx.execute(
        """
        INSERT INTO projects (organization_id, id, name, allowed_models, created_at, archived_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        project.organization_id,
        project.id,
        project.name,
        project.allowed_models,
        project.created_at,
        project.archived_at,
    )


async def get(
    tx: Transaction, organization_id: OrganizationId, project_id: ProjectId
) -> Project | None:
    """Return a project, or None."""
    row = await tx.fetch_one(
        """
        SELECT organization_id, id, name, allowed_models, created_at, archived_at
          FROM projects
         WHERE organization_id = $1
           AND id = $2
        """,
        organization_id,
        project_id,
    )
    return None if row is None else _project(row)


async def get_for_update(
    tx: Mutation, organization_id: OrganizationId, project_id: ProjectId
) -> Project | None:
    """Return a project, or None, and lock its row."""
    row = await tx.fetch_one(
        """
        SELECT organization_id, id, name, allowed_models, created_at, archived_at
          FROM projects
         WHERE organization_id = $1
           AND id = $2
           FOR UPDATE
        """,
        organization_id,
        project_id,
    )
    return None if row is None else _project(row)


async def get_for_share(
    tx: Mutation, organization_id: OrganizationId, project_id: ProjectId
) -> Project | None:
    """Return a project, or None, and keep it from being archived.

    The lock is shared, so that creations of keys do not wait for each other.
    """
    row = await tx.fetch_one(
        """
        SELECT organization_id, id, name, allowed_models, created_at, archived_at
          FROM projects
         WHERE organization_id = $1
           AND id = $2
           FOR SHARE
        """,
        organization_id,
        project_id,
    )
    return None if row is None else _project(row)


async def save(tx: Mutation, project: Project) -> None:
    """Write the fields that can change: the name, the allowed models and the archiving."""
    await tx.execute(
        """
        UPDATE projects
           SET name = $3, allowed_models = $4, archived_at = $5
         WHERE organization_id = $1
           AND id = $2
        """,
        project.organization_id,
        project.id,
        project.name,
        project.allowed_models,
        project.archived_at,
    )


async def count_active(tx: Transaction, organization_id: OrganizationId, count_max: int) -> int:
    """Count projects that are not archived, up to `count_max`."""
    return await tx.fetch_value(
        """
        SELECT count(*)
          FROM (SELECT 1 FROM projects
                 WHERE organization_id = $1 AND archived_at IS NULL
                 LIMIT $2) active
        """,
        organization_id,
        count_max,
    )


async def page(
    tx: Transaction, organization_id: OrganizationId, *, after: ProjectId | None, limit: int
) -> list[Project]:
    """Return a page of projects in order of creation, archived ones included."""
    rows = await tx.fetch_all(
        """
        SELECT organization_id, id, name, allowed_models, created_at, archived_at
          FROM projects
         WHERE organization_id = $1
           AND ($2::uuid IS NULL OR id > $2)
         ORDER BY id
         LIMIT $3
        """,
        organization_id,
        after,
        limit,
    )
    return [_project(row) for row in rows]


def _project(row: Row) -> Project:
    models = row["allowed_models"]
    return Project(
        organization_id=OrganizationId(row["organization_id"]),
        id=ProjectId(row["id"]),
        name=row["name"],
        allowed_models=None if models is None else tuple(models),
        created_at=row["created_at"],
        archived_at=row["archived_at"],
    )
