"""How keys are moved to another cell: their digests, never their values.

A digest is known where its pepper is. Two cells number their peppers each for itself, so a line
has the pepper's check digest instead of its version.
"""

from collections.abc import Sequence
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.storage.database import Transaction
from tollhouse.storage.portable import PortableTable, portable_table

PROJECT_KEYS: Final = portable_table(
    "project_keys",
    order="id",
    on_conflict="""
        (organization_id, id) DO UPDATE
           SET name = EXCLUDED.name, redacted_value = EXCLUDED.redacted_value,
               permissions = EXCLUDED.permissions, allowed_models = EXCLUDED.allowed_models,
               last_used_at = EXCLUDED.last_used_at, expires_at = EXCLUDED.expires_at,
               suspended_at = EXCLUDED.suspended_at, revoked_at = EXCLUDED.revoked_at
    """,
)
ADMIN_KEYS: Final = portable_table(
    "admin_keys",
    order="id",
    on_conflict="""
        (organization_id, id) DO UPDATE
           SET name = EXCLUDED.name, redacted_value = EXCLUDED.redacted_value,
               permissions = EXCLUDED.permissions, last_used_at = EXCLUDED.last_used_at,
               expires_at = EXCLUDED.expires_at, revoked_at = EXCLUDED.revoked_at
    """,
)
KEY_DIRECTORY: Final = PortableTable(
    name="key_directory",
    read="""
        SELECT (to_jsonb(t) - 'pepper_version'
                || jsonb_build_object('pepper', encode(p.check_digest, 'hex')))::text AS line
          FROM key_directory t
          LEFT JOIN peppers p ON p.version = t.pepper_version
         WHERE organization_id = $1
         ORDER BY digest
    """,
    remove="DELETE FROM key_directory WHERE organization_id = $1",
    write="""
        INSERT INTO key_directory
               (digest, pepper_version, organization_id, key_kind, key_id, expires_at)
        SELECT r.digest, p.version, r.organization_id, r.key_kind, r.key_id, r.expires_at
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::key_directory, line::jsonb) r
          JOIN peppers p ON p.check_digest = decode(line::jsonb ->> 'pepper', 'hex')
    """,
)

TABLES: Final = (PROJECT_KEYS, ADMIN_KEYS, KEY_DIRECTORY)


async def pepper_checks(tx: Transaction, organization_id: OrganizationId) -> list[str]:
    """Return the check digests of the peppers that the organization's keys were made with."""
    rows = await tx.fetch_all(
        """
        SELECT DISTINCT coalesce(encode(p.check_digest, 'hex'),
                                 'version ' || d.pepper_version) AS pepper
          FROM key_directory d
          LEFT JOIN peppers p ON p.version = d.pepper_version
         WHERE d.organization_id = $1
         ORDER BY 1
        """,
        organization_id,
    )
    return [row["pepper"] for row in rows]


async def versions_of(  # all organizations: peppers are the deployment's
    tx: Transaction, pepper_checks: Sequence[str]
) -> dict[str, int]:
    """Return the versions that this cell has of these peppers, by check digest."""
    rows = await tx.fetch_all(
        """
        SELECT encode(check_digest, 'hex') AS pepper, version
          FROM peppers
         WHERE encode(check_digest, 'hex') = ANY($1::text[])
        """,
        pepper_checks,
    )
    return {row["pepper"]: row["version"] for row in rows}


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
