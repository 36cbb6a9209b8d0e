"""How rate limits are moved to another cell. Counts of the last minute are not."""

from typing import Final

from tollhouse.storage.portable import PortableTable

RATE_LIMITS: Final = PortableTable(
    name="rate_limits",
    read="""
        SELECT to_jsonb(t)::text AS line
          FROM rate_limits t
         WHERE organization_id = $1
         ORDER BY scope_id, scope COLLATE "C", owner COLLATE "C"
    """,
    remove="DELETE FROM rate_limits WHERE organization_id = $1",
    write="""
        INSERT INTO rate_limits
        SELECT r.*
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::rate_limits, line::jsonb) r
    """,
)

TABLES: Final = (RATE_LIMITS,)
