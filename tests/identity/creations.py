"""Creations through the interface, and what the tables hold of them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID

import httpx2

from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import ProjectId

START = datetime(2031, 5, 4, 12, 0, tzinfo=UTC)
"""Where held clocks begin: noon, so that a day later is another day."""

REPLAYED = "idempotent-replayed"
RUNNING_TWIN = """
    INSERT INTO idempotency_records (organization_id, idempotency_key, fingerprint, resource_id,
                                     creator_id, created_at)
    VALUES ($1, 'creation-1', '', gen_random_uuid(), gen_random_uuid(), now())
"""
"""What a request with the key `creation-1` has done when it is not yet committed."""

LOCK_PROJECT = "SELECT 1 FROM projects WHERE id = $1 FOR UPDATE"
PRODUCTION: Mapping[str, object] = {"name": "production"}


def keys_path(project_id: ProjectId) -> str:
    return f"/v1/organization/projects/{project_id}/api_keys"


def managed_keys_path(project_id: ProjectId) -> str:
    return f"/manage/v1/organization/projects/{project_id}/api_keys"


def rotate_path(project_id: ProjectId, key_id: UUID | str) -> str:
    return f"{managed_keys_path(project_id)}/{key_id}/rotate"


async def create(
    client: httpx2.AsyncClient,
    path: str,
    idempotency_key: str,
    body: Mapping[str, object] = PRODUCTION,
) -> httpx2.Response:
    headers = {"Idempotency-Key": idempotency_key}
    return await client.post(path, json=body, headers=headers)


async def keys_of(org: OrganizationFixture) -> int:
    """Project keys of the organization, whatever their state."""
    async with org.database.transaction() as tx:
        return await tx.fetch_value(
            "SELECT count(*) FROM project_keys WHERE organization_id = $1", org.organization_id
        )


async def secrets_of(org: OrganizationFixture) -> int:
    """Secrets of project keys in the directory."""
    async with org.database.transaction() as tx:
        return await tx.fetch_value(
            """
            SELECT count(*) FROM key_directory
             WHERE organization_id = $1 AND key_kind = 'project'
            """,
            org.organization_id,
        )


async def records_of(org: OrganizationFixture) -> int:
    async with org.database.transaction() as tx:
        return await tx.fetch_value(
            "SELECT count(*) FROM idempotency_records WHERE organization_id = $1",
            org.organization_id,
        )
