"""An organization with projects and keys, made by the same services that the product uses."""

from dataclasses import dataclass
from datetime import UTC, datetime

from tollhouse.base.ids import (
    AdminKeyId,
    OrganizationId,
    ProjectId,
    ProjectKeyId,
    time_ordered_uuid,
)
from tollhouse.keys import service as keys
from tollhouse.keys.secrets import mint
from tollhouse.keys.types import AdminKey, KeyKind, ProjectKey
from tollhouse.organizations import service as organizations
from tollhouse.organizations.types import Organization, OrganizationStatus
from tollhouse.projects import service as projects
from tollhouse.projects.types import Project
from tollhouse.storage.database import OPERATOR, Authority, Database


@dataclass(frozen=True)
class HeldProjectKey:
    key: ProjectKey
    value: str


@dataclass(frozen=True)
class HeldAdminKey:
    key: AdminKey
    value: str


@dataclass(frozen=True)
class OrganizationFixture:
    """Acts as the operator on one organization."""

    database: Database
    organization_id: OrganizationId
    cell: str | None = None

    def authority(self, now: datetime | None = None) -> Authority:
        return Authority(
            organization_id=self.organization_id,
            actor=OPERATOR,
            request_id=None,
            now=now or datetime.now(UTC),
        )

    async def set_status(self, status: OrganizationStatus) -> Organization:
        async with self.database.mutation(self.authority()) as tx:
            return await organizations.set_status(tx, status)

    async def project(self, name: str = "a project") -> Project:
        async with self.database.mutation(self.authority()) as tx:
            return await projects.create(tx, project_id=ProjectId(time_ordered_uuid()), name=name)

    async def allow_models(self, project: Project, *models: str) -> Project:
        """Those alone; every one, when none is named."""
        async with self.database.mutation(self.authority()) as tx:
            return await projects.edit(tx, project.id, allowed_models=models or None)

    async def grant_check(self, name: str) -> None:
        async with self.database.mutation(self.authority()) as tx:
            await organizations.grant_check(tx, name)

    async def revoke_check(self, name: str) -> None:
        async with self.database.mutation(self.authority()) as tx:
            await organizations.revoke_check(tx, name)

    async def archive(self, project: Project) -> None:
        async with self.database.mutation(self.authority()) as tx:
            await projects.archive(tx, project.id)

    async def admin_key(
        self,
        permissions: tuple[str, ...] | None = None,
        *,
        expires_at: datetime | None = None,
        name: str = "an admin key",
    ) -> HeldAdminKey:
        secret = mint(KeyKind.ADMIN, cell=self.cell)
        async with self.database.mutation(self.authority()) as tx:
            key = await keys.create_admin_key(
                tx,
                secret,
                key_id=AdminKeyId(time_ordered_uuid()),
                name=name,
                permissions=permissions,
                expires_at=expires_at,
            )
        return HeldAdminKey(key, secret.value)

    async def project_key(
        self,
        project: Project,
        permissions: tuple[str, ...] = ("inference:write", "models:read"),
        *,
        allowed_models: tuple[str, ...] | None = None,
        expires_at: datetime | None = None,
        name: str = "a project key",
    ) -> HeldProjectKey:
        secret = mint(KeyKind.PROJECT, cell=self.cell)
        async with self.database.mutation(self.authority()) as tx:
            key = await keys.create_project_key(
                tx,
                secret,
                key_id=ProjectKeyId(time_ordered_uuid()),
                project=(project.id, project.name),
                name=name,
                permissions=permissions,
                allowed_models=allowed_models,
                expires_at=expires_at,
            )
        return HeldProjectKey(key, secret.value)

    async def revoke_admin_key(self, held: HeldAdminKey) -> None:
        async with self.database.mutation(self.authority()) as tx:
            await keys.revoke_admin_key(tx, held.key.id)

    async def revoke_project_key(self, held: HeldProjectKey) -> None:
        async with self.database.mutation(self.authority()) as tx:
            await keys.revoke_project_key(tx, held.key.project_id, held.key.id)

    async def suspend_project_key(self, held: HeldProjectKey) -> None:
        async with self.database.mutation(self.authority()) as tx:
            await keys.suspend_project_key(tx, held.key.project_id, held.key.id)


async def new_organization_fixture(
    database: Database, name: str = "an organization", *, cell: str | None = None
) -> OrganizationFixture:
    org = OrganizationFixture(database, OrganizationId(time_ordered_uuid()), cell)
    async with database.mutation(org.authority()) as tx:
        await organizations.create(tx, name=name)
    return org
