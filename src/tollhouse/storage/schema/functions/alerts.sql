-- Alerts: a job looks at sums and puts what was reached since the last look into the outbox.
--
-- Sums have all that is committed, whenever it was: a look misses no late commit, and reads no
-- entry. `alert_reached` has what a look found, so that the next one tells only what is new.

CREATE OR REPLACE FUNCTION alert_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
            || '7' || substr(random.hex, 2, 3) || '8' || substr(random.hex, 6, 15))::uuid
      FROM (SELECT replace(gen_random_uuid()::text, '-', '') AS hex) random
$$;

CREATE OR REPLACE FUNCTION alert_window(p_period text, p_at timestamptz) RETURNS date
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE p_period WHEN 'lifetime' THEN '-infinity'::date
           ELSE date_trunc(p_period, p_at AT TIME ZONE 'UTC')::date END
$$;

-- A window that ended is looked at for two minutes more: it may have been reached after the last
-- look. Its amount is then that of the previous window, if the next one has begun.
CREATE OR REPLACE FUNCTION alert_reached_caps(p_organization_ids uuid[])
RETURNS TABLE (organization_id uuid, subscription_id uuid, type text, subject text, amount text,
               details jsonb)
LANGUAGE sql STABLE AS $$
    SELECT s.organization_id, s.id, 'cap.threshold_reached',
           concat_ws(' ', 'cap', c.scope, c.scope_id, c.period, w.window_start, p.percent),
           c.limit_pico::text,
           jsonb_build_object(
               'scope', c.scope, 'scope_id', c.scope_id, 'period', c.period,
               'window_start', CASE WHEN isfinite(w.window_start) THEN w.window_start END,
               'percent', p.percent, 'limit_pico', c.limit_pico::text,
               'used_pico', u.used_pico::text,
               'name', CASE c.scope
                       WHEN 'project' THEN (SELECT x.name FROM projects x
                                             WHERE x.organization_id = s.organization_id
                                               AND x.id = c.scope_id)
                       WHEN 'api_key' THEN (SELECT x.name FROM project_keys x
                                             WHERE x.organization_id = s.organization_id
                                               AND x.id = c.scope_id) END)
      FROM alert_subscriptions s
     CROSS JOIN LATERAL unnest(s.cap_percents) p (percent)
      JOIN spending_caps c ON c.organization_id = s.organization_id
     CROSS JOIN LATERAL (
            SELECT DISTINCT
                   alert_window(c.period, at) AS window_start,
                   alert_window(CASE c.period WHEN 'day' THEN 'month' WHEN 'week' THEN 'lifetime'
                                ELSE c.period END, at) AS counter_start
              FROM unnest(ARRAY[clock_timestamp(),
                                clock_timestamp() - interval '2 minutes']) at) w
      JOIN spending_counters n
        ON n.organization_id = c.organization_id
       AND n.scope = c.scope
       AND n.scope_id = c.scope_id
       AND n.window_start = w.counter_start
     CROSS JOIN LATERAL (
            SELECT CASE WHEN c.period IN ('month', 'lifetime') THEN n.settled_pico
                        WHEN n.short_start = w.window_start THEN n.short_settled_pico
                        WHEN n.short_start > w.window_start THEN n.previous_settled_pico
                   END AS used_pico) u
     WHERE s.organization_id = ANY (p_organization_ids)
       AND c.limit_pico > 0
       AND c.limit_pico * p.percent <= u.used_pico * 100
$$;

CREATE OR REPLACE FUNCTION alert_reached_credit(p_organization_ids uuid[])
RETURNS TABLE (organization_id uuid, subscription_id uuid, type text, subject text, amount text,
               details jsonb)
LANGUAGE sql STABLE AS $$
    SELECT s.organization_id, s.id, 'credit.threshold_reached',
           concat_ws(' ', 'credit', coalesce(t.percent || '%', t.below_pico::text)),
           a.credit_pico::text,
           jsonb_build_object('percent', t.percent, 'below_pico', t.below_pico::text,
                              'credit_pico', a.credit_pico::text,
                              'used_pico', a.settled_pico::text)
      FROM alert_subscriptions s
      JOIN accounts a ON a.organization_id = s.organization_id
     CROSS JOIN LATERAL (
            SELECT p.percent, NULL::numeric AS below_pico,
                   div(a.credit_pico * p.percent + 99, 100) AS reached_at_pico
              FROM unnest(s.credit_percents) p (percent)
             WHERE a.credit_pico > 0
             UNION ALL
            SELECT NULL, s.credit_below_pico, a.credit_pico - s.credit_below_pico
             WHERE s.credit_below_pico IS NOT NULL) t
     WHERE s.organization_id = ANY (p_organization_ids)
       AND t.reached_at_pico <= a.settled_pico
$$;

CREATE OR REPLACE FUNCTION alert_reached_unsettled(p_organization_ids uuid[])
RETURNS TABLE (organization_id uuid, subscription_id uuid, type text, subject text, amount text,
               details jsonb)
LANGUAGE sql STABLE AS $$
    SELECT s.organization_id, s.id, 'holds.unsettled',
           concat_ws(' ', 'unsettled', alert_window('day', clock_timestamp()),
                     s.unsettled_requests),
           NULL,
           jsonb_build_object('requests', u.requests, 'threshold', s.unsettled_requests,
                              'held_pico', u.held_pico::text)
      FROM alert_subscriptions s
     CROSS JOIN LATERAL (
            SELECT count(*) AS requests, sum(h.held_pico) AS held_pico
              FROM unsettled_holds h
             WHERE h.organization_id = s.organization_id) u
     WHERE s.organization_id = ANY (p_organization_ids)
       AND u.requests >= s.unsettled_requests
$$;

CREATE OR REPLACE FUNCTION alert_look(p_organization_ids uuid[]) RETURNS void LANGUAGE sql AS $$
    WITH reached AS MATERIALIZED (
        SELECT * FROM alert_reached_caps(p_organization_ids)
         UNION ALL
        SELECT * FROM alert_reached_credit(p_organization_ids)
         UNION ALL
        SELECT * FROM alert_reached_unsettled(p_organization_ids)
    ), over AS (
        DELETE FROM alert_reached a
         WHERE a.organization_id = ANY (p_organization_ids)
           AND NOT EXISTS (
                SELECT FROM reached r
                 WHERE r.organization_id = a.organization_id
                   AND r.subscription_id = a.subscription_id
                   AND r.subject = a.subject)
    ), new AS (
        INSERT INTO alert_reached (organization_id, subscription_id, subject)
        SELECT organization_id, subscription_id, subject
          FROM reached
         ORDER BY 1, 2, 3
        ON CONFLICT DO NOTHING
        RETURNING organization_id, subscription_id, subject
    )
    INSERT INTO alert_deliveries (organization_id, id, subscription_id, type, dedup_key, details)
    SELECT r.organization_id, alert_id(), r.subscription_id, r.type,
           concat_ws(' ', r.subject, r.amount), r.details
      FROM reached r
      JOIN new USING (organization_id, subscription_id, subject)
    ON CONFLICT DO NOTHING
$$;

-- Counts no further than the threshold, and not at all once the hour's alert exists. The hour is
-- that of the evaluation: decisions are written some time after it.
CREATE OR REPLACE FUNCTION alert_on_match() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO alert_deliveries (organization_id, id, subscription_id, type, dedup_key, details)
    SELECT s.organization_id, alert_id(), s.id, 'policy.match_rate_reached', k.dedup_key,
           jsonb_build_object('policy_id', m.policy_id, 'hour', m.hour,
                              'threshold', s.policy_matches_per_hour,
                              'name', (SELECT p.name FROM policies p
                                        WHERE p.organization_id = s.organization_id
                                          AND p.id = m.policy_id))
      FROM (SELECT DISTINCT organization_id, policy_id,
                   date_trunc('hour', evaluated_at, 'UTC') AS hour
              FROM decided
             WHERE outcome = 'match') m
      JOIN alert_subscriptions s
        ON s.organization_id = m.organization_id
       AND s.policy_matches_per_hour IS NOT NULL
     CROSS JOIN LATERAL (
            SELECT concat_ws(' ', 'matches', m.policy_id, extract(epoch FROM m.hour)::bigint,
                             s.policy_matches_per_hour) AS dedup_key) k
     WHERE NOT EXISTS (
            SELECT FROM alert_deliveries d
             WHERE d.organization_id = s.organization_id
               AND d.subscription_id = s.id
               AND d.dedup_key = k.dedup_key)
       AND s.policy_matches_per_hour <= (
            SELECT count(*)
              FROM (SELECT FROM policy_decisions p
                     WHERE p.organization_id = m.organization_id
                       AND p.policy_id = m.policy_id
                       AND p.day >= (m.hour AT TIME ZONE 'UTC')::date - 1
                       AND p.outcome = 'match'
                       AND p.evaluated_at >= m.hour
                       AND p.evaluated_at < m.hour + interval '1 hour'
                     LIMIT s.policy_matches_per_hour) matches)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
