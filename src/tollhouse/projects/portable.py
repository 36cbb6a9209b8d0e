"""How projects are moved to another cell."""

from typing import Final

from tollhouse.storage.portable import portable_table

PROJECTS: Final = portable_table(
    "projects",
    order="id",
    on_conflict="""
        (organization_id, id) DO UPDATE
           SET name = EXCLUDED.name, archived_at = EXCLUDED.archived_at,
               allowed_models = EXCLUDED.allowed_models
    """,
)

TABLES: Final = (PROJECTS,)
