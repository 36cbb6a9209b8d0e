"""How the audit log with its chain and idempotency records are moved to another cell."""

from typing import Final

from tollhouse.storage.portable import portable_table

AUDIT_LOG: Final = portable_table("audit_log", order="id", on_conflict="DO NOTHING")
AUDIT_CHAIN: Final = portable_table("audit_chain", order="number", on_conflict="DO NOTHING")
AUDIT_HEADS: Final = portable_table("audit_heads", order="number")
# A value that can be replayed for a day is encrypted for its own cell, so it stays there.
IDEMPOTENCY_RECORDS: Final = portable_table(
    "idempotency_records",
    order='idempotency_key COLLATE "C"',
    without="sealed,sealed_day",
)

TABLES: Final = (AUDIT_LOG, AUDIT_CHAIN, AUDIT_HEADS, IDEMPOTENCY_RECORDS)
