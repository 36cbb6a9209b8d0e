"""The functions of revision 0025: caps by day and week, in the rows that every hold changes anyway.

A month's counter also has its current and previous day, a lifetime's its current and previous week:
the *short* windows. The plain case needs a row whose current window is that of the hold. A window
that begins, and a hold of the window before, are left to `ledger_admit_each` and
`ledger_settle_batch`, once a day for each key and in the seconds around midnight.

A row of an earlier revision has NULL as its short window until `ledger/short_windows.py` fills it.
"""

from typing import Final

from tollhouse.storage.migrations import ledger_admission, ledger_resolution
from tollhouse.storage.migrations.ledger_windows import HELPERS, WINDOWS, changed


def _between(function: str, first: str, last: str) -> str:
    """Return the part of a function from `first` up to and including the next `last`."""
    start = function.index(first)
    return function[start : function.index(last, start) + len(last)]


_ADMIT_EACH: Final = changed(
    ledger_admission.ADMIT_EACH_UNFROZEN,
    (
        _between(
            ledger_admission.ADMIT_EACH_UNFROZEN,
            "PERFORM ledger_open_counters",
            "HAVING count(*) > 0;",
        ),
        "PERFORM ledger_begin_windows(i);",
    ),
    (
        _between(ledger_admission.ADMIT_EACH_UNFROZEN, "SELECT k.position, c.scope", "LIMIT 1;"),
        f"""SELECT w.position, c.scope, c.scope_id, w.start, k.short_days, w.reserved,
                   w.available
              INTO v_cap
              FROM (SELECT i.*) i
         {WINDOWS}
              JOIN spending_counters c
                ON c.organization_id = p_organization_id
               AND c.scope = k.scope
               AND c.scope_id = k.scope_id
               AND c.window_start = k.window_start
             CROSS JOIN LATERAL (VALUES
                    (k.position, c.window_start, c.reserved_pico,
                     c.limit_pico - c.settled_pico - c.reserved_pico),
                    (k.position + 6, k.short_start,
                     CASE k.short_start WHEN c.short_start THEN c.short_reserved_pico
                                        ELSE c.previous_reserved_pico END,
                     c.short_limit_pico
                     - CASE k.short_start
                            WHEN c.short_start THEN c.short_settled_pico + c.short_reserved_pico
                            ELSE c.previous_settled_pico + c.previous_reserved_pico END)
                  ) w (position, start, reserved, available)
             WHERE w.available < i.amount_pico
             ORDER BY w.position
             LIMIT 1;""",  # noqa: S608 - composed of constants
    ),
    (
        _between(
            ledger_admission.ADMIT_EACH_UNFROZEN, "ledger_unsettled(\n                    p_", ");"
        ),
        """CASE
                    WHEN v_cap.position <= 6 THEN ledger_unsettled(
                        p_organization_id, v_cap.scope, v_cap.scope_id, v_cap.start)
                    ELSE ledger_unsettled_in(
                        p_organization_id, v_cap.scope, v_cap.scope_id, v_cap.start,
                        v_cap.short_days) END;""",
    ),
    (
        _between(
            ledger_admission.ADMIT_EACH_UNFROZEN,
            "UPDATE spending_counters c",
            "window_start = k.window_start;",
        ),
        "PERFORM ledger_reserve_in_windows(i, false);",
    ),
)

_SHORT_FITS: Final = """
                   AND (x.short_start = {start} OR x.short_start IS NULL)
                   AND (x.short_limit_pico IS NULL
                        OR x.short_settled_pico + x.short_reserved_pico + {amount}
                           <= x.short_limit_pico)"""
_FITS: Final = "OR x.settled_pico + x.reserved_pico + {amount} <= x.limit_pico)"
_START_OF_ROW: Final = "CASE d.window_start WHEN '-infinity' THEN v_week ELSE v_day END"
_RESERVED: Final = "SET reserved_pico = c.reserved_pico + {amount}"
_SHORT_RESERVED: Final = """,
               short_reserved_pico = c.short_reserved_pico + {amount}"""

_MONTHS: Final = (
    ("i.organization_id, v_month)", "i.organization_id, v_month, v_day)"),
    ("i.organization_id, '-infinity')", "i.organization_id, '-infinity', v_week)"),
    ("project_id, v_month)", "project_id, v_month, v_day)"),
    ("project_id, '-infinity')", "project_id, '-infinity', v_week)"),
    ("api_key_id, v_month)", "api_key_id, v_month, v_day)"),
    ("api_key_id, '-infinity')", "api_key_id, '-infinity', v_week)"),
    ("k (scope, scope_id, window_start)", "k (scope, scope_id, window_start, short_start)"),
)
_ADMIT_ONE: Final = changed(
    ledger_admission.ADMIT_ONE_UNFROZEN,
    *_MONTHS,
    ("v_month  date;", "v_month  date;\n    v_week   date;\n    v_day    date;"),
    (
        "v_month := ",
        """v_day := (i.admitted_at AT TIME ZONE 'UTC')::date;
        v_week := date_trunc('week', v_day::timestamp)::date;
        v_month := """,
    ),
    (
        _FITS.format(amount="i.amount_pico"),
        _FITS.format(amount="i.amount_pico")
        + _SHORT_FITS.format(start="k.short_start", amount="i.amount_pico"),
    ),
    (
        "SET reserved_pico = c.reserved_pico + i.amount_pico",
        _RESERVED.format(amount="i.amount_pico") + _SHORT_RESERVED.format(amount="i.amount_pico"),
    ),
)

# Only holds of the day of the first one are decided as a set, so that each row has one window.
_ADMIT_BATCH: Final = changed(
    ledger_admission.ADMIT_BATCH_UNFROZEN,
    (
        ledger_admission.WINDOWS,
        """CROSS JOIN LATERAL (VALUES
                ('organization', i.organization_id, v_month),
                ('organization', i.organization_id, '-infinity'),
                ('project', i.project_id, v_month),
                ('project', i.project_id, '-infinity'),
                ('api_key', i.api_key_id, v_month),
                ('api_key', i.api_key_id, '-infinity')
              ) k (scope, scope_id, window_start)""",
    ),
    (
        "v_totals   numeric[];",
        """v_totals   numeric[];
    v_day      date := ((p_holds[1]).admitted_at AT TIME ZONE 'UTC')::date;
    v_week     date := date_trunc('week', v_day::timestamp)::date;
    v_month    date := date_trunc('month', v_day::timestamp)::date;""",
    ),
    (
        ") AS is_in_time",
        """
                            AND (i.admitted_at AT TIME ZONE 'UTC')::date = v_day) AS is_in_time""",
    ),
    (
        _FITS.format(amount="d.total"),
        _FITS.format(amount="d.total") + _SHORT_FITS.format(start=_START_OF_ROW, amount="d.total"),
    ),
    (
        "SET reserved_pico = c.reserved_pico + d.total",
        _RESERVED.format(amount="d.total") + _SHORT_RESERVED.format(amount="d.total"),
    ),
)

_SETTLED_IN_SHORT: Final = """,
           short_reserved_pico = c.short_reserved_pico - {held},
           short_settled_pico = c.short_settled_pico + {posted},
           short_ceiling_pico = CASE WHEN c.short_limit_pico IS NOT NULL THEN greatest(
               c.short_limit_pico,
               c.short_settled_pico + c.short_reserved_pico + {posted} - {held}) END"""
_ONE_CEILING: Final = (
    "c.limit_pico, c.settled_pico + c.reserved_pico + v_posted - v_hold.held_pico) END"
)
_SETTLE_ONE: Final = changed(
    ledger_resolution.SETTLE_ONE_BY_NAME,
    *_MONTHS,
    ("v_month  date;", "v_month  date;\n    v_week   date;"),
    ("i.organization_id, v_month, v_day)", "i.organization_id, v_month, i.admitted_day)"),
    ("project_id, v_month, v_day)", "project_id, v_month, i.admitted_day)"),
    ("api_key_id, v_month, v_day)", "api_key_id, v_month, i.admitted_day)"),
    (
        "v_month := ",
        "v_week := date_trunc('week', i.admitted_day::timestamp)::date;\n        v_month := ",
    ),
    (
        "OR x.settled_pico + v_posted < x.alert_pico)",
        """OR x.settled_pico + v_posted < x.alert_pico)
                   AND (x.short_start = k.short_start OR x.short_start IS NULL)
                   AND (x.short_alert_pico IS NULL OR x.short_is_alerted
                        OR x.short_settled_pico + v_posted < x.short_alert_pico)""",
    ),
    (
        _ONE_CEILING,
        _ONE_CEILING + _SETTLED_IN_SHORT.format(held="v_hold.held_pico", posted="v_posted"),
    ),
)

# An alert of a window that has ended would come too late: only the current one raises it.
_SETTLE_BATCH: Final = changed(
    ledger_resolution.SETTLE_BATCH,
    (
        "d.posted - d.held) END,\n               is_alerted",
        "d.posted - d.held) END"
        + _SETTLED_IN_SHORT.format(held="d.short_held", posted="d.short_posted")
        + """,
               previous_reserved_pico = c.previous_reserved_pico - d.previous_held,
               previous_settled_pico = c.previous_settled_pico + d.previous_posted,
               short_is_alerted = c.short_is_alerted OR coalesce(
                   d.short_posted > 0
                   AND c.short_settled_pico + d.short_posted >= c.short_alert_pico, false),
               is_alerted""",
    ),
    (
        _between(
            ledger_resolution.SETTLE_BATCH,
            "FROM (SELECT r.organization_id, k.scope",
            "WHERE c.ctid = before.place\n        RETURNING c.",
        ),
        """FROM (SELECT before.place, before.is_alerted, before.short_is_alerted,
                       sum(w.held) AS held, sum(w.posted) AS posted,
                       sum(w.held * before.is_current) AS short_held,
                       sum(w.posted * before.is_current) AS short_posted,
                       sum(w.held * before.is_previous) AS previous_held,
                       sum(w.posted * before.is_previous) AS previous_posted
                  FROM (SELECT r.organization_id, k.scope, k.scope_id, k.window_start,
                               k.short_start, k.short_days,
                               sum(r.held_pico) AS held, sum(r.posted_pico) AS posted
                          FROM resolved r
                         CROSS JOIN LATERAL (
                                SELECT date_trunc('month', r.admitted_day)::date AS month,
                                       date_trunc('week', r.admitted_day::timestamp)::date
                                           AS week) day
                         CROSS JOIN LATERAL (VALUES
                                ('organization', r.organization_id, day.month, r.admitted_day, 1),
                                ('organization', r.organization_id, '-infinity', day.week, 7),
                                ('project', r.project_id, day.month, r.admitted_day, 1),
                                ('project', r.project_id, '-infinity', day.week, 7),
                                ('api_key', r.api_key_id, day.month, r.admitted_day, 1),
                                ('api_key', r.api_key_id, '-infinity', day.week, 7)
                              ) k (scope, scope_id, window_start, short_start, short_days)
                         GROUP BY 1, 2, 3, 4, 5, 6) w
                 CROSS JOIN LATERAL (
                        SELECT p.ctid AS place, p.is_alerted, p.short_is_alerted,
                               coalesce(w.short_start = p.short_start, false)::int AS is_current,
                               coalesce(w.short_start = p.short_start - w.short_days, false)::int
                                   AS is_previous
                          FROM spending_counters p
                         WHERE p.organization_id = w.organization_id
                           AND p.scope = w.scope
                           AND p.scope_id = w.scope_id
                           AND p.window_start = w.window_start
                         LIMIT 1) before
                 GROUP BY 1, 2, 3) d
         WHERE c.ctid = d.place
        RETURNING c.short_start, c.short_is_alerted AND NOT d.short_is_alerted AS short_rings,
                  c.""",
    ),
    ("c.is_alerted AND NOT before.is_alerted", "c.is_alerted AND NOT d.is_alerted"),
    (
        "INTO spending_alerts (organization_id, scope, scope_id, window_start)",
        "INTO spending_alerts (organization_id, scope, scope_id, window_start, period)",
    ),
    ("account.organization_id, '-infinity'\n", "account.organization_id, '-infinity', NULL\n"),
    (
        "counted.scope_id, counted.window_start\n          FROM counted WHERE rings",
        """counted.scope_id, counted.window_start, NULL
          FROM counted WHERE rings
        UNION ALL
        SELECT counted.organization_id, counted.scope, counted.scope_id, counted.short_start,
               CASE counted.window_start WHEN '-infinity' THEN 'week' ELSE 'day' END
          FROM counted WHERE short_rings""",
    ),
)

SETTLE_ANSWERED: Final = changed(ledger_resolution.answered(_SETTLE_BATCH))

FUNCTIONS: Final = (
    *HELPERS,
    _ADMIT_EACH,
    _ADMIT_ONE,
    _ADMIT_BATCH,
    _SETTLE_ONE,
    _SETTLE_BATCH,
    SETTLE_ANSWERED,
    # A replaced function loses its settings.
    *(
        f"ALTER FUNCTION {function} SET plan_cache_mode = force_generic_plan"
        for function in (
            *("ledger_admit_one", "ledger_settle_one", "ledger_admit_batch"),
            *("ledger_settle_batch", "ledger_settle_answered"),
        )
    ),
    *(
        f"ALTER FUNCTION {function} SET enable_seqscan = off"
        for function in ("ledger_admit_batch", "ledger_settle_batch", "ledger_settle_answered")
    ),
)
