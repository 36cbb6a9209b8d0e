"""How values of attribution and the requests that named them are moved to another cell."""

from typing import Final

from tollhouse.storage.portable import PortableTable

VALUES: Final = PortableTable(
    name="attribution_values",
    read="""
        SELECT to_jsonb(t)::text AS line
          FROM attribution_values t
         WHERE organization_id = $1
         ORDER BY id
    """,
    remove="DELETE FROM attribution_values WHERE organization_id = $1",
    write="""
        INSERT INTO attribution_values
        SELECT r.*
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::attribution_values, line::jsonb) r
    """,
)

REQUESTS: Final = PortableTable(
    name="request_attributions",
    read="""
        SELECT to_jsonb(t)::text AS line
          FROM request_attributions t
         WHERE organization_id = $1
         ORDER BY dimension COLLATE "C", request_id
    """,
    remove="DELETE FROM request_attributions WHERE organization_id = $1",
    write="""
        INSERT INTO request_attributions
        SELECT r.*
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::request_attributions, line::jsonb) r
    """,
)

TABLES: Final = (VALUES, REQUESTS)
