"""How the audit log and idempotency records are moved to another cell."""

from typing import Final

from tollhouse.storage.portable import PortableTable

AUDIT_LOG: Final = PortableTable(
    name="audit_log",
    read="""
        SELECT to_jsonb(t)::text AS line
          FROM audit_log t
         WHERE organization_id = $1
         ORDER BY id
    """,
    write="""
        INSERT INTO audit_log
        SELECT r.*
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::audit_log, line::jsonb) r
        ON CONFLICT DO NOTHING
    """,
)
# A value that can be replayed for a day is encrypted for its own cell, so it stays there.
IDEMPOTENCY_RECORDS: Final = PortableTable(
    name="idempotency_records",
    read="""
        SELECT (to_jsonb(t) - '{sealed,sealed_day}'::text[])::text AS line
          FROM idempotency_records t
         WHERE organization_id = $1
         ORDER BY idempotency_key COLLATE "C"
    """,
    remove="DELETE FROM idempotency_records WHERE organization_id = $1",
    write="""
        INSERT INTO idempotency_records
        SELECT r.*
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::idempotency_records, line::jsonb) r
    """,
)

TABLES: Final = (AUDIT_LOG, IDEMPOTENCY_RECORDS)
