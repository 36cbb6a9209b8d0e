"""How policies and their versions are moved to another cell."""

from typing import Final

from tollhouse.storage.portable import PortableTable

POLICIES: Final = PortableTable(
    name="policies",
    read="""
        SELECT to_jsonb(t)::text AS line
          FROM policies t
         WHERE organization_id = $1
         ORDER BY id
    """,
    write="""
        INSERT INTO policies
        SELECT r.*
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::policies, line::jsonb) r
        ON CONFLICT (organization_id, id) DO UPDATE
           SET name = EXCLUDED.name, description = EXCLUDED.description, state = EXCLUDED.state,
               revision = EXCLUDED.revision, rule = EXCLUDED.rule, direction = EXCLUDED.direction,
               mode = EXCLUDED.mode, scope = EXCLUDED.scope, project_ids = EXCLUDED.project_ids,
               match_threshold_basis_points = EXCLUDED.match_threshold_basis_points,
               base_version = EXCLUDED.base_version, current_version = EXCLUDED.current_version,
               updated_at = EXCLUDED.updated_at, ends_answer_early = EXCLUDED.ends_answer_early
    """,
)
VERSIONS: Final = PortableTable(
    name="policy_versions",
    read="""
        SELECT to_jsonb(t)::text AS line
          FROM policy_versions t
         WHERE organization_id = $1
         ORDER BY policy_id, version
    """,
    write="""
        INSERT INTO policy_versions
        SELECT r.*
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::policy_versions, line::jsonb) r
        ON CONFLICT DO NOTHING
    """,
)
TARGETS: Final = PortableTable(
    name="policy_targets",
    read="""
        SELECT to_jsonb(t)::text AS line
          FROM policy_targets t
         WHERE organization_id = $1
         ORDER BY policy_id, project_id
    """,
    remove="DELETE FROM policy_targets WHERE organization_id = $1",
    write="""
        INSERT INTO policy_targets
        SELECT r.*
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::policy_targets, line::jsonb) r
    """,
)

TABLES: Final = (POLICIES, VERSIONS, TARGETS)
