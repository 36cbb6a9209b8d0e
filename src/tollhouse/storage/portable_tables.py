"""How the audit log and idempotency records are moved to another cell."""

from typing import Final

from tollhouse.storage.portable import portable_table

AUDIT_LOG: Final = portable_table("audit_log", order="id", on_conflict="DO NOTHING")
# A value that can be replayed for a day is encrypted for its own cell, so it stays there.
IDEMPOTENCY_RECORDS: Final = portable_table(
    "idempotency_records",
    order='idempotency_key COLLATE "C"',
    without="sealed,sealed_day",
)

TABLES: Final = (AUDIT_LOG, IDEMPOTENCY_RECORDS)
