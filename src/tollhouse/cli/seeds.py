"""Creates organizations, projects, keys and credit for `init` and `up`, in the operator's name."""

from tollhouse.base.ids import (
    AdminKeyId,
    GrantId,
    OrganizationId,
    ProjectId,
    ProjectKeyId,
    time_ordered_uuid,
)
from tollhouse.base.money import PicoUsd
from tollhouse.cli.session import Session
from tollhouse.keys import service as keys
from tollhouse.keys.types import AdminKey, KeyKind, NewSecret, ProjectKey
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import Grant, GrantKind
from tollhouse.organizations import service as organizations
from tollhouse.organizations.types import Organization
from tollhouse.projects import service as projects
from tollhouse.projects.types import Project


async def create_organization(operator: Session, name: str) -> Organization:
    """Create an organization under a new ID."""
    organization_id = OrganizationId(time_ordered_uuid())
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        return await organizations.create(tx, name=name)


async def create_project(operator: Session, organization_id: OrganizationId, name: str) -> Project:
    """Create a project under a new ID."""
    async with operator.creation(organization_id) as tx:
        return await projects.create(tx, project_id=ProjectId(time_ordered_uuid()), name=name)


async def create_project_key(
    operator: Session, organization_id: OrganizationId, project_id: ProjectId, name: str
) -> tuple[ProjectKey, NewSecret]:
    """Create a key of a project, with the default permissions."""
    secret = operator.mint(KeyKind.PROJECT)
    async with operator.creation(organization_id) as tx:
        project = await projects.require_active(tx, project_id)
        key = await keys.create_project_key(
            tx,
            secret,
            key_id=ProjectKeyId(time_ordered_uuid()),
            project=(project.id, project.name),
            name=name,
        )
    return key, secret


async def create_admin_key(
    operator: Session, organization_id: OrganizationId, name: str
) -> tuple[AdminKey, NewSecret]:
    """Create an Admin key with all permissions, also those of later versions."""
    secret = operator.mint(KeyKind.ADMIN)
    async with operator.creation(organization_id) as tx:
        key = await keys.create_admin_key(
            tx, secret, key_id=AdminKeyId(time_ordered_uuid()), name=name, permissions=None
        )
    return key, secret


async def grant_credit(
    operator: Session,
    organization_id: OrganizationId,
    *,
    kind: GrantKind,
    amount: PicoUsd,
    reason: str,
) -> Grant:
    """Grant credit under a new ID."""
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        return await ledger.grant(
            tx, grant_id=GrantId(time_ordered_uuid()), kind=kind, amount=amount, reason=reason
        )
