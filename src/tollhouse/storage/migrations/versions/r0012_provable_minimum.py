"""What is certain about an unsettled hold: the charge that is posted if nobody learns more."""

from typing import Final

revision = "0012"
down_revision = "0011"

STATEMENTS: Final = (
    """
    ALTER TABLE unsettled_holds
      ADD COLUMN provable_charge  jsonb,
      ADD COLUMN delivered_tokens bigint,
      ADD COLUMN is_estimated     boolean NOT NULL DEFAULT false
    """,
    """
    COMMENT ON COLUMN unsettled_holds.provable_charge IS
        'The members of a charge, as its worker had counted them; null where a worker was lost'
    """,
)
