"""The functions of revision 0009: settlement reads only the partitions of its items' days.

A day that is compared inside a LATERAL is known only row by row, so PostgreSQL opens and locks
every partition first. `ledger_find_entries` compares with a variable and is planned anew for each
call: the planner then leaves out all other partitions. It is the only statement of the request
path that reads `ledger_entries`; inserting opens only the partition that a row goes to.
"""

from typing import Final

from tollhouse.storage.migrations.ledger_functions import ADMIT, LOOK_UP_RETRIED

FIND_ENTRIES: Final = """
CREATE FUNCTION ledger_find_entries(
    p_organization_id uuid, p_reservation_ids uuid[], p_days date[], p_phase integer
) RETURNS TABLE (
    item bigint, reservation_id uuid, admitted_day date, is_backfill boolean,
    admitted_at timestamptz, deadline_at timestamptz, project_id uuid, api_key_id uuid, model text,
    price_revision bigint, instance_id uuid, bills_without_answer boolean, held_pico bigint)
LANGUAGE plpgsql STABLE ROWS 10 SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    v_day  date;
    v_done date[] := '{}';
BEGIN
    FOREACH v_day IN ARRAY p_days LOOP
        CONTINUE WHEN v_day = ANY(v_done);
        v_done := v_done || v_day;
        RETURN QUERY
        SELECT i.n, x.reservation_id, x.admitted_day, x.is_backfill, x.admitted_at, x.deadline_at,
               x.project_id, x.api_key_id, x.model, x.price_revision, x.instance_id,
               x.bills_without_answer, x.held_pico
          FROM unnest(p_reservation_ids, p_days) WITH ORDINALITY AS i (id, day, n)
         CROSS JOIN LATERAL (
                SELECT *
                  FROM ledger_entries e
                 WHERE e.organization_id = p_organization_id
                   AND e.admitted_day = v_day
                   AND e.reservation_id = i.id
                   AND e.phase = p_phase
                 LIMIT 1) x
         WHERE i.day = v_day;
    END LOOP;
END
$$
"""

_DAYS_OF_HOLDS: Final = """ARRAY(
                SELECT (a.admitted_at AT TIME ZONE 'UTC')::date
                  FROM unnest(p_admitted_ats) WITH ORDINALITY AS a (admitted_at, n)
                 ORDER BY a.n)"""
_FIND_RETRIED: Final = f"""SELECT array_agg(hold.item IS NOT NULL ORDER BY i.n),
               array_agg(CASE WHEN resolution.item IS NULL THEN 0 ELSE 5 END::smallint ORDER BY i.n)
          INTO v_existing, v_verdicts
          FROM generate_series(1, v_count) AS i (n)
          LEFT JOIN ledger_find_entries(
                p_organization_id, p_reservation_ids, {_DAYS_OF_HOLDS}, 0) hold
            ON hold.item = i.n
          LEFT JOIN ledger_find_entries(
                p_organization_id, p_reservation_ids, {_DAYS_OF_HOLDS}, 1) resolution
            ON resolution.item = i.n;"""  # noqa: S608 - composed of constants

ADMIT_BY_DAY: Final = ADMIT.replace(LOOK_UP_RETRIED, _FIND_RETRIED).replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1
)

_SETTLE_TYPES: Final = "uuid[], date[], text[], " + ", ".join(["bigint[]"] * 10)
DROP_SETTLE: Final = f"DROP FUNCTION ledger_settle(uuid, {_SETTLE_TYPES})"
DROP_SETTLE_MIXED: Final = f"DROP FUNCTION ledger_settle_mixed(uuid[], {_SETTLE_TYPES})"

_PARAMETERS: Final = """
    p_reservation_ids     uuid[],
    p_days                date[],
    p_kinds               text[],
    p_excess_picos        bigint[],
    p_input_tokens        bigint[],
    p_cached_input_tokens bigint[],
    p_output_tokens       bigint[],
    p_images              bigint[],
    p_input_picos         bigint[],
    p_cached_input_picos  bigint[],
    p_output_picos        bigint[],
    p_image_picos         bigint[],
    p_request_picos       bigint[],
    p_delivered_tokens    bigint[] DEFAULT NULL,
    p_is_estimated        boolean[] DEFAULT NULL,
    p_operator_pays       text[] DEFAULT NULL
"""
"""Workers of the version before, which go on beside a migration, give all but the last three."""

_QUANTITIES: Final = (
    *("requests", "estimated_requests"),
    *("input_tokens", "cached_input_tokens", "output_tokens", "images"),
    *("input_pico", "cached_input_pico", "output_pico", "image_pico", "request_pico"),
)
_USE: Final = ", ".join(_QUANTITIES)
_USED: Final = "count(*), count(*) FILTER (WHERE r.is_estimated), " + ", ".join(
    f"sum(r.{name})" for name in _QUANTITIES[2:]
)
_ADD_USE: Final = ", ".join(f"{name} = t.{name} + EXCLUDED.{name}" for name in _QUANTITIES)

SETTLE: Final = f"""
CREATE FUNCTION ledger_settle(
    p_organization_id     uuid,
    {_PARAMETERS}
) RETURNS TABLE (outcome smallint)
LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
DECLARE
    v_resolved uuid[];
BEGIN
    IF cardinality(p_reservation_ids) = 0 THEN
        RETURN;
    END IF;
    PERFORM 1 FROM accounts a WHERE a.organization_id = p_organization_id FOR UPDATE;

    WITH resolved AS (
        INSERT INTO ledger_entries (
            organization_id, admitted_day, reservation_id, phase, kind, is_backfill, admitted_at,
            deadline_at, project_id, api_key_id, model, price_revision, instance_id,
            bills_without_answer, held_pico, posted_pico, excess_pico, unknown_pico,
            input_tokens, cached_input_tokens, output_tokens, images,
            input_pico, cached_input_pico, output_pico, image_pico, request_pico,
            delivered_tokens, is_estimated, operator_pays)
        SELECT p_organization_id, h.admitted_day, h.reservation_id, 1, i.kind, h.is_backfill,
               h.admitted_at, h.deadline_at, h.project_id, h.api_key_id, h.model, h.price_revision,
               h.instance_id, h.bills_without_answer, h.held_pico, sums.posted, i.excess,
               CASE i.kind WHEN 'write_off' THEN h.held_pico - sums.posted ELSE 0 END,
               i.input_tokens, i.cached_input_tokens, i.output_tokens, i.images,
               i.input_pico, i.cached_input_pico, i.output_pico, i.image_pico, i.request_pico,
               p_delivered_tokens[h.item], coalesce(p_is_estimated[h.item], false),
               p_operator_pays[h.item]
          FROM ledger_find_entries(p_organization_id, p_reservation_ids, p_days, 0) h
         CROSS JOIN LATERAL (
                SELECT p_kinds[h.item] AS kind, p_excess_picos[h.item] AS excess,
                       p_input_tokens[h.item] AS input_tokens,
                       p_cached_input_tokens[h.item] AS cached_input_tokens,
                       p_output_tokens[h.item] AS output_tokens, p_images[h.item] AS images,
                       p_input_picos[h.item] AS input_pico,
                       p_cached_input_picos[h.item] AS cached_input_pico,
                       p_output_picos[h.item] AS output_pico, p_image_picos[h.item] AS image_pico,
                       p_request_picos[h.item] AS request_pico) i
         CROSS JOIN LATERAL (
                SELECT i.input_pico + i.cached_input_pico + i.output_pico + i.image_pico
                       + i.request_pico AS posted) sums
        ON CONFLICT DO NOTHING
        RETURNING *
    ), account AS (
        UPDATE accounts a
           SET reserved_pico = a.reserved_pico - t.held,
               settled_pico = a.settled_pico + t.posted,
               ceiling_pico = greatest(
                   a.credit_pico, a.settled_pico + a.reserved_pico + t.posted - t.held),
               written_off_excess_pico = a.written_off_excess_pico + t.excess,
               written_off_unknown_pico = a.written_off_unknown_pico + t.unknown,
               is_alerted = a.is_alerted
                   OR (t.posted > 0 AND (a.settled_pico + t.posted) * 100 >= a.credit_pico * 80)
          FROM (SELECT sum(r.held_pico) AS held, sum(r.posted_pico) AS posted,
                       sum(r.excess_pico) AS excess, sum(r.unknown_pico) AS unknown
                  FROM resolved r) t,
               (SELECT b.is_alerted FROM accounts b
                 WHERE b.organization_id = p_organization_id) before
         WHERE a.organization_id = p_organization_id
           AND t.held IS NOT NULL
        RETURNING a.is_alerted AND NOT before.is_alerted AS rings
    ), counted AS (
        UPDATE spending_counters c
           SET reserved_pico = c.reserved_pico - d.held,
               settled_pico = c.settled_pico + d.posted,
               ceiling_pico = CASE WHEN c.limit_pico IS NOT NULL THEN greatest(
                   c.limit_pico, c.settled_pico + c.reserved_pico + d.posted - d.held) END,
               is_alerted = c.is_alerted
                   OR coalesce(d.posted > 0 AND c.settled_pico + d.posted >= c.alert_pico, false)
          FROM (SELECT k.scope, k.scope_id, k.window_start,
                       sum(r.held_pico) AS held, sum(r.posted_pico) AS posted
                  FROM resolved r
                 CROSS JOIN LATERAL (
                        SELECT date_trunc('month', r.admitted_day)::date AS start) month
                 CROSS JOIN LATERAL (VALUES
                        ('organization', p_organization_id, month.start),
                        ('organization', p_organization_id, '-infinity'::date),
                        ('project', r.project_id, month.start),
                        ('project', r.project_id, '-infinity'::date),
                        ('api_key', r.api_key_id, month.start),
                        ('api_key', r.api_key_id, '-infinity'::date)
                      ) k (scope, scope_id, window_start)
                 GROUP BY 1, 2, 3) d
         CROSS JOIN LATERAL (
                SELECT p.ctid AS place, p.is_alerted
                  FROM spending_counters p
                 WHERE p.organization_id = p_organization_id
                   AND p.scope = d.scope
                   AND p.scope_id = d.scope_id
                   AND p.window_start = d.window_start
                 LIMIT 1) before
         WHERE c.ctid = before.place
        RETURNING c.scope, c.scope_id, c.window_start,
                  c.is_alerted AND NOT before.is_alerted AS rings
    ), alerts AS (
        INSERT INTO spending_alerts (organization_id, scope, scope_id, window_start)
        SELECT p_organization_id, 'credit', p_organization_id, '-infinity'
          FROM account WHERE rings
        UNION ALL
        SELECT p_organization_id, counted.scope, counted.scope_id, counted.window_start
          FROM counted WHERE rings
    ), daily AS (
        INSERT INTO cost_daily AS t (organization_id, day, project_id, api_key_id, model, {_USE})
        SELECT p_organization_id, r.admitted_day, r.project_id, r.api_key_id, r.model, {_USED}
          FROM resolved r
         WHERE r.kind = 'post' OR r.posted_pico > 0
         GROUP BY 2, 3, 4, 5
        ON CONFLICT (organization_id, day, project_id, api_key_id, model) DO UPDATE SET {_ADD_USE}
    ), hourly AS (
        INSERT INTO cost_hourly AS t (organization_id, hour, project_id, api_key_id, model, {_USE})
        SELECT p_organization_id, date_trunc('hour', r.admitted_at, 'UTC'), r.project_id,
               r.api_key_id, r.model, {_USED}
          FROM resolved r
         WHERE r.kind = 'post' OR r.posted_pico > 0
         GROUP BY 2, 3, 4, 5
        ON CONFLICT (organization_id, hour, project_id, api_key_id, model) DO UPDATE SET {_ADD_USE}
    )
    SELECT coalesce(array_agg(r.reservation_id), '{{}}') INTO v_resolved FROM resolved r;

    IF EXISTS (SELECT FROM unsettled_holds u WHERE u.organization_id = p_organization_id) THEN
        DELETE FROM unsettled_holds u
         USING unnest(p_reservation_ids, p_days) AS i (id, day)
         CROSS JOIN LATERAL (
                SELECT x.ctid AS place
                  FROM unsettled_holds x
                 WHERE x.organization_id = p_organization_id
                   AND x.admitted_day = i.day
                   AND x.reservation_id = i.id
                 LIMIT 1) old
         WHERE u.ctid = old.place
           AND i.id = ANY(v_resolved);
    END IF;

    IF cardinality(v_resolved) = cardinality(p_reservation_ids) THEN
        RETURN QUERY SELECT 0::smallint FROM generate_series(1, cardinality(p_reservation_ids));
        RETURN;
    END IF;
    RETURN QUERY
    SELECT CASE WHEN i.id = ANY(v_resolved) AND array_position(p_reservation_ids, i.id) = i.n THEN 0
                WHEN e.item IS NOT NULL THEN 1
                ELSE 2 END::smallint
      FROM unnest(p_reservation_ids) WITH ORDINALITY AS i (id, n)
      LEFT JOIN ledger_find_entries(p_organization_id, p_reservation_ids, p_days, 1) e
        ON e.item = i.n
     ORDER BY i.n;
END
$$
"""  # noqa: S608 - composed of constants

SETTLE_MIXED: Final = f"""
CREATE FUNCTION ledger_settle_mixed(
    p_organization_ids    uuid[],
    {_PARAMETERS}
) RETURNS TABLE (outcome smallint)
LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. cardinality(p_reservation_ids) LOOP
        IF ledger_is_locked_elsewhere(p_organization_ids[i]) THEN
            RETURN QUERY SELECT 4::smallint;
            CONTINUE;
        END IF;
        RETURN QUERY SELECT * FROM ledger_settle(
            p_organization_ids[i], p_reservation_ids[i:i], p_days[i:i], p_kinds[i:i],
            p_excess_picos[i:i], p_input_tokens[i:i], p_cached_input_tokens[i:i],
            p_output_tokens[i:i], p_images[i:i], p_input_picos[i:i], p_cached_input_picos[i:i],
            p_output_picos[i:i], p_image_picos[i:i], p_request_picos[i:i],
            p_delivered_tokens[i:i], p_is_estimated[i:i], p_operator_pays[i:i]);
    END LOOP;
END
$$
"""  # noqa: S608 - composed of constants

FUNCTIONS: Final = (
    FIND_ENTRIES,
    ADMIT_BY_DAY,
    DROP_SETTLE,
    SETTLE,
    DROP_SETTLE_MIXED,
    SETTLE_MIXED,
)
