"""The functions that move money: one call, one round trip, one commit for a whole batch."""

from typing import Final

from tollhouse.storage.migrations.ledger_helpers import (
    ADMIT_MIXED,
    IS_LOCKED_ELSEWHERE,
    MAKE_PARTITION,
    OPEN_COUNTERS,
    SETTLE_MIXED,
    UNSETTLED,
)

LOOK_UP_RETRIED: Final = """SELECT array_agg(e.phase IS NOT NULL ORDER BY i.n),
               array_agg(CASE e.phase WHEN 1 THEN 5 ELSE 0 END::smallint ORDER BY i.n)
          INTO v_existing, v_verdicts
          FROM unnest(p_reservation_ids, p_admitted_ats) WITH ORDINALITY AS i (id, admitted_at, n)
          LEFT JOIN LATERAL (
                SELECT x.phase
                  FROM ledger_entries x
                 WHERE x.organization_id = p_organization_id
                   AND x.admitted_day = (i.admitted_at AT TIME ZONE 'UTC')::date
                   AND x.reservation_id = i.id
                 ORDER BY x.phase DESC
                 LIMIT 1) e ON true;"""
"""Replaced by revision 0009."""

ADMIT: Final = f"""
CREATE FUNCTION ledger_admit(
    p_organization_id   uuid,
    p_instance_id       uuid,
    p_is_retry          boolean,
    p_reservation_ids   uuid[],
    p_admitted_ats      timestamptz[],
    p_deadline_ats      timestamptz[],
    p_amounts           bigint[],
    p_project_ids       uuid[],
    p_api_key_ids       uuid[],
    p_models            text[],
    p_price_revisions   bigint[],
    p_bill_without      boolean[],
    p_counter_scopes    text[],
    p_counter_scope_ids uuid[],
    p_counter_windows   date[],
    p_item_counters     integer[]
) RETURNS TABLE (verdict smallint, available_pico numeric, held_pico numeric)
LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
DECLARE
    v_count      integer := cardinality(p_reservation_ids);
    v_available  numeric;
    v_reserved   numeric;
    v_verdicts   smallint[] := array_fill(0::smallint, ARRAY[v_count]);
    v_free       numeric[] := array_fill(0::numeric, ARRAY[v_count]);
    v_held       numeric[] := array_fill(0::numeric, ARRAY[v_count]);
    v_taken      bigint[] := p_amounts;
    v_existing   boolean[] := array_fill(false, ARRAY[v_count]);
    v_places     tid[];
    v_limits     numeric[];
    v_used       numeric[];
    v_holding    numeric[];
    v_is_capped  boolean;
    v_now        timestamptz;
    v_counter    integer;
    v_total      numeric := 0;
BEGIN
    IF v_count = 0 THEN
        RETURN;
    END IF;
    SELECT a.credit_pico - a.settled_pico - a.reserved_pico, a.reserved_pico
      INTO v_available, v_reserved
      FROM accounts a
     WHERE a.organization_id = p_organization_id
       FOR UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 3::smallint, 0::numeric, 0::numeric FROM generate_series(1, v_count);
        RETURN;
    END IF;
    v_now := clock_timestamp();

    IF p_is_retry THEN
        -- A hold that was decided meanwhile covers nothing: its request comes too late.
        {LOOK_UP_RETRIED}
    END IF;

    LOOP
        SELECT array_agg(s.place ORDER BY k.n), array_agg(s.limit_pico ORDER BY k.n),
               array_agg(s.used ORDER BY k.n), array_agg(s.reserved_pico ORDER BY k.n),
               bool_or(s.limit_pico IS NOT NULL)
          INTO v_places, v_limits, v_used, v_holding, v_is_capped
          FROM unnest(p_counter_scopes, p_counter_scope_ids, p_counter_windows)
               WITH ORDINALITY AS k (scope, scope_id, window_start, n)
          LEFT JOIN LATERAL (
                SELECT c.ctid AS place, c.limit_pico, c.settled_pico + c.reserved_pico AS used,
                       c.reserved_pico
                  FROM spending_counters c
                 WHERE c.organization_id = p_organization_id
                   AND c.scope = k.scope
                   AND c.scope_id = k.scope_id
                   AND c.window_start = k.window_start
                 LIMIT 1) s ON true;
        EXIT WHEN array_position(v_used, NULL) IS NULL;
        PERFORM ledger_open_counters(
            p_organization_id, p_counter_scopes, p_counter_scope_ids, p_counter_windows);
    END LOOP;

    FOR i IN 1 .. v_count LOOP
        IF v_existing[i] THEN
            v_taken[i] := 0;
            CONTINUE;
        END IF;
        IF abs(extract(epoch FROM p_admitted_ats[i] - v_now)) > 600 THEN
            v_verdicts[i] := 2;
        ELSIF p_deadline_ats[i] <= v_now THEN
            v_verdicts[i] := 5;
        ELSIF p_amounts[i] > v_available THEN
            v_verdicts[i] := 1;
            v_free[i] := v_available;
            v_held[i] := v_reserved + v_total - ledger_unsettled(
                p_organization_id, 'organization', p_organization_id, '-infinity');
        ELSIF v_is_capped THEN
            FOR j IN 1 .. 6 LOOP
                v_counter := p_item_counters[6 * (i - 1) + j];
                IF v_used[v_counter] + p_amounts[i] > v_limits[v_counter] THEN
                    v_verdicts[i] := 9 + j;
                    v_free[i] := v_limits[v_counter] - v_used[v_counter];
                    v_held[i] := v_holding[v_counter] - ledger_unsettled(
                        p_organization_id, p_counter_scopes[v_counter],
                        p_counter_scope_ids[v_counter], p_counter_windows[v_counter]);
                    EXIT;
                END IF;
            END LOOP;
        END IF;
        IF v_verdicts[i] <> 0 THEN
            v_taken[i] := 0;
            CONTINUE;
        END IF;
        v_available := v_available - p_amounts[i];
        v_total := v_total + p_amounts[i];
        IF v_is_capped THEN
            FOR j IN 1 .. 6 LOOP
                v_counter := p_item_counters[6 * (i - 1) + j];
                v_used[v_counter] := v_used[v_counter] + p_amounts[i];
                v_holding[v_counter] := v_holding[v_counter] + p_amounts[i];
            END LOOP;
        END IF;
    END LOOP;

    INSERT INTO ledger_entries (
        organization_id, admitted_day, reservation_id, phase, kind, admitted_at, deadline_at,
        project_id, api_key_id, model, price_revision, instance_id, bills_without_answer, held_pico)
    SELECT p_organization_id, (i.admitted_at AT TIME ZONE 'UTC')::date, i.id, 0, 'reserve',
           i.admitted_at, i.deadline_at, i.project_id, i.api_key_id, i.model, i.price_revision,
           p_instance_id, i.bills_without, i.amount
      FROM unnest(p_reservation_ids, p_admitted_ats, p_deadline_ats, p_amounts, p_project_ids,
                  p_api_key_ids, p_models, p_price_revisions, p_bill_without, v_verdicts,
                  v_existing)
        AS i (id, admitted_at, deadline_at, amount, project_id, api_key_id, model, price_revision,
              bills_without, verdict, is_existing)
     WHERE i.verdict = 0
       AND NOT i.is_existing;

    IF v_total > 0 THEN
        UPDATE accounts a
           SET reserved_pico = a.reserved_pico + v_total
         WHERE a.organization_id = p_organization_id;

        UPDATE spending_counters c
           SET reserved_pico = c.reserved_pico + d.taken
          FROM (SELECT v_places[u.counter] AS place, sum(v_taken[(u.n - 1) / 6 + 1]) AS taken
                  FROM unnest(p_item_counters) WITH ORDINALITY AS u (counter, n)
                 GROUP BY 1) d
         WHERE c.ctid = d.place
           AND d.taken > 0;
    END IF;

    RETURN QUERY SELECT * FROM unnest(v_verdicts, v_free, v_held);
END
$$
"""  # noqa: S608 - composed of constants

_USE = """requests, input_tokens, cached_input_tokens, output_tokens, images,
        input_pico, cached_input_pico, output_pico, image_pico, request_pico"""
_USED = """count(*), sum(r.input_tokens), sum(r.cached_input_tokens), sum(r.output_tokens),
               sum(r.images), sum(r.input_pico), sum(r.cached_input_pico), sum(r.output_pico),
               sum(r.image_pico), sum(r.request_pico)"""
_ADD_USE = """requests = t.requests + EXCLUDED.requests,
            input_tokens = t.input_tokens + EXCLUDED.input_tokens,
            cached_input_tokens = t.cached_input_tokens + EXCLUDED.cached_input_tokens,
            output_tokens = t.output_tokens + EXCLUDED.output_tokens,
            images = t.images + EXCLUDED.images,
            input_pico = t.input_pico + EXCLUDED.input_pico,
            cached_input_pico = t.cached_input_pico + EXCLUDED.cached_input_pico,
            output_pico = t.output_pico + EXCLUDED.output_pico,
            image_pico = t.image_pico + EXCLUDED.image_pico,
            request_pico = t.request_pico + EXCLUDED.request_pico"""

SETTLE: Final = f"""
CREATE FUNCTION ledger_settle(
    p_organization_id     uuid,
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
    p_request_picos       bigint[]
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
            input_pico, cached_input_pico, output_pico, image_pico, request_pico)
        SELECT p_organization_id, h.admitted_day, h.reservation_id, 1, i.kind, h.is_backfill,
               h.admitted_at, h.deadline_at, h.project_id, h.api_key_id, h.model, h.price_revision,
               h.instance_id, h.bills_without_answer, h.held_pico, sums.posted, i.excess,
               CASE i.kind WHEN 'absorb' THEN h.held_pico - sums.posted ELSE 0 END,
               i.input_tokens, i.cached_input_tokens, i.output_tokens, i.images,
               i.input_pico, i.cached_input_pico, i.output_pico, i.image_pico, i.request_pico
          FROM unnest(p_reservation_ids, p_days, p_kinds, p_excess_picos,
                      p_input_tokens, p_cached_input_tokens, p_output_tokens, p_images,
                      p_input_picos, p_cached_input_picos, p_output_picos, p_image_picos,
                      p_request_picos)
            AS i (id, day, kind, excess, input_tokens, cached_input_tokens, output_tokens, images,
                  input_pico, cached_input_pico, output_pico, image_pico, request_pico)
         CROSS JOIN LATERAL (
                SELECT *
                  FROM ledger_entries e
                 WHERE e.organization_id = p_organization_id
                   AND e.admitted_day = i.day
                   AND e.reservation_id = i.id
                   AND e.phase = 0
                 LIMIT 1) h
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
               absorbed_excess_pico = a.absorbed_excess_pico + t.excess,
               absorbed_unknown_pico = a.absorbed_unknown_pico + t.unknown,
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
        INSERT INTO cost_daily AS t (organization_id, day, project_id, api_key_id, model,
        {_USE})
        SELECT p_organization_id, r.admitted_day, r.project_id, r.api_key_id, r.model,
               {_USED}
          FROM resolved r
         WHERE r.kind = 'post' OR r.posted_pico > 0
         GROUP BY 2, 3, 4, 5
        ON CONFLICT (organization_id, day, project_id, api_key_id, model) DO UPDATE SET
            {_ADD_USE}
    ), hourly AS (
        INSERT INTO cost_hourly AS t (organization_id, hour, project_id, api_key_id, model,
        {_USE})
        SELECT p_organization_id, date_trunc('hour', r.admitted_at, 'UTC'), r.project_id,
               r.api_key_id, r.model,
               {_USED}
          FROM resolved r
         WHERE r.kind = 'post' OR r.posted_pico > 0
         GROUP BY 2, 3, 4, 5
        ON CONFLICT (organization_id, hour, project_id, api_key_id, model) DO UPDATE SET
            {_ADD_USE}
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
                WHEN e.phase = 1 THEN 1
                ELSE 2 END::smallint
      FROM unnest(p_reservation_ids, p_days) WITH ORDINALITY AS i (id, day, n)
      LEFT JOIN LATERAL (
            SELECT x.phase
              FROM ledger_entries x
             WHERE x.organization_id = p_organization_id
               AND x.admitted_day = i.day
               AND x.reservation_id = i.id
               AND x.phase = 1
             LIMIT 1) e ON true
     ORDER BY i.n;
END
$$
"""  # noqa: S608 - composed of constants

FUNCTIONS: Final = (
    MAKE_PARTITION,
    "SELECT ledger_make_partition(current_date + ahead) FROM generate_series(-1, 7) ahead",
    OPEN_COUNTERS,
    UNSETTLED,
    ADMIT,
    SETTLE,
    IS_LOCKED_ELSEWHERE,
    ADMIT_MIXED,
    SETTLE_MIXED,
)
