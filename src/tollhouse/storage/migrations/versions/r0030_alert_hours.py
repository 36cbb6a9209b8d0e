"""How many alerts of an organization were attempted in the present hour, and those withheld."""

from typing import Final

revision = "0030"
down_revision = "0029"

STATEMENTS: Final = (
    """
    CREATE TABLE alert_hours (
        organization_id uuid PRIMARY KEY,
        hour            timestamptz NOT NULL,
        attempts        integer NOT NULL
    )
    """,
    """
    COMMENT ON TABLE alert_hours IS
        'Attempts in the latest hour. Kept apart from deliveries, which go with their subscription.'
    """,
    """
    ALTER TABLE alert_deliveries
      DROP CONSTRAINT alert_deliveries_state_check,
      ADD CONSTRAINT alert_deliveries_state_check
          CHECK (state IN ('pending', 'delivered', 'failed', 'withheld')) NOT VALID
    """,
)

CONTRACT: Final[tuple[str, ...]] = ()
