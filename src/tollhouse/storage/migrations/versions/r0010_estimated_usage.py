"""Activity says whether tokens are an estimate, and usage above a bound has an excess of its own.

Output above the caller's bound is an excess although the hold is not used up: what was held for
the prompt does not pay for it.
"""

from typing import Final

revision = "0010"
down_revision = "0009"

STATEMENTS: Final = (
    """
    ALTER TABLE requests
      ADD COLUMN is_estimated boolean NOT NULL DEFAULT false
    """,
    """
    COMMENT ON COLUMN requests.is_estimated IS
        'The gateway counted part of the tokens, because the engine did not report them'
    """,
    "ALTER TABLE ledger_entries DROP CONSTRAINT entries_excess_above_hold",
    """
    ALTER TABLE ledger_entries
      ADD CONSTRAINT entries_excess_above_hold CHECK (
        excess_pico = 0 OR posted_pico = held_pico
        OR operator_pays IS NOT DISTINCT FROM 'above_hold') NOT VALID
    """,
)
