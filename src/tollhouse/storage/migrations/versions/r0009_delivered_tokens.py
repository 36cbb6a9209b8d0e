"""What was delivered, whether usage is an estimate, and why the operator pays: in each entry.

The columns are added without reading a row, whatever the ledger's size; the new check is not
applied to rows that are there already, in which all three columns are empty.
"""

from typing import Final

from tollhouse.storage.migrations.ledger_settlement import FUNCTIONS

revision = "0009"
down_revision = "0008"

STATEMENTS: Final = (
    """
    ALTER TABLE ledger_entries
      ADD COLUMN delivered_tokens bigint,
      ADD COLUMN is_estimated boolean NOT NULL DEFAULT false,
      ADD COLUMN operator_pays text
    """,
    """
    ALTER TABLE ledger_entries
      ADD CONSTRAINT entries_hold_delivers_nothing CHECK (
        CASE phase WHEN 0 THEN delivered_tokens IS NULL AND NOT is_estimated
                               AND operator_pays IS NULL
                   ELSE delivered_tokens IS NULL OR delivered_tokens >= 0 END) NOT VALID
    """,
    """
    COMMENT ON COLUMN ledger_entries.delivered_tokens IS
        'Counted output tokens that were sent to the caller. NULL: a hold, or nobody counted.'
    """,
    """
    COMMENT ON COLUMN ledger_entries.is_estimated IS
        'The engine reported no usage that can be believed, so Tollhouse counted it.'
    """,
    """
    COMMENT ON COLUMN ledger_entries.operator_pays IS
        'The rule under which the operator pays for a part. NULL: the caller pays for all of it.'
    """,
    "ALTER TABLE cost_daily ADD COLUMN estimated_requests bigint NOT NULL DEFAULT 0",
    "ALTER TABLE cost_hourly ADD COLUMN estimated_requests bigint NOT NULL DEFAULT 0",
    "ALTER TABLE ledger_closings ADD COLUMN estimated_requests bigint NOT NULL DEFAULT 0",
    *FUNCTIONS,
)
