"""How policies and their versions are moved to another cell."""

from typing import Final

from tollhouse.storage.portable import portable_table

POLICIES: Final = portable_table(
    "policies",
    order="id",
    on_conflict="""
        (organization_id, id) DO UPDATE
           SET name = EXCLUDED.name, description = EXCLUDED.description, state = EXCLUDED.state,
               revision = EXCLUDED.revision, rule = EXCLUDED.rule, direction = EXCLUDED.direction,
               mode = EXCLUDED.mode, scope = EXCLUDED.scope, project_ids = EXCLUDED.project_ids,
               match_threshold_basis_points = EXCLUDED.match_threshold_basis_points,
               base_version = EXCLUDED.base_version, current_version = EXCLUDED.current_version,
               updated_at = EXCLUDED.updated_at, ends_answer_early = EXCLUDED.ends_answer_early
    """,
)
VERSIONS: Final = portable_table(
    "policy_versions",
    order="policy_id, version",
    on_conflict="DO NOTHING",
)
TARGETS: Final = portable_table("policy_targets", order="policy_id, project_id")

TABLES: Final = (POLICIES, VERSIONS, TARGETS)
