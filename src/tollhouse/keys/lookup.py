"""The query that finds the keys of a batch of secrets."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tollhouse.base.ids import AdminKeyId, OrganizationId, ProjectId, ProjectKeyId
from tollhouse.base.traffic import (
    UNLIMITED,
    UNLIMITED_EVERYWHERE,
    ScopedLimits,
    TrafficLimits,
)
from tollhouse.keys.types import KeyKind, KnownKey
from tollhouse.storage.database import Database, Mutation, Row, Transaction

_KEYS: Final = """
    SELECT d.digest, d.key_kind, d.organization_id, d.key_id,
           LEAST(d.expires_at, pk.expires_at, ak.expires_at) AS expires_at,
           o.status, o.policy_version, o.catalog_version, o.move_state, o.move_cell, o.frozen_until,
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
"""
_PERSON: Final = """
    SELECT 'admin' AS key_kind, o.id AS organization_id, $2::uuid AS key_id,
           NULL::timestamptz AS expires_at, o.status, o.policy_version, o.catalog_version,
           o.move_state, o.move_cell, o.frozen_until,
           NULL AS project_id, NULL AS archived_at, NULL AS suspended_at,
           NULL AS allowed_models, '{}'::text[] AS granted_checks,
           NULL AS revoked_at, $3::text[] AS permissions
      FROM organizations o
     WHERE o.id = $1
"""
_PERSON_FOR_SHARE: Final = f"{_PERSON} FOR KEY SHARE OF o"
_FIND: Final = f"{_KEYS} WHERE d.digest = ANY($1::bytea[])"
# PostgreSQL plans the statement for every array anew, because it knows how many elements it has.
_FIND_ONE: Final = f"{_KEYS} WHERE d.digest = $1"


async def find_by_digests(  # all organizations: the secret determines which one
    database: Database, digests: Sequence[bytes]
) -> dict[bytes, KnownKey]:
    """Return the keys that exist, by digest, with all data that authorization needs."""
    if len(digests) == 1:
        rows = await database.fetch_all(_FIND_ONE, digests[0])
    else:
        rows = await database.fetch_all(_FIND, digests)
    return {row["digest"]: _known(row, _limits(row)) for row in rows}


async def find_by_digest(  # all organizations: the secret determines which one
    tx: Transaction, digest: bytes
) -> KnownKey | None:
    """Return the key that a stored digest belongs to, or None."""
    row = await tx.fetch_one(_FIND_ONE, digest)
    return None if row is None else _known(row, _limits(row))


async def get_admin_caller_for_share(
    tx: Mutation, organization_id: OrganizationId, key_id: AdminKeyId
) -> KnownKey | None:
    """Return an Admin key as the directory does, and lock it and its organization's status.

    The organization has the weaker lock: it blocks a change of status, which locks the whole row,
    but not an update of the version numbers, which two changes may raise concurrently.
    """
    row = await tx.fetch_one(
        """
        SELECT 'admin' AS key_kind, ak.organization_id, ak.id AS key_id, ak.expires_at,
               o.status, o.policy_version, o.catalog_version,
               o.move_state, o.move_cell, o.frozen_until,
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


async def get_person(
    tx: Transaction,
    organization_id: OrganizationId,
    person_id: UUID,
    *,
    permissions: frozenset[str] | None,
) -> KnownKey | None:
    """Return a person as the directory returns an Admin key. `permissions` of None means all.

    In a `Mutation` it locks the organization as `get_admin_caller_for_share` does.
    """
    held = None if permissions is None else sorted(permissions)
    if isinstance(tx, Mutation):
        row = await tx.fetch_one(_PERSON_FOR_SHARE, organization_id, person_id, held)
    else:
        row = await tx.fetch_one(_PERSON, organization_id, person_id, held)
    return None if row is None else _known(row, UNLIMITED_EVERYWHERE)


def _limits(row: Row) -> ScopedLimits:
    """Return the limits of each scope: the lower of the operator's and the organization's."""
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
        is_moved=row["move_state"] == "moved",
        move_cell=row["move_cell"],
        frozen_until=row["frozen_until"],
    )


async def redacted_values(tx: Transaction, organization_id: OrganizationId) -> list[str]:
    """Return what may be shown of the keys that still work."""
    rows = await tx.fetch_all(
        """
        SELECT redacted_value
          FROM (SELECT redacted_value, expires_at, revoked_at
                  FROM project_keys
                 WHERE organization_id = $1
                 UNION ALL
                SELECT redacted_value, expires_at, revoked_at
                  FROM admin_keys
                 WHERE organization_id = $1) k
         WHERE revoked_at IS NULL
           AND (expires_at IS NULL OR expires_at > clock_timestamp())
         ORDER BY redacted_value COLLATE "C"
        """,
        organization_id,
    )
    return [row["redacted_value"] for row in rows]
