-- Alerts: triggers write the outbox in the transaction that causes an alert.
--
-- A settlement pays for the conditions of three triggers; their functions run only when a counter
-- reaches another whole percent of its cap, and when the account reaches `next_alert_pico`.

CREATE OR REPLACE FUNCTION alert_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
            || '7' || substr(random.hex, 2, 3) || '8' || substr(random.hex, 6, 15))::uuid
      FROM (SELECT replace(gen_random_uuid()::text, '-', '') AS hex) random
$$;

CREATE OR REPLACE FUNCTION alert_window(p_period text) RETURNS date LANGUAGE sql STABLE AS $$
    SELECT CASE p_period WHEN 'lifetime' THEN '-infinity'::date
           ELSE date_trunc(p_period, clock_timestamp() AT TIME ZONE 'UTC')::date END
$$;

CREATE OR REPLACE FUNCTION alert_raise_cap(
    p_counter spending_counters, p_period text, p_window_start date, p_limit_pico numeric,
    p_used_pico numeric, p_percent_before numeric, p_subscription_id uuid
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO alert_deliveries (organization_id, id, subscription_id, type, dedup_key, details)
    SELECT s.organization_id, alert_id(), s.id, 'cap.threshold_reached',
           concat_ws(' ', 'cap', (p_counter).scope, (p_counter).scope_id, p_period,
                     p_window_start, p.percent, p_limit_pico),
           jsonb_build_object(
               'scope', (p_counter).scope, 'scope_id', (p_counter).scope_id, 'period', p_period,
               'window_start', CASE WHEN isfinite(p_window_start) THEN p_window_start END,
               'percent', p.percent, 'limit_pico', p_limit_pico::text,
               'used_pico', p_used_pico::text,
               'name', CASE (p_counter).scope
                       WHEN 'project' THEN (SELECT x.name FROM projects x
                                             WHERE x.organization_id = s.organization_id
                                               AND x.id = (p_counter).scope_id)
                       WHEN 'api_key' THEN (SELECT x.name FROM project_keys x
                                             WHERE x.organization_id = s.organization_id
                                               AND x.id = (p_counter).scope_id) END)
      FROM alert_subscriptions s
     CROSS JOIN LATERAL unnest(s.cap_percents) p (percent)
     WHERE s.organization_id = (p_counter).organization_id
       AND (p_subscription_id IS NULL OR s.id = p_subscription_id)
       AND p.percent > p_percent_before
       AND p_limit_pico > 0
       AND p_limit_pico * p.percent <= p_used_pico * 100
    ON CONFLICT DO NOTHING
$$;

-- Past windows keep their counters. Their alerts would come too late for anything to be done.
CREATE OR REPLACE FUNCTION alert_on_counter() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_period text := CASE NEW.window_start WHEN '-infinity' THEN 'lifetime' ELSE 'month' END;
BEGIN
    IF NEW.window_start = alert_window(v_period) THEN
        PERFORM alert_raise_cap(
            NEW, v_period, NEW.window_start, NEW.limit_pico, NEW.settled_pico,
            coalesce(div(OLD.settled_pico * 100, nullif(OLD.limit_pico, 0)), -1), NULL);
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION alert_on_short_window() RETURNS trigger LANGUAGE plpgsql AS $$
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
$$;

CREATE OR REPLACE FUNCTION alert_credit_thresholds(p_organization_id uuid, p_credit_pico numeric)
RETURNS TABLE (subscription_id uuid, percent smallint, below_pico numeric, reached_at_pico numeric)
LANGUAGE sql STABLE AS $$
    SELECT s.id, p.percent, NULL::numeric, div(p_credit_pico * p.percent + 99, 100)
      FROM alert_subscriptions s
     CROSS JOIN LATERAL unnest(s.credit_percents) p (percent)
     WHERE s.organization_id = p_organization_id
       AND p_credit_pico > 0
     UNION ALL
    SELECT s.id, NULL, s.credit_below_pico, p_credit_pico - s.credit_below_pico
      FROM alert_subscriptions s
     WHERE s.organization_id = p_organization_id
       AND s.credit_below_pico IS NOT NULL
$$;

CREATE OR REPLACE FUNCTION alert_raise_credit(
    p_organization_id uuid, p_credit_pico numeric, p_settled_pico numeric,
    p_credit_before numeric, p_settled_before numeric, p_subscription_id uuid
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO alert_deliveries (organization_id, id, subscription_id, type, dedup_key, details)
    SELECT p_organization_id, alert_id(), t.subscription_id, 'credit.threshold_reached',
           concat_ws(' ', 'credit', coalesce(t.percent || '%', t.below_pico::text), p_credit_pico),
           jsonb_build_object('percent', t.percent, 'below_pico', t.below_pico::text,
                              'credit_pico', p_credit_pico::text,
                              'used_pico', p_settled_pico::text)
      FROM alert_credit_thresholds(p_organization_id, p_credit_pico) t
     WHERE t.reached_at_pico <= p_settled_pico
       AND (p_subscription_id IS NULL OR t.subscription_id = p_subscription_id)
       AND NOT EXISTS (
            SELECT FROM alert_credit_thresholds(p_organization_id, p_credit_before) before
             WHERE before.subscription_id = t.subscription_id
               AND before.percent IS NOT DISTINCT FROM t.percent
               AND before.below_pico IS NOT DISTINCT FROM t.below_pico
               AND before.reached_at_pico <= p_settled_before)
    ON CONFLICT DO NOTHING
$$;

CREATE OR REPLACE FUNCTION alert_set_next(p_organization_id uuid) RETURNS void LANGUAGE sql AS $$
    UPDATE accounts a
       SET next_alert_pico = (
            SELECT min(t.reached_at_pico)
              FROM alert_credit_thresholds(a.organization_id, a.credit_pico) t
             WHERE t.reached_at_pico > a.settled_pico)
     WHERE a.organization_id = p_organization_id
$$;

CREATE OR REPLACE FUNCTION alert_on_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM alert_raise_credit(NEW.organization_id, NEW.credit_pico, NEW.settled_pico,
                               OLD.credit_pico, OLD.settled_pico, NULL);
    PERFORM alert_set_next(NEW.organization_id);
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION alert_on_subscription() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM alert_set_next(coalesce(NEW.organization_id, OLD.organization_id));
    RETURN NULL;
END
$$;

-- A day may have the date with which a month begins, so the period decides which window is meant.
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
$$;

CREATE OR REPLACE FUNCTION alert_on_unsettled() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO alert_deliveries (organization_id, id, subscription_id, type, dedup_key, details)
    SELECT s.organization_id, alert_id(), s.id, 'holds.unsettled',
           concat_ws(' ', 'unsettled', alert_window('day'), s.unsettled_requests),
           jsonb_build_object('requests', u.requests, 'threshold', s.unsettled_requests,
                              'held_pico', u.held_pico::text)
      FROM (SELECT DISTINCT organization_id FROM marked) m
      JOIN alert_subscriptions s ON s.organization_id = m.organization_id
     CROSS JOIN LATERAL (
            SELECT count(*) AS requests, sum(h.held_pico) AS held_pico
              FROM unsettled_holds h
             WHERE h.organization_id = m.organization_id) u
     WHERE u.requests >= s.unsettled_requests
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
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
