"""Operations on projects, in the caller's transaction."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec import UNSET, UnsetType

from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import OrganizationId, ProjectId
from tollhouse.base.quotas import Quota
from tollhouse.projects import store
from tollhouse.projects.errors import ProjectIsArchived, ProjectNotFound
from tollhouse.projects.types import Project
from tollhouse.storage import audit, quotas
from tollhouse.storage.database import Mutation, Transaction


async def require_room(tx: Mutation, quota: int) -> None:
    """Raise `QuotaExceeded` if the organization has `quota` projects that are not archived."""
    await quotas.require_room(tx, Quota.PROJECTS, quota, store.count_active)


async def create(tx: Mutation, *, project_id: ProjectId, name: str) -> Project:
    """Create a project that allows every model."""
    project = Project(
        organization_id=tx.organization_id,
        id=project_id,
        name=name,
        allowed_models=None,
        created_at=tx.now,
        archived_at=None,
    )
    await store.insert(tx, project)
    await _audit(tx, "project.create", before=None, after=project)
    return project


async def edit(
    tx: Mutation,
    project_id: ProjectId,
    *,
    name: str | UnsetType = UNSET,
    allowed_models: Sequence[str] | UnsetType | None = UNSET,
) -> Project:
    """Change the given fields. `allowed_models` of None allows every model.

    Raises `ProjectIsArchived` if the project is archived. Changes nothing if the values are the
    same.
    """
    project = await _held(tx, project_id)
    if project.archived_at is not None:
        raise ProjectIsArchived
    edited = project
    if not isinstance(name, UnsetType):
        edited = replace(edited, name=name)
    if not isinstance(allowed_models, UnsetType):
        models = None if allowed_models is None else tuple(dict.fromkeys(allowed_models))
        edited = replace(edited, allowed_models=models)
    if edited == project:
        tx.unchanged()
        return project
    await store.save(tx, edited)
    await _audit(tx, "project.edit", before=project, after=edited)
    return edited


async def archive(tx: Mutation, project_id: ProjectId) -> Project:
    """Stop new inference with the project's keys for good. A second call changes nothing."""
    project = await _held(tx, project_id)
    if project.archived_at is not None:
        tx.unchanged()
        return project
    archived = replace(project, archived_at=tx.now)
    await store.save(tx, archived)
    await _audit(tx, "project.archive", before=project, after=archived)
    return archived


async def retrieve(
    tx: Transaction, organization_id: OrganizationId, project_id: ProjectId
) -> Project:
    """Return a project, archived or not, or raise `ProjectNotFound`."""
    project = await store.get(tx, organization_id, project_id)
    if project is None:
        raise ProjectNotFound
    return project


async def require_active(tx: Mutation, project_id: ProjectId) -> Project:
    """Return a project and keep it active until the commit; raise if it is archived or missing."""
    project = await store.get_for_share(tx, tx.organization_id, project_id)
    if project is None:
        raise ProjectNotFound
    if project.archived_at is not None:
        raise ProjectIsArchived
    return project


async def page(
    tx: Transaction, organization_id: OrganizationId, *, after: ProjectId | None, limit: int
) -> list[Project]:
    """Return a page of projects in order of creation, archived ones included.

    Raises `UnknownCursor` if `after` is not a project of this organization.
    """
    if after is not None and await store.get(tx, organization_id, after) is None:
        raise UnknownCursor
    return await store.page(tx, organization_id, after=after, limit=limit)


async def _held(tx: Mutation, project_id: ProjectId) -> Project:
    project = await store.get_for_update(tx, tx.organization_id, project_id)
    if project is None:
        raise ProjectNotFound
    return project


async def _audit(tx: Mutation, action: str, *, before: Project | None, after: Project) -> None:
    await audit.record(
        tx, action=action, resource=("project", after.id), before=before, after=after
    )
