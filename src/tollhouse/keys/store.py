"""Keys and the directory in SQL."""

from collections.abc import Sequence
from datetime import datetime

from tollhouse.base.ids import AdminKeyId, OrganizationId, ProjectId, ProjectKeyId
from tollhouse.keys.types import AdminKey, KeyKind, NewSecret, ProjectKey
from tollhouse.storage.database import Mutation, Row, Transaction


async def insert_secret(
    tx: Mutation,
    organization_id: OrganizationId,
    kind: KeyKind,
    key_id: ProjectKeyId | AdminKeyId,
    secret: NewSecret,
) -> None:
    """Write the digest of a secret into the directory."""
    await tx.execute(
        """
        INSERT INTO key_directory (digest, organization_id, key_kind, key_id)
        VALUES ($1, $2, $3, $4)
        """,
        secret.digest,
        organization_id,
        kind,
        key_id,
    )


async def expire_secrets(
    tx: Mutation, organization_id: OrganizationId, key_id: ProjectKeyId, *, at: datetime
) -> None:
    """Expire the current secret, the only one without an expiry, at `at`, and older ones now."""
    await tx.execute(
        """
        UPDATE key_directory
           SET expires_at = CASE WHEN expires_at IS NULL THEN $3
                                 ELSE LEAST(expires_at, $4) END
         WHERE organization_id = $1
           AND key_id = $2
        """,
        organization_id,
        key_id,
        at,
        tx.now,
    )


async def end_previous_secret(
    tx: Mutation, organization_id: OrganizationId, key_id: ProjectKeyId
) -> None:
    """End the secret before the current one now, if it has not expired."""
    await tx.execute(
        """
        UPDATE key_directory
           SET expires_at = $3
         WHERE organization_id = $1
           AND key_id = $2
           AND expires_at > $3
        """,
        organization_id,
        key_id,
        tx.now,
    )


async def insert_project_key(tx: Mutation, key: ProjectKey) -> None:
    """Write a new project key."""
    await tx.execute(
        """
        INSERT INTO project_keys (organization_id, id, project_id, name, redacted_value,
                                  permissions, allowed_models, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        """,
        key.organization_id,
        key.id,
        key.project_id,
        key.name,
        key.redacted_value,
        key.permissions,
        key.allowed_models,
        key.created_at,
        key.expires_at,
    )


async def count_project_keys(
    tx: Transaction, organization_id: OrganizationId, count_max: int
) -> int:
    """Count project keys that are neither revoked nor expired, up to `count_max`."""
    return await tx.fetch_value(
        """
        SELECT count(*)
          FROM (SELECT 1 FROM project_keys
                 WHERE organization_id = $1 AND revoked_at IS NULL
                   AND (expires_at IS NULL OR expires_at > now())
                 LIMIT $2) alive
        """,
        organization_id,
        count_max,
    )


async def count_admin_keys(tx: Transaction, organization_id: OrganizationId, count_max: int) -> int:
    """Count Admin keys that are neither revoked nor expired, up to `count_max`."""
    return await tx.fetch_value(
        """
        SELECT count(*)
          FROM (SELECT 1 FROM admin_keys
                 WHERE organization_id = $1 AND revoked_at IS NULL
                   AND (expires_at IS NULL OR expires_at > now())
                 LIMIT $2) alive
        """,
        organization_id,
        count_max,
    )


async def get_project_key(
    tx: Transaction, organization_id: OrganizationId, key_id: ProjectKeyId
) -> ProjectKey | None:
    """Return a key with the name of its project, or None."""
    row = await tx.fetch_one(
        """
        SELECT k.*, p.name AS project_name,
               (SELECT max(expires_at)
                  FROM key_directory
                 WHERE organization_id = k.organization_id
                   AND key_id = k.id) AS previous_value_expires_at
          FROM project_keys k
          JOIN projects p ON p.organization_id = k.organization_id AND p.id = k.project_id
         WHERE k.organization_id = $1
           AND k.id = $2
        """,
        organization_id,
        key_id,
    )
    return None if row is None else _project_key(row)


async def get_project_key_for_update(
    tx: Mutation, organization_id: OrganizationId, key_id: ProjectKeyId
) -> ProjectKey | None:
    """Return a key, or None, and lock its row."""
    row = await tx.fetch_one(
        """
        SELECT k.*, p.name AS project_name,
               (SELECT max(expires_at)
                  FROM key_directory
                 WHERE organization_id = k.organization_id
                   AND key_id = k.id) AS previous_value_expires_at
          FROM project_keys k
          JOIN projects p ON p.organization_id = k.organization_id AND p.id = k.project_id
         WHERE k.organization_id = $1
           AND k.id = $2
           FOR UPDATE OF k
        """,
        organization_id,
        key_id,
    )
    return None if row is None else _project_key(row)


async def save_project_key(tx: Mutation, key: ProjectKey) -> None:
    """Write the fields that can change: the redacted value, suspension and revocation."""
    await tx.execute(
        """
        UPDATE project_keys
           SET redacted_value = $3, suspended_at = $4, revoked_at = $5
         WHERE organization_id = $1
           AND id = $2
        """,
        key.organization_id,
        key.id,
        key.redacted_value,
        key.suspended_at,
        key.revoked_at,
    )


async def page_of_project_keys(
    tx: Transaction,
    organization_id: OrganizationId,
    project_id: ProjectId,
    *,
    after: ProjectKeyId | None,
    limit: int,
) -> list[ProjectKey]:
    """Return a page of a project's keys in order of creation, whatever their state."""
    rows = await tx.fetch_all(
        """
        SELECT k.*, p.name AS project_name,
               (SELECT max(expires_at)
                  FROM key_directory
                 WHERE organization_id = k.organization_id
                   AND key_id = k.id) AS previous_value_expires_at
          FROM project_keys k
          JOIN projects p ON p.organization_id = k.organization_id AND p.id = k.project_id
         WHERE k.organization_id = $1
           AND k.project_id = $2
           AND ($3::uuid IS NULL OR k.id > $3)
         ORDER BY k.id
         LIMIT $4
        """,
        organization_id,
        project_id,
        after,
        limit,
    )
    return [_project_key(row) for row in rows]


async def project_key_names(
    tx: Transaction, organization_id: OrganizationId, key_ids: Sequence[ProjectKeyId]
) -> dict[ProjectKeyId, tuple[str, str]]:
    """Return the names of keys with the names of their projects."""
    rows = await tx.fetch_all(
        """
        SELECT k.id, k.name, p.name AS project_name
          FROM project_keys k
          JOIN projects p ON p.organization_id = k.organization_id AND p.id = k.project_id
         WHERE k.organization_id = $1
           AND k.id = ANY($2::uuid[])
        """,
        organization_id,
        list(set(key_ids)),
    )
    return {ProjectKeyId(row["id"]): (row["name"], row["project_name"]) for row in rows}


async def insert_admin_key(tx: Mutation, key: AdminKey) -> None:
    """Write a new Admin key."""
    await tx.execute(
        """
        INSERT INTO admin_keys (organization_id, id, name, redacted_value, permissions,
                                created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        """,
        key.organization_id,
        key.id,
        key.name,
        key.redacted_value,
        key.permissions,
        key.created_at,
        key.expires_at,
    )


async def get_admin_key(
    tx: Transaction, organization_id: OrganizationId, key_id: AdminKeyId
) -> AdminKey | None:
    """Return an Admin key, revoked or not, or None."""
    row = await tx.fetch_one(
        "SELECT * FROM admin_keys WHERE organization_id = $1 AND id = $2", organization_id, key_id
    )
    return None if row is None else _admin_key(row)


async def get_admin_key_for_update(
    tx: Mutation, organization_id: OrganizationId, key_id: AdminKeyId
) -> AdminKey | None:
    """Return a key, or None, and lock its row."""
    row = await tx.fetch_one(
        "SELECT * FROM admin_keys WHERE organization_id = $1 AND id = $2 FOR UPDATE",
        organization_id,
        key_id,
    )
    return None if row is None else _admin_key(row)


async def save_admin_key(tx: Mutation, key: AdminKey) -> None:
    """Write the fields that can change: permissions and revocation."""
    await tx.execute(
        """
        UPDATE admin_keys
           SET permissions = $3, revoked_at = $4
         WHERE organization_id = $1
           AND id = $2
        """,
        key.organization_id,
        key.id,
        key.permissions,
        key.revoked_at,
    )


async def page_of_admin_keys(
    tx: Transaction, organization_id: OrganizationId, *, after: AdminKeyId | None, limit: int
) -> list[AdminKey]:
    """Return a page of Admin keys that are not revoked, oldest first."""
    rows = await tx.fetch_all(
        """
        SELECT *
          FROM admin_keys
         WHERE organization_id = $1
           AND revoked_at IS NULL
           AND ($2::uuid IS NULL OR id > $2)
         ORDER BY id
         LIMIT $3
        """,
        organization_id,
        after,
        limit,
    )
    return [_admin_key(row) for row in rows]


async def page_of_admin_keys_newest_first(
    tx: Transaction, organization_id: OrganizationId, *, after: AdminKeyId | None, limit: int
) -> list[AdminKey]:
    """Return a page of Admin keys that are not revoked, newest first."""
    rows = await tx.fetch_all(
        """
        SELECT *
          FROM admin_keys
         WHERE organization_id = $1
           AND revoked_at IS NULL
           AND ($2::uuid IS NULL OR id < $2)
         ORDER BY id DESC
         LIMIT $3
        """,
        organization_id,
        after,
        limit,
    )
    return [_admin_key(row) for row in rows]


def _project_key(row: Row) -> ProjectKey:
    models = row["allowed_models"]
    return ProjectKey(
        organization_id=OrganizationId(row["organization_id"]),
        id=ProjectKeyId(row["id"]),
        project_id=ProjectId(row["project_id"]),
        project_name=row["project_name"],
        name=row["name"],
        redacted_value=row["redacted_value"],
        permissions=tuple(row["permissions"]),
        allowed_models=None if models is None else tuple(models),
        created_at=row["created_at"],
        last_used_at=row["last_used_at"],
        expires_at=row["expires_at"],
        suspended_at=row["suspended_at"],
        revoked_at=row["revoked_at"],
        previous_value_expires_at=row["previous_value_expires_at"],
    )


def _admin_key(row: Row) -> AdminKey:
    return AdminKey(
        organization_id=OrganizationId(row["organization_id"]),
        id=AdminKeyId(row["id"]),
        name=row["name"],
        redacted_value=row["redacted_value"],
        permissions=None if row["permissions"] is None else tuple(row["permissions"]),
        created_at=row["created_at"],
        last_used_at=row["last_used_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
    )


async def delete_expired_secrets(  # all organizations: purges every expired secret
    tx: Transaction, rows_max: int, *, expired_before: datetime
) -> int:
    """Delete up to `rows_max` secrets that expired before a time; return how many."""
    return await tx.execute(
        """
        DELETE FROM key_directory
         WHERE digest IN (
               SELECT digest
                 FROM key_directory
                WHERE expires_at < $1
                ORDER BY expires_at
                LIMIT $2)
        """,
        expired_before,
        rows_max,
    )
