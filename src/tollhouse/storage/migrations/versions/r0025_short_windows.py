"""Caps by UTC day and by week, counted in the rows of the month and the lifetime.

A cap of a day or week can be set after the contract step: a worker of the previous release neither
lists it nor names it in a refusal. Both releases count the windows from the expand step on, because
the functions do.
"""

from typing import Final

from tollhouse.storage.migrations import ledger_short_windows

revision = "0025"
down_revision = "0024"

_ON_SHORT_WINDOW: Final = """
CREATE FUNCTION alert_on_short_window() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_period text := CASE NEW.window_start WHEN '-infinity' THEN 'week' ELSE 'day' END;
BEGIN
    IF NEW.short_start = alert_window(v_period) THEN
        PERFORM alert_raise_cap(
            NEW, v_period, NEW.short_start, NEW.short_limit_pico, NEW.short_settled_pico,
            coalesce(div(OLD.short_settled_pico * 100, nullif(OLD.short_limit_pico, 0)), -1), NULL);
    END IF;
    RETURN NULL;
END
$$
"""
_ON_SHORT_TRIGGER: Final = """
CREATE TRIGGER spending_counters_short_alert
AFTER UPDATE OF short_settled_pico, short_limit_pico ON spending_counters
FOR EACH ROW
WHEN (NEW.short_limit_pico > 0
      AND div(NEW.short_settled_pico * 100, nullif(NEW.short_limit_pico, 0))
          > coalesce(div(OLD.short_settled_pico * 100, nullif(OLD.short_limit_pico, 0)), -1))
EXECUTE FUNCTION alert_on_short_window()
"""
# As in revision 0024; a day may have the date with which a month begins.
_EVALUATE: Final = """
CREATE OR REPLACE FUNCTION alert_evaluate(p_organization_id uuid, p_subscription_id uuid)
RETURNS void LANGUAGE sql AS $$
    SELECT alert_raise_credit(a.organization_id, a.credit_pico, a.settled_pico, NULL, NULL,
                              p_subscription_id)
      FROM accounts a
     WHERE a.organization_id = p_organization_id;
    SELECT alert_raise_cap(n, c.period, n.window_start, n.limit_pico, n.settled_pico, 0,
                           p_subscription_id)
      FROM spending_caps c
      JOIN spending_counters n
        ON n.organization_id = c.organization_id
       AND n.scope = c.scope
       AND n.scope_id = c.scope_id
       AND n.window_start = alert_window(c.period)
     WHERE c.organization_id = p_organization_id
       AND c.period IN ('month', 'lifetime');
    SELECT alert_raise_cap(n, c.period, n.short_start, n.short_limit_pico, n.short_settled_pico, 0,
                           p_subscription_id)
      FROM spending_caps c
      JOIN spending_counters n
        ON n.organization_id = c.organization_id
       AND n.scope = c.scope
       AND n.scope_id = c.scope_id
       AND n.short_start = alert_window(c.period)
       AND n.window_start = alert_window(CASE c.period WHEN 'week' THEN 'lifetime' ELSE 'month' END)
     WHERE c.organization_id = p_organization_id
       AND c.period IN ('day', 'week');
$$
"""

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
    *(_ON_SHORT_WINDOW, _ON_SHORT_TRIGGER, _EVALUATE),
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
