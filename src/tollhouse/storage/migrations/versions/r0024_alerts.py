"""Alerts: who is told about what, and the outbox of what is to be delivered.

Triggers write the outbox in the transaction that causes an alert. A settlement pays for the
conditions of two triggers; their functions run only when a counter reaches another whole percent of
its cap, and when the account reaches `next_alert_pico`.
"""

from typing import Final

revision = "0024"
down_revision = "0023"

_TABLES: Final = (
    """
    CREATE TABLE alert_subscriptions (
        organization_id         uuid NOT NULL REFERENCES organizations,
        id                      uuid NOT NULL,
        name                    text NOT NULL,
        url                     text,
        emails                  text[] NOT NULL,
        cap_percents            smallint[] NOT NULL,
        credit_percents         smallint[] NOT NULL,
        credit_below_pico       numeric(38,0),
        policy_matches_per_hour integer CHECK (policy_matches_per_hour > 0),
        unsettled_requests      integer CHECK (unsettled_requests > 0),
        backend_down            boolean NOT NULL,
        secret                  bytea,
        previous_secret         bytea,
        previous_secret_until   timestamptz,
        created_at              timestamptz NOT NULL,
        PRIMARY KEY (organization_id, id),
        CONSTRAINT subscriptions_have_one_destination CHECK (
            (url IS NULL) = (cardinality(emails) > 0))
    )
    """,
    """
    CREATE INDEX alert_subscriptions_backend_down ON alert_subscriptions (organization_id)
     WHERE backend_down
    """,
    """
    CREATE TABLE alert_deliveries (
        organization_id uuid NOT NULL,
        id              uuid NOT NULL,
        subscription_id uuid NOT NULL,
        type            text NOT NULL,
        dedup_key       text NOT NULL,
        details         jsonb NOT NULL,
        raised_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
        state           text NOT NULL DEFAULT 'pending'
                        CHECK (state IN ('pending', 'delivered', 'failed')),
        attempts        smallint NOT NULL DEFAULT 0,
        next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        last_attempt_at timestamptz,
        last_status     smallint,
        last_error      text,
        PRIMARY KEY (organization_id, id),
        UNIQUE (organization_id, subscription_id, dedup_key)
    )
    """,
    """
    COMMENT ON COLUMN alert_deliveries.dedup_key IS
        'Subject, window and threshold: a subscription is told of the three once.'
    """,
    """
    CREATE INDEX alert_deliveries_due ON alert_deliveries (next_attempt_at) WHERE state = 'pending'
    """,
    """
    CREATE INDEX alert_deliveries_by_age ON alert_deliveries (raised_at)
    """,
    """
    ALTER TABLE accounts
      ADD COLUMN next_alert_pico numeric(38,0)
    """,
    """
    COMMENT ON COLUMN accounts.next_alert_pico IS
        'The lowest settled amount at which a subscription is told about the credit next.'
    """,
)

_ALERT_ID: Final = """
CREATE FUNCTION alert_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
            || '7' || substr(random.hex, 2, 3) || '8' || substr(random.hex, 6, 15))::uuid
      FROM (SELECT replace(gen_random_uuid()::text, '-', '') AS hex) random
$$
"""

_WINDOW: Final = """
CREATE FUNCTION alert_window(p_period text) RETURNS date LANGUAGE sql STABLE AS $$
    SELECT CASE p_period WHEN 'lifetime' THEN '-infinity'::date
           ELSE date_trunc(p_period, clock_timestamp() AT TIME ZONE 'UTC')::date END
$$
"""

_RAISE_CAP: Final = """
CREATE FUNCTION alert_raise_cap(
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
$$
"""

# Past windows keep their counters. Their alerts would come too late for anything to be done.
_ON_COUNTER: Final = """
CREATE FUNCTION alert_on_counter() RETURNS trigger LANGUAGE plpgsql AS $$
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
$$
"""

_CREDIT_THRESHOLDS: Final = """
CREATE FUNCTION alert_credit_thresholds(p_organization_id uuid, p_credit_pico numeric)
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
$$
"""

_RAISE_CREDIT: Final = """
CREATE FUNCTION alert_raise_credit(
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
$$
"""

_SET_NEXT: Final = """
CREATE FUNCTION alert_set_next(p_organization_id uuid) RETURNS void LANGUAGE sql AS $$
    UPDATE accounts a
       SET next_alert_pico = (
            SELECT min(t.reached_at_pico)
              FROM alert_credit_thresholds(a.organization_id, a.credit_pico) t
             WHERE t.reached_at_pico > a.settled_pico)
     WHERE a.organization_id = p_organization_id
$$
"""

_ON_ACCOUNT: Final = """
CREATE FUNCTION alert_on_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM alert_raise_credit(NEW.organization_id, NEW.credit_pico, NEW.settled_pico,
                               OLD.credit_pico, OLD.settled_pico, NULL);
    PERFORM alert_set_next(NEW.organization_id);
    RETURN NULL;
END
$$
"""

_ON_SUBSCRIPTION: Final = """
CREATE FUNCTION alert_on_subscription() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM alert_set_next(coalesce(NEW.organization_id, OLD.organization_id));
    RETURN NULL;
END
$$
"""

_EVALUATE: Final = """
CREATE FUNCTION alert_evaluate(p_organization_id uuid, p_subscription_id uuid) RETURNS void
LANGUAGE sql AS $$
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
     WHERE c.organization_id = p_organization_id;
$$
"""

_ON_UNSETTLED: Final = """
CREATE FUNCTION alert_on_unsettled() RETURNS trigger LANGUAGE plpgsql AS $$
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
$$
"""

# Counts no further than the threshold, and not at all once the hour's alert exists. The hour is
# that of the evaluation: decisions are written some time after it.
_ON_MATCH: Final = """
CREATE FUNCTION alert_on_match() RETURNS trigger LANGUAGE plpgsql AS $$
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
$$
"""

_TRIGGERS: Final = (
    """
    CREATE TRIGGER spending_counters_alert
    AFTER UPDATE OF settled_pico, limit_pico ON spending_counters
    FOR EACH ROW
    WHEN (div(NEW.settled_pico * 100, nullif(NEW.limit_pico, 0))
          > coalesce(div(OLD.settled_pico * 100, nullif(OLD.limit_pico, 0)), -1))
    EXECUTE FUNCTION alert_on_counter()
    """,
    """
    CREATE TRIGGER accounts_alert
    AFTER UPDATE OF settled_pico, credit_pico ON accounts
    FOR EACH ROW
    WHEN (NEW.settled_pico >= NEW.next_alert_pico OR NEW.credit_pico <> OLD.credit_pico)
    EXECUTE FUNCTION alert_on_account()
    """,
    """
    CREATE TRIGGER alert_subscriptions_next
    AFTER INSERT OR DELETE OR UPDATE OF credit_percents, credit_below_pico ON alert_subscriptions
    FOR EACH ROW EXECUTE FUNCTION alert_on_subscription()
    """,
    """
    CREATE TRIGGER unsettled_holds_alert
    AFTER INSERT ON unsettled_holds REFERENCING NEW TABLE AS marked
    FOR EACH STATEMENT EXECUTE FUNCTION alert_on_unsettled()
    """,
    """
    CREATE TRIGGER policy_decisions_alert
    AFTER INSERT ON policy_decisions REFERENCING NEW TABLE AS decided
    FOR EACH STATEMENT EXECUTE FUNCTION alert_on_match()
    """,
)

STATEMENTS: Final = (
    *_TABLES,
    *(_ALERT_ID, _WINDOW, _RAISE_CAP, _ON_COUNTER, _CREDIT_THRESHOLDS, _RAISE_CREDIT, _SET_NEXT),
    *(_ON_ACCOUNT, _ON_SUBSCRIPTION, _EVALUATE, _ON_UNSETTLED, _ON_MATCH),
    *_TRIGGERS,
)

CONTRACT: Final[tuple[str, ...]] = ()
