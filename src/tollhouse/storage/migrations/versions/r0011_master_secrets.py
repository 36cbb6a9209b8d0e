"""The master secrets that each worker accepts: a new one is used once all of them do."""

from typing import Final

revision = "0011"
down_revision = "0010"

STATEMENTS: Final = (
    """
    ALTER TABLE instances
      ADD COLUMN master_ids text[] NOT NULL DEFAULT '{}'
    """,
    """
    COMMENT ON COLUMN instances.master_ids IS
        'Digests that name the accepted master secrets, the preferred one first. '
        'Empty: written by a version that did not report them.'
    """,
)
