"""How an organization's own rows are moved to another cell."""

from typing import Final

from tollhouse.storage.portable import PortableTable, portable_table

ORGANIZATION: Final = PortableTable(
    name="organizations",
    read="""
        SELECT (to_jsonb(t) - '{move_state,move_id,move_cell,frozen_until}'::text[])::text AS line
          FROM organizations t
         WHERE id = $1
    """,
    # Until it is activated, the organization is frozen here.
    write="""
        INSERT INTO organizations AS o
               (id, name, status, policy_version, catalog_version, created_at, attribution,
                move_state, frozen_until)
        SELECT r.id, r.name, r.status, r.policy_version, r.catalog_version, r.created_at,
               r.attribution, 'arriving', '9999-12-31 UTC'
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::organizations, line::jsonb) r
        ON CONFLICT (id) DO UPDATE
           SET name = EXCLUDED.name, status = EXCLUDED.status,
               policy_version = EXCLUDED.policy_version,
               catalog_version = EXCLUDED.catalog_version, created_at = EXCLUDED.created_at,
               attribution = EXCLUDED.attribution,
               move_state = EXCLUDED.move_state, frozen_until = EXCLUDED.frozen_until
    """,
)
CHECKS: Final = portable_table("organization_checks", order='check_name COLLATE "C"')

TABLES: Final = (ORGANIZATION, CHECKS)
