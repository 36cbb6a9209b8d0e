"""Fallbacks: a hold may be settled under the model that answered instead of the one that was held.

Records of requests say which model was requested, if another one answered, and which tools were
left out.
"""

from typing import Final

from tollhouse.storage.migrations import ledger_resolution

revision = "0020"
down_revision = "0019"


STATEMENTS: Final = (
    ledger_resolution.answered(ledger_resolution.SETTLE_BATCH),
    "ALTER FUNCTION ledger_settle_answered SET plan_cache_mode = force_generic_plan",
    "ALTER FUNCTION ledger_settle_answered SET enable_seqscan = off",
    """
    ALTER TABLE requests
      ADD COLUMN requested_model text,
      ADD COLUMN dropped_tools text
    """,
    """
    COMMENT ON COLUMN requests.requested_model IS
        'The model or alias that the caller named, if the column model has another one'
    """,
    """
    COMMENT ON COLUMN requests.dropped_tools IS
        'The types of the tools that were left out, as the caller wrote them, separated by commas'
    """,
)

CONTRACT: Final = ()
