"""Caps by UTC day and by week, counted in the rows of the month and the lifetime.

A cap of a day or week can be set after the contract step: a worker of the previous release neither
lists it nor names it in a refusal. Both releases count the windows from the expand step on, because
the functions do.
"""

from typing import Final

from tollhouse.storage.migrations import ledger_short_windows

revision = "0024"
down_revision = "0023"

STATEMENTS: Final = (
    """
    ALTER TABLE spending_counters
      ADD COLUMN short_start date,
      ADD COLUMN short_settled_pico numeric(38,0),
      ADD COLUMN short_reserved_pico numeric(38,0),
      ADD COLUMN short_limit_pico numeric(38,0),
      ADD COLUMN short_ceiling_pico numeric(38,0),
      ADD COLUMN short_alert_pico numeric(38,0),
      ADD COLUMN short_is_alerted boolean NOT NULL DEFAULT false,
      ADD COLUMN previous_settled_pico numeric(38,0),
      ADD COLUMN previous_reserved_pico numeric(38,0)
    """,
    # Of rows that are there already, nothing is known about their short windows.
    """
    ALTER TABLE spending_counters
      ALTER COLUMN short_start SET DEFAULT '-infinity',
      ALTER COLUMN short_settled_pico SET DEFAULT 0,
      ALTER COLUMN short_reserved_pico SET DEFAULT 0,
      ALTER COLUMN previous_settled_pico SET DEFAULT 0,
      ALTER COLUMN previous_reserved_pico SET DEFAULT 0
    """,
    """
    COMMENT ON COLUMN spending_counters.short_start IS
        'The newest day of a month''s row or week of a lifetime''s in which a hold was admitted;'
        ' the columns previous_* are of the day or week before. NULL: not counted yet'
    """,
    """
    ALTER TABLE spending_alerts
      ADD COLUMN period text
    """,
    """
    COMMENT ON COLUMN spending_alerts.period IS
        'day or week; NULL for a month, a lifetime and the credit'
    """,
    *ledger_short_windows.FUNCTIONS,
)

CONTRACT: Final = (
    """
    ALTER TABLE spending_caps
      DROP CONSTRAINT spending_caps_period_check,
      ADD CONSTRAINT spending_caps_period_check
          CHECK (period IN ('day', 'week', 'month', 'lifetime'))
    """,
    """
    ALTER TABLE spending_counters
      ADD CONSTRAINT short_windows_reserve_nothing_negative
          CHECK (short_reserved_pico >= 0 AND previous_reserved_pico >= 0),
      ADD CONSTRAINT short_caps_never_crossed
          CHECK (short_settled_pico + short_reserved_pico <= short_ceiling_pico)
    """,
)
