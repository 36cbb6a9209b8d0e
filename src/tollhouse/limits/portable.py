"""How rate limits are moved to another cell. Counts of the last minute are not."""

from typing import Final

from tollhouse.storage.portable import portable_table

RATE_LIMITS: Final = portable_table(
    "rate_limits",
    order='scope_id, scope COLLATE "C", owner COLLATE "C"',
)

TABLES: Final = (RATE_LIMITS,)
