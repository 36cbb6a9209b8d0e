"""How projects are moved to another cell."""

from typing import Final

from tollhouse.storage.portable import PortableTable

PROJECTS: Final = PortableTable(
    name="projects",
    read="""
        SELECT to_jsonb(t)::text AS line
          FROM projects t
         WHERE organization_id = $1
         ORDER BY id
    """,
    write="""
        INSERT INTO projects
        SELECT r.*
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::projects, line::jsonb) r
        ON CONFLICT (organization_id, id) DO UPDATE
           SET name = EXCLUDED.name, archived_at = EXCLUDED.archived_at,
               allowed_models = EXCLUDED.allowed_models
    """,
)

TABLES: Final = (PROJECTS,)
