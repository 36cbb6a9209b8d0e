"""Keys and the directory in SQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from tollhouse.base.ids import AdminKeyId, OrganizationId, ProjectId, ProjectKeyId
from tollhouse.base.traffic import (
    UNLIMITED,
    UNLIMITED_EVERYWHERE,
    ScopedLimits,
    TrafficLimits,
)
from tollhouse.keys.types import AdminKey, KeyKind, KnownKey, NewSecret, ProjectKey
from tollhouse.storage.database import Database, Mutation, Row, Transaction


async def find_by_digests(  # all organizations: a secret does not say whose it is
    database: Database, digests: Sequence[bytes]
) -> dict[bytes, KnownKey]:
    """Everything that decides who the callers are, in one statement for the whole batch."""
    rows = await database.fetch_all(
        """
        SELECT d.digest, d.key_kind, d.organization_id, d.key_id,
               LEAST(d.expires_at, pk.expires_at, ak.expires_at) AS expires_at,
               o.status, o.policy_version, o.catalog_version,
               pk.project_id, p.archived_at, pk.suspended_at,
               CASE WHEN pk.allowed_models IS NULL THEN p.allowed_models
                    WHEN p.allowed_models IS NULL THEN pk.allowed_models
                    ELSE ARRAY(SELECT unnest(pk.allowed_models)
                            INTERSECT SELECT unnest(p.allowed_models))
                END AS allowed_models,
               ARRAY(SELECT c.check_name
                       FROM organization_checks c
                      WHERE c.organization_id = pk.organization_id) AS granted_checks,
               COALESCE(pk.revoked_at, ak.revoked_at) AS revoked_at,
               COALESCE(pk.permissions, ak.permissions) AS permissions,
               l.scopes, l.requests_per_minute, l.tokens_per_minute, l.concurrent_requests
          FROM key_directory d
          JOIN organizations o ON o.id = d.organization_id
          LEFT JOIN project_keys pk
            ON d.key_kind = 'project'
           AND pk.organization_id = d.organization_id AND pk.id = d.key_id
          LEFT JOIN projects p
            ON p.organization_id = pk.organization_id AND p.id = pk.project_id
          LEFT JOIN admin_keys ak
            ON d.key_kind = 'admin'
           AND ak.organization_id = d.organization_id AND ak.id = d.key_id
         CROSS JOIN LATERAL (
                SELECT array_agg(scope) AS scopes,
                       array_agg(requests_per_minute) AS requests_per_minute,
                       array_agg(tokens_per_minute) AS tokens_per_minute,
                       array_agg(concurrent_requests) AS concurrent_requests
                  FROM rate_limits
                 WHERE d.key_kind = 'project'
                   AND organization_id = d.organization_id
                   AND scope_id = ANY (ARRAY[d.organization_id, pk.project_id, pk.id])
               ) l
         WHERE d.digest = ANY($1::bytea[])
        """,
        digests,
    )
    return {row["digest"]: _known(row, _limits(row)) for row in rows}


def _limits(row: Row) -> ScopedLimits:
    """Of each scope the lower of what the operator and the organization have set."""
    if row["scopes"] is None:
        return UNLIMITED_EVERYWHERE
    lowest = {"organization": UNLIMITED, "project": UNLIMITED, "api_key": UNLIMITED}
    names = ("requests_per_minute", "tokens_per_minute", "concurrent_requests")
    for position, scope in enumerate(row["scopes"]):
        limits = TrafficLimits(**{name: row[name][position] for name in names})
        lowest[scope] = lowest[scope].lowered(limits)
    return lowest["organization"], lowest["project"], lowest["api_key"]


def _known(row: Row, limits: ScopedLimits) -> KnownKey:
    kind = KeyKind(row["key_kind"])
    is_admin = kind is KeyKind.ADMIN
    models = row["allowed_models"]
    return KnownKey(
        kind=kind,
        organization_id=OrganizationId(row["organization_id"]),
        organization_status=row["status"],
        policy_version=row["policy_version"],
        catalog_version=row["catalog_version"],
        admin_key_id=AdminKeyId(row["key_id"]) if is_admin else None,
        project_key_id=None if is_admin else ProjectKeyId(row["key_id"]),
        project_id=None if is_admin else ProjectId(row["project_id"]),
        is_project_archived=row["archived_at"] is not None,
        permissions=frozenset(row["permissions"] or ()),
        holds_all=is_admin and row["permissions"] is None,
        allowed_models=None if models is None else frozenset(models),
        granted_checks=frozenset(row["granted_checks"]),
        is_suspended=row["suspended_at"] is not None,
        is_revoked=row["revoked_at"] is not None,
        expires_at=row["expires_at"],
        limits=limits,
    )


async def get_admin_caller_for_share(
    tx: Mutation, organization_id: OrganizationId, key_id: AdminKeyId
) -> KnownKey | None:
    """Read what the directory says of an Admin key, and keep key and organization as they are.

    The organization is held more weakly: against a change of its state, which locks the whole
    row, and not against its version numbers, which two changes may want to raise at once.
    """
    row = await tx.fetch_one(
        """
        SELECT 'admin' AS key_kind, ak.organization_id, ak.id AS key_id, ak.expires_at,
               o.status, o.policy_version, o.catalog_version,
               NULL AS project_id, NULL AS archived_at, NULL AS suspended_at,
               NULL AS allowed_models, '{}'::text[] AS granted_checks,
               ak.revoked_at, ak.permissions
          FROM admin_keys ak
          JOIN organizations o ON o.id = ak.organization_id
         WHERE ak.organization_id = $1
           AND ak.id = $2
           FOR SHARE OF ak
           FOR KEY SHARE OF o
        """,
        organization_id,
        key_id,
    )
    return None if row is None else _known(row, UNLIMITED_EVERYWHERE)


async def insert_secret(
    tx: Mutation,
    organization_id: OrganizationId,
    kind: KeyKind,
    key_id: ProjectKeyId | AdminKeyId,
    secret: NewSecret,
) -> None:
    """Enter a secret into the directory."""
    await tx.execute(
        """
        INSERT INTO key_directory (digest, pepper_version, organization_id, key_kind, key_id)
        VALUES ($1, $2, $3, $4, $5)
        """,
        secret.digest,
        secret.pepper_version,
        organization_id,
        kind,
        key_id,
    )


async def expire_secrets(
    tx: Mutation, organization_id: OrganizationId, key_id: ProjectKeyId, *, at: datetime
) -> None:
    """End the present secret, which alone has no end yet, at a time, and all before it now."""
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
    """Count project keys that are neither revoked nor expired, up to a bound."""
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
    """Count Admin keys that are neither revoked nor expired, up to a bound."""
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
    """Read one, with the name of its project."""
    row = await tx.fetch_one(
        """
        SELECT k.*, p.name AS project_name
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
    """Read one and hold its row."""
    row = await tx.fetch_one(
        """
        SELECT k.*, p.name AS project_name
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
    """Write what can change."""
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
    """In order of creation, whatever their state."""
    rows = await tx.fetch_all(
        """
        SELECT k.*, p.name AS project_name
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
    """Read one, revoked or not."""
    row = await tx.fetch_one(
        "SELECT * FROM admin_keys WHERE organization_id = $1 AND id = $2", organization_id, key_id
    )
    return None if row is None else _admin_key(row)


async def get_admin_key_for_update(
    tx: Mutation, organization_id: OrganizationId, key_id: AdminKeyId
) -> AdminKey | None:
    """Read one and hold its row."""
    row = await tx.fetch_one(
        "SELECT * FROM admin_keys WHERE organization_id = $1 AND id = $2 FOR UPDATE",
        organization_id,
        key_id,
    )
    return None if row is None else _admin_key(row)


async def save_admin_key_revocation(tx: Mutation, key: AdminKey) -> None:
    """Write the one thing that can change."""
    await tx.execute(
        "UPDATE admin_keys SET revoked_at = $3 WHERE organization_id = $1 AND id = $2",
        key.organization_id,
        key.id,
        key.revoked_at,
    )


async def page_of_admin_keys(
    tx: Transaction, organization_id: OrganizationId, *, after: AdminKeyId | None, limit: int
) -> list[AdminKey]:
    """Oldest first; revoked ones are not listed."""
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
    """Newest first; revoked ones are not listed."""
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


async def lock_peppers(  # all organizations: peppers are the deployment's
    tx: Transaction,
) -> None:
    """One after the other: who enters a version sees who came before, and what they accept."""
    await tx.execute("LOCK TABLE peppers IN SHARE ROW EXCLUSIVE MODE")


async def register_peppers(  # all organizations: peppers are the deployment's
    tx: Transaction, checks: Mapping[int, bytes]
) -> dict[int, bytes]:
    """Enter new versions; returns the check digests of all that are known now."""
    await tx.execute(
        """
        INSERT INTO peppers (version, check_digest)
        SELECT * FROM unnest($1::smallint[], $2::bytea[])
        ON CONFLICT (version) DO NOTHING
        """,
        list(checks),
        list(checks.values()),
    )
    return await known_peppers(tx)


async def known_peppers(  # all organizations: peppers are the deployment's
    tx: Transaction,
) -> dict[int, bytes]:
    """The check digests of all versions."""
    rows = await tx.fetch_all("SELECT version, check_digest FROM peppers")
    return {row["version"]: row["check_digest"] for row in rows}


async def delete_secrets_of_pepper(  # all organizations: peppers are the deployment's
    tx: Transaction, version: int
) -> int:
    """Remove a version and every secret that was made with it."""
    await tx.execute("DELETE FROM peppers WHERE version = $1", version)
    return await tx.execute("DELETE FROM key_directory WHERE pepper_version = $1", version)


async def count_secrets_by_pepper(  # all organizations: peppers are the deployment's
    tx: Transaction,
) -> dict[int, int]:
    """How many secrets each version has."""
    rows = await tx.fetch_all(
        """
        SELECT p.version, count(d.digest) AS secrets
          FROM peppers p
          LEFT JOIN key_directory d ON d.pepper_version = p.version
         GROUP BY p.version
        """
    )
    return {row["version"]: row["secrets"] for row in rows}


async def delete_expired_secrets(  # all organizations: an expired secret is nobody's
    tx: Transaction, rows_max: int, *, expired_before: datetime
) -> int:
    """Remove some of what rotations have left behind."""
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
