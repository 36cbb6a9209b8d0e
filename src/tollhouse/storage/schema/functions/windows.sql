-- The windows of a hold: how counters begin and are reserved in, and what is unsettled in them.
--
-- Caps by day and week are counted in the rows that every hold changes anyway: a month's counter
-- also has its current and previous day, a lifetime's its current and previous week, the *short*
-- windows.

CREATE OR REPLACE FUNCTION ledger_open_counters(
    p_organization_id uuid, p_scopes text[], p_scope_ids uuid[], p_windows date[]
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO spending_counters (organization_id, scope, scope_id, window_start,
                                   limit_pico, ceiling_pico, alert_pico,
                                   short_limit_pico, short_ceiling_pico, short_alert_pico)
    SELECT p_organization_id, k.scope, k.scope_id, k.window_start,
           cap.limit_pico, cap.limit_pico, div(cap.limit_pico * cap.alert_percent + 99, 100),
           short.limit_pico, short.limit_pico,
           div(short.limit_pico * short.alert_percent + 99, 100)
      FROM (SELECT DISTINCT * FROM unnest(p_scopes, p_scope_ids, p_windows)
                AS w (scope, scope_id, window_start)) k
      LEFT JOIN LATERAL (
            SELECT c.limit_pico, c.alert_percent
              FROM spending_caps c
             WHERE c.organization_id = p_organization_id
               AND c.scope = k.scope
               AND c.scope_id = k.scope_id
               AND c.period = CASE k.window_start WHEN '-infinity' THEN 'lifetime' ELSE 'month' END
             LIMIT 1) cap ON true
      LEFT JOIN LATERAL (
            SELECT c.limit_pico, c.alert_percent
              FROM spending_caps c
             WHERE c.organization_id = p_organization_id
               AND c.scope = k.scope
               AND c.scope_id = k.scope_id
               AND c.period = CASE k.window_start WHEN '-infinity' THEN 'week' ELSE 'day' END
             LIMIT 1) short ON true
    ON CONFLICT DO NOTHING
$$;

-- In the order in which caps are compared.
CREATE OR REPLACE FUNCTION ledger_windows(i ledger_hold) RETURNS TABLE (
    place integer, scope text, scope_id uuid, window_start date, short_start date,
    short_days integer
) LANGUAGE sql IMMUTABLE AS $$
    SELECT k.*
      FROM (SELECT (i.admitted_at AT TIME ZONE 'UTC')::date AS start,
                   date_trunc('week', i.admitted_at AT TIME ZONE 'UTC')::date AS week,
                   date_trunc('month', i.admitted_at AT TIME ZONE 'UTC')::date AS month) day
     CROSS JOIN LATERAL (VALUES
            (1, 'organization', i.organization_id, day.month, day.start, 1),
            (2, 'organization', i.organization_id, '-infinity'::date, day.week, 7),
            (3, 'project', i.project_id, day.month, day.start, 1),
            (4, 'project', i.project_id, '-infinity'::date, day.week, 7),
            (5, 'api_key', i.api_key_id, day.month, day.start, 1),
            (6, 'api_key', i.api_key_id, '-infinity'::date, day.week, 7)
          ) k (place, scope, scope_id, window_start, short_start, short_days)
$$;

CREATE OR REPLACE FUNCTION ledger_begin_windows(i ledger_hold) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM ledger_open_counters(
            i.organization_id, array_agg(k.scope), array_agg(k.scope_id),
            array_agg(k.window_start))
       FROM ledger_windows(i) k
      WHERE NOT EXISTS (
            SELECT FROM spending_counters c
             WHERE c.organization_id = i.organization_id
               AND c.scope = k.scope
               AND c.scope_id = k.scope_id
               AND c.window_start = k.window_start)
      GROUP BY i.organization_id;
    UPDATE spending_counters c
       SET short_start = k.short_start,
           short_settled_pico = 0,
           short_reserved_pico = 0,
           short_ceiling_pico = c.short_limit_pico,
           short_is_alerted = false,
           previous_settled_pico = CASE c.short_start
               WHEN k.short_start - k.short_days THEN c.short_settled_pico ELSE 0 END,
           previous_reserved_pico = CASE c.short_start
               WHEN k.short_start - k.short_days THEN c.short_reserved_pico ELSE 0 END
      FROM ledger_windows(i) k
     WHERE c.organization_id = i.organization_id
       AND c.scope = k.scope
       AND c.scope_id = k.scope_id
       AND c.window_start = k.window_start
       AND c.short_start < k.short_start;
END
$$;

-- Past usage goes beyond caps, and raises the ceilings.
CREATE OR REPLACE FUNCTION ledger_reserve_in_windows(i ledger_hold, p_is_past boolean) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    UPDATE spending_counters c
       SET reserved_pico = c.reserved_pico + i.amount_pico,
           ceiling_pico = CASE
               WHEN p_is_past AND c.limit_pico IS NOT NULL
               THEN greatest(c.limit_pico, c.settled_pico + c.reserved_pico + i.amount_pico)
               ELSE c.ceiling_pico END,
           short_reserved_pico = c.short_reserved_pico
               + CASE k.short_start WHEN c.short_start THEN i.amount_pico ELSE 0 END,
           short_ceiling_pico = CASE
               WHEN p_is_past AND c.short_limit_pico IS NOT NULL AND k.short_start = c.short_start
               THEN greatest(c.short_limit_pico,
                             c.short_settled_pico + c.short_reserved_pico + i.amount_pico)
               ELSE c.short_ceiling_pico END,
           previous_reserved_pico = c.previous_reserved_pico
               + CASE k.short_start WHEN c.short_start - k.short_days THEN i.amount_pico
                                    ELSE 0 END
      FROM ledger_windows(i) k
     WHERE c.organization_id = i.organization_id
       AND c.scope = k.scope
       AND c.scope_id = k.scope_id
       AND c.window_start = k.window_start;
END
$$;

CREATE OR REPLACE FUNCTION ledger_unsettled(
    p_organization_id uuid, p_scope text, p_scope_id uuid, p_window date
) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT coalesce(sum(u.held_pico), 0)
      FROM unsettled_holds u
     WHERE u.organization_id = p_organization_id
       AND p_scope_id = CASE p_scope WHEN 'organization' THEN u.organization_id
                                     WHEN 'project' THEN u.project_id
                                     ELSE u.api_key_id END
       AND (p_window = '-infinity' OR date_trunc('month', u.admitted_day)::date = p_window)
$$;

CREATE OR REPLACE FUNCTION ledger_unsettled_in(
    p_organization_id uuid, p_scope text, p_scope_id uuid, p_start date, p_days integer
) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT coalesce(sum(u.held_pico), 0)
      FROM unsettled_holds u
     WHERE u.organization_id = p_organization_id
       AND p_scope_id = CASE p_scope WHEN 'organization' THEN u.organization_id
                                     WHEN 'project' THEN u.project_id
                                     ELSE u.api_key_id END
       AND u.admitted_day >= p_start
       AND u.admitted_day < p_start + p_days
$$;
