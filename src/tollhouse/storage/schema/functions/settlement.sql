-- Settlement: the second entry of a hold, and all sums that follow from it.
--
-- `ledger_settle_batch` settles resolutions of one organization or of many with one statement for
-- all tables. `ledger_settle_one` does the same for a single one without sets, which start slowly;
-- whatever is not plain about it (a hold that was resolved before, an alert to raise, a day or week
-- before the current one) it leaves to the batch. Settings as for admission.

CREATE OR REPLACE FUNCTION ledger_settle_batch(
    p_resolutions ledger_resolution[], p_skips_locked boolean
) RETURNS TABLE (outcome smallint)
LANGUAGE plpgsql
SET lock_timeout = '2s' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    v_locked   uuid[];
    v_resolved uuid[];
BEGIN
    IF cardinality(p_resolutions) = 0 THEN
        RETURN;
    END IF;
    IF NOT p_skips_locked THEN
        -- What waits for a lock is all of one organization.
        PERFORM FROM accounts a
          WHERE a.organization_id = (p_resolutions[1]).organization_id
            FOR UPDATE;
    END IF;
    SELECT array_agg(a.organization_id)
      INTO v_locked
      FROM (SELECT DISTINCT i.organization_id FROM unnest(p_resolutions) i) t
     CROSS JOIN LATERAL (
            SELECT x.organization_id
              FROM accounts x
             WHERE x.organization_id = t.organization_id
             LIMIT 1
               FOR UPDATE SKIP LOCKED) a;

    WITH resolved AS (
        INSERT INTO ledger_entries (
            organization_id, admitted_day, reservation_id, phase, kind, is_backfill, admitted_at,
            deadline_at, project_id, api_key_id, model, price_revision, instance_id,
            bills_without_answer, held_pico, posted_pico, excess_pico, unknown_pico,
            input_tokens, cached_input_tokens, output_tokens, images,
            input_pico, cached_input_pico, output_pico, image_pico, request_pico,
            delivered_tokens, is_estimated, operator_pays, cache_write_tokens, cache_write_pico)
        SELECT i.organization_id, i.admitted_day, i.reservation_id, 1, i.kind, h.is_backfill,
               h.admitted_at, h.deadline_at, h.project_id, h.api_key_id,
               coalesce(i.model, h.model), h.price_revision, h.instance_id,
               h.bills_without_answer, h.held_pico, sums.posted, i.excess_pico,
               CASE i.kind WHEN 'write_off' THEN h.held_pico - sums.posted ELSE 0 END,
               i.input_tokens, i.cached_input_tokens, i.output_tokens, i.images,
               i.input_pico, i.cached_input_pico, i.output_pico, i.image_pico, i.request_pico,
               i.delivered_tokens, i.is_estimated, i.operator_pays,
               i.cache_write_tokens, i.cache_write_pico
          FROM ledger_find_resolved(p_resolutions, v_locked, 0) h
          JOIN unnest(p_resolutions) WITH ORDINALITY AS i ON i.ordinality = h.item
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
          FROM (SELECT r.organization_id, sum(r.held_pico) AS held, sum(r.posted_pico) AS posted,
                       sum(r.excess_pico) AS excess, sum(r.unknown_pico) AS unknown
                  FROM resolved r
                 GROUP BY 1) t
         CROSS JOIN LATERAL (
                SELECT b.ctid AS place, b.is_alerted
                  FROM accounts b
                 WHERE b.organization_id = t.organization_id
                 LIMIT 1) before
         WHERE a.ctid = before.place
        RETURNING a.organization_id, a.is_alerted AND NOT before.is_alerted AS rings
    ), counted AS (
        UPDATE spending_counters c
           SET reserved_pico = c.reserved_pico - d.held,
               settled_pico = c.settled_pico + d.posted,
               ceiling_pico = CASE WHEN c.limit_pico IS NOT NULL THEN greatest(
                   c.limit_pico, c.settled_pico + c.reserved_pico + d.posted - d.held) END,
               is_alerted = c.is_alerted
                   OR coalesce(d.posted > 0 AND c.settled_pico + d.posted >= c.alert_pico, false),
               short_reserved_pico = c.short_reserved_pico - d.short_held,
               short_settled_pico = c.short_settled_pico + d.short_posted,
               short_ceiling_pico = CASE WHEN c.short_limit_pico IS NOT NULL THEN greatest(
                   c.short_limit_pico,
                   c.short_settled_pico + c.short_reserved_pico + d.short_posted - d.short_held)
                   END,
               short_is_alerted = c.short_is_alerted OR coalesce(
                   d.short_posted > 0
                   AND c.short_settled_pico + d.short_posted >= c.short_alert_pico, false),
               previous_reserved_pico = c.previous_reserved_pico - d.previous_held,
               previous_settled_pico = c.previous_settled_pico + d.previous_posted
          FROM (SELECT before.place, before.is_alerted, before.short_is_alerted,
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
                               (w.short_start = p.short_start)::int AS is_current,
                               (w.short_start = p.short_start - w.short_days)::int AS is_previous
                          FROM spending_counters p
                         WHERE p.organization_id = w.organization_id
                           AND p.scope = w.scope
                           AND p.scope_id = w.scope_id
                           AND p.window_start = w.window_start
                         LIMIT 1) before
                 GROUP BY 1, 2, 3) d
         WHERE c.ctid = d.place
        RETURNING c.organization_id, c.scope, c.scope_id, c.window_start, c.short_start,
                  c.is_alerted AND NOT d.is_alerted AS rings,
                  c.short_is_alerted AND NOT d.short_is_alerted AS short_rings
    ), alerts AS (
        -- An alert of a day or week that has ended would come too late: only the current one rings.
        INSERT INTO spending_alerts (organization_id, scope, scope_id, window_start, period)
        SELECT account.organization_id, 'credit', account.organization_id, '-infinity', NULL
          FROM account WHERE rings
        UNION ALL
        SELECT counted.organization_id, counted.scope, counted.scope_id, counted.window_start, NULL
          FROM counted WHERE rings
        UNION ALL
        SELECT counted.organization_id, counted.scope, counted.scope_id, counted.short_start,
               CASE counted.window_start WHEN '-infinity' THEN 'week' ELSE 'day' END
          FROM counted WHERE short_rings
    ), daily AS (
        INSERT INTO cost_daily AS t (
            organization_id, day, project_id, api_key_id, model, requests, estimated_requests,
            input_tokens, cached_input_tokens, output_tokens, images, input_pico,
            cached_input_pico, output_pico, image_pico, request_pico, cache_write_tokens,
            cache_write_pico)
        SELECT r.organization_id, r.admitted_day, r.project_id, r.api_key_id, r.model,
               count(*), count(*) FILTER (WHERE r.is_estimated), sum(r.input_tokens),
               sum(r.cached_input_tokens), sum(r.output_tokens), sum(r.images), sum(r.input_pico),
               sum(r.cached_input_pico), sum(r.output_pico), sum(r.image_pico),
               sum(r.request_pico), sum(r.cache_write_tokens), sum(r.cache_write_pico)
          FROM resolved r
         WHERE r.kind = 'post' OR r.posted_pico > 0
         GROUP BY 1, 2, 3, 4, 5
        ON CONFLICT (organization_id, day, project_id, api_key_id, model) DO UPDATE
           SET requests = t.requests + EXCLUDED.requests,
               estimated_requests = t.estimated_requests + EXCLUDED.estimated_requests,
               input_tokens = t.input_tokens + EXCLUDED.input_tokens,
               cached_input_tokens = t.cached_input_tokens + EXCLUDED.cached_input_tokens,
               output_tokens = t.output_tokens + EXCLUDED.output_tokens,
               images = t.images + EXCLUDED.images,
               input_pico = t.input_pico + EXCLUDED.input_pico,
               cached_input_pico = t.cached_input_pico + EXCLUDED.cached_input_pico,
               output_pico = t.output_pico + EXCLUDED.output_pico,
               image_pico = t.image_pico + EXCLUDED.image_pico,
               request_pico = t.request_pico + EXCLUDED.request_pico,
               cache_write_tokens = t.cache_write_tokens + EXCLUDED.cache_write_tokens,
               cache_write_pico = t.cache_write_pico + EXCLUDED.cache_write_pico
    ), hourly AS (
        INSERT INTO cost_hourly AS t (
            organization_id, hour, project_id, api_key_id, model, requests, estimated_requests,
            input_tokens, cached_input_tokens, output_tokens, images, input_pico,
            cached_input_pico, output_pico, image_pico, request_pico, cache_write_tokens,
            cache_write_pico)
        SELECT r.organization_id, date_trunc('hour', r.admitted_at, 'UTC'), r.project_id,
               r.api_key_id, r.model,
               count(*), count(*) FILTER (WHERE r.is_estimated), sum(r.input_tokens),
               sum(r.cached_input_tokens), sum(r.output_tokens), sum(r.images), sum(r.input_pico),
               sum(r.cached_input_pico), sum(r.output_pico), sum(r.image_pico),
               sum(r.request_pico), sum(r.cache_write_tokens), sum(r.cache_write_pico)
          FROM resolved r
         WHERE r.kind = 'post' OR r.posted_pico > 0
         GROUP BY 1, 2, 3, 4, 5
        ON CONFLICT (organization_id, hour, project_id, api_key_id, model) DO UPDATE
           SET requests = t.requests + EXCLUDED.requests,
               estimated_requests = t.estimated_requests + EXCLUDED.estimated_requests,
               input_tokens = t.input_tokens + EXCLUDED.input_tokens,
               cached_input_tokens = t.cached_input_tokens + EXCLUDED.cached_input_tokens,
               output_tokens = t.output_tokens + EXCLUDED.output_tokens,
               images = t.images + EXCLUDED.images,
               input_pico = t.input_pico + EXCLUDED.input_pico,
               cached_input_pico = t.cached_input_pico + EXCLUDED.cached_input_pico,
               output_pico = t.output_pico + EXCLUDED.output_pico,
               image_pico = t.image_pico + EXCLUDED.image_pico,
               request_pico = t.request_pico + EXCLUDED.request_pico,
               cache_write_tokens = t.cache_write_tokens + EXCLUDED.cache_write_tokens,
               cache_write_pico = t.cache_write_pico + EXCLUDED.cache_write_pico
    )
    SELECT coalesce(array_agg(r.reservation_id), '{}') INTO v_resolved FROM resolved r;
    IF EXISTS (SELECT FROM unsettled_holds u WHERE u.organization_id = ANY(v_locked)) THEN
        DELETE FROM unsettled_holds u
         USING unnest(p_resolutions) i
         CROSS JOIN LATERAL (
                SELECT x.ctid AS place
                  FROM unsettled_holds x
                 WHERE x.organization_id = i.organization_id
                   AND x.admitted_day = i.admitted_day
                   AND x.reservation_id = i.reservation_id
                 LIMIT 1) old
         WHERE u.ctid = old.place
           AND i.reservation_id = ANY(v_resolved);
    END IF;

    IF cardinality(v_resolved) = cardinality(p_resolutions) THEN
        RETURN QUERY SELECT 0::smallint FROM generate_series(1, cardinality(p_resolutions));
        RETURN;
    END IF;
    RETURN QUERY
    SELECT CASE WHEN i.reservation_id = ANY(v_resolved) AND i.is_first THEN 0
                WHEN e.item IS NOT NULL THEN 1
                WHEN i.organization_id = ANY(v_locked) THEN 2
                WHEN EXISTS (SELECT FROM accounts a
                              WHERE a.organization_id = i.organization_id) THEN 4
                ELSE 2 END::smallint
      FROM (SELECT r.*, row_number() OVER (
                       PARTITION BY r.organization_id, r.reservation_id ORDER BY r.ordinality
                   ) = 1 AS is_first
              FROM unnest(p_resolutions) WITH ORDINALITY AS r) i
      LEFT JOIN ledger_find_resolved(p_resolutions, v_locked, 1) e ON e.item = i.ordinality
     ORDER BY i.ordinality;
END
$$;

-- A hold never changes once it is committed, so it is read before its account is locked, from the
-- partition of its day by name: that is planned in a quarter of the time.
CREATE OR REPLACE FUNCTION ledger_settle_one(
    i ledger_resolution, p_skips_locked boolean, OUT outcome smallint
) LANGUAGE plpgsql SET lock_timeout = '2s' SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_hold      ledger_entries;
    v_posted    bigint := i.input_pico + i.cached_input_pico + i.output_pico + i.image_pico
                          + i.request_pico;
    v_unknown   bigint;
    v_model     text;
    v_is_plain  boolean;
    v_month     date;
    v_week      date;
    v_places    tid[];
    v_partition text := to_char(i.admitted_day, '"ledger_entries_"YYYYMMDD');
BEGIN
    IF NOT p_skips_locked THEN
        PERFORM FROM accounts a WHERE a.organization_id = i.organization_id FOR UPDATE;
    END IF;
    IF to_regclass(v_partition) IS NOT NULL THEN
        EXECUTE format(
            'SELECT * FROM %I WHERE organization_id = $1 AND admitted_day = $2'
            ' AND reservation_id = $3 AND phase = 0', v_partition)
           INTO v_hold
          USING i.organization_id, i.admitted_day, i.reservation_id;
    END IF;
    IF v_hold.organization_id IS NULL THEN
        outcome := 2;
        RETURN;
    END IF;
    SELECT a.is_alerted OR (a.settled_pico + v_posted) * 100 < a.credit_pico * 80
      INTO v_is_plain
      FROM accounts a
     WHERE a.organization_id = i.organization_id
       FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        outcome := 4;
        RETURN;
    END IF;
    IF v_is_plain THEN
        v_week := date_trunc('week', i.admitted_day::timestamp)::date;
        v_month := date_trunc('month', i.admitted_day)::date;
        SELECT array_agg(c.place)
          INTO v_places
          FROM (VALUES ('organization', i.organization_id, v_month, i.admitted_day),
                       ('organization', i.organization_id, '-infinity', v_week),
                       ('project', v_hold.project_id, v_month, i.admitted_day),
                       ('project', v_hold.project_id, '-infinity', v_week),
                       ('api_key', v_hold.api_key_id, v_month, i.admitted_day),
                       ('api_key', v_hold.api_key_id, '-infinity', v_week)
               ) k (scope, scope_id, window_start, short_start)
         CROSS JOIN LATERAL (
                SELECT x.ctid AS place
                  FROM spending_counters x
                 WHERE x.organization_id = i.organization_id
                   AND x.scope = k.scope
                   AND x.scope_id = k.scope_id
                   AND x.window_start = k.window_start
                   AND (x.alert_pico IS NULL OR x.is_alerted
                        OR x.settled_pico + v_posted < x.alert_pico)
                   AND x.short_start = k.short_start
                   AND (x.short_alert_pico IS NULL OR x.short_is_alerted
                        OR x.short_settled_pico + v_posted < x.short_alert_pico)
                 LIMIT 1) c;
    END IF;
    IF cardinality(v_places) = 6 THEN
        v_model := coalesce(i.model, v_hold.model);
        v_unknown := CASE i.kind WHEN 'write_off' THEN v_hold.held_pico - v_posted ELSE 0 END;
        INSERT INTO ledger_entries (
            organization_id, admitted_day, reservation_id, phase, kind, is_backfill, admitted_at,
            deadline_at, project_id, api_key_id, model, price_revision, instance_id,
            bills_without_answer, held_pico, posted_pico, excess_pico, unknown_pico,
            input_tokens, cached_input_tokens, output_tokens, images,
            input_pico, cached_input_pico, output_pico, image_pico, request_pico,
            delivered_tokens, is_estimated, operator_pays, cache_write_tokens, cache_write_pico)
        VALUES (i.organization_id, i.admitted_day, i.reservation_id, 1, i.kind, v_hold.is_backfill,
                v_hold.admitted_at, v_hold.deadline_at, v_hold.project_id, v_hold.api_key_id,
                v_model, v_hold.price_revision, v_hold.instance_id,
                v_hold.bills_without_answer, v_hold.held_pico, v_posted, i.excess_pico, v_unknown,
                i.input_tokens, i.cached_input_tokens, i.output_tokens, i.images,
                i.input_pico, i.cached_input_pico, i.output_pico, i.image_pico, i.request_pico,
                i.delivered_tokens, i.is_estimated, i.operator_pays,
                i.cache_write_tokens, i.cache_write_pico)
        ON CONFLICT DO NOTHING;
    END IF;
    IF v_places IS NULL OR cardinality(v_places) < 6 OR NOT FOUND THEN
        SELECT b.outcome INTO outcome FROM ledger_settle_batch(ARRAY[i], true) b;
        RETURN;
    END IF;

    UPDATE accounts a
       SET reserved_pico = a.reserved_pico - v_hold.held_pico,
           settled_pico = a.settled_pico + v_posted,
           ceiling_pico = greatest(
               a.credit_pico, a.settled_pico + a.reserved_pico + v_posted - v_hold.held_pico),
           written_off_excess_pico = a.written_off_excess_pico + i.excess_pico,
           written_off_unknown_pico = a.written_off_unknown_pico + v_unknown
     WHERE a.organization_id = i.organization_id;
    UPDATE spending_counters c
       SET reserved_pico = c.reserved_pico - v_hold.held_pico,
           settled_pico = c.settled_pico + v_posted,
           ceiling_pico = CASE WHEN c.limit_pico IS NOT NULL THEN greatest(
               c.limit_pico, c.settled_pico + c.reserved_pico + v_posted - v_hold.held_pico) END,
           short_reserved_pico = c.short_reserved_pico - v_hold.held_pico,
           short_settled_pico = c.short_settled_pico + v_posted,
           short_ceiling_pico = CASE WHEN c.short_limit_pico IS NOT NULL THEN greatest(
               c.short_limit_pico,
               c.short_settled_pico + c.short_reserved_pico + v_posted - v_hold.held_pico) END
     WHERE c.ctid = ANY(v_places);
    IF i.kind = 'post' OR v_posted > 0 THEN
        INSERT INTO cost_daily AS t (
            organization_id, day, project_id, api_key_id, model, requests, estimated_requests,
            input_tokens, cached_input_tokens, output_tokens, images, input_pico,
            cached_input_pico, output_pico, image_pico, request_pico, cache_write_tokens,
            cache_write_pico)
        VALUES (i.organization_id, i.admitted_day, v_hold.project_id, v_hold.api_key_id, v_model,
                1, i.is_estimated::int, i.input_tokens, i.cached_input_tokens, i.output_tokens,
                i.images, i.input_pico, i.cached_input_pico, i.output_pico, i.image_pico,
                i.request_pico, i.cache_write_tokens, i.cache_write_pico)
        ON CONFLICT (organization_id, day, project_id, api_key_id, model) DO UPDATE
           SET requests = t.requests + EXCLUDED.requests,
               estimated_requests = t.estimated_requests + EXCLUDED.estimated_requests,
               input_tokens = t.input_tokens + EXCLUDED.input_tokens,
               cached_input_tokens = t.cached_input_tokens + EXCLUDED.cached_input_tokens,
               output_tokens = t.output_tokens + EXCLUDED.output_tokens,
               images = t.images + EXCLUDED.images,
               input_pico = t.input_pico + EXCLUDED.input_pico,
               cached_input_pico = t.cached_input_pico + EXCLUDED.cached_input_pico,
               output_pico = t.output_pico + EXCLUDED.output_pico,
               image_pico = t.image_pico + EXCLUDED.image_pico,
               request_pico = t.request_pico + EXCLUDED.request_pico,
               cache_write_tokens = t.cache_write_tokens + EXCLUDED.cache_write_tokens,
               cache_write_pico = t.cache_write_pico + EXCLUDED.cache_write_pico;
        INSERT INTO cost_hourly AS t (
            organization_id, hour, project_id, api_key_id, model, requests, estimated_requests,
            input_tokens, cached_input_tokens, output_tokens, images, input_pico,
            cached_input_pico, output_pico, image_pico, request_pico, cache_write_tokens,
            cache_write_pico)
        VALUES (i.organization_id, date_trunc('hour', v_hold.admitted_at, 'UTC'),
                v_hold.project_id, v_hold.api_key_id, v_model,
                1, i.is_estimated::int, i.input_tokens, i.cached_input_tokens, i.output_tokens,
                i.images, i.input_pico, i.cached_input_pico, i.output_pico, i.image_pico,
                i.request_pico, i.cache_write_tokens, i.cache_write_pico)
        ON CONFLICT (organization_id, hour, project_id, api_key_id, model) DO UPDATE
           SET requests = t.requests + EXCLUDED.requests,
               estimated_requests = t.estimated_requests + EXCLUDED.estimated_requests,
               input_tokens = t.input_tokens + EXCLUDED.input_tokens,
               cached_input_tokens = t.cached_input_tokens + EXCLUDED.cached_input_tokens,
               output_tokens = t.output_tokens + EXCLUDED.output_tokens,
               images = t.images + EXCLUDED.images,
               input_pico = t.input_pico + EXCLUDED.input_pico,
               cached_input_pico = t.cached_input_pico + EXCLUDED.cached_input_pico,
               output_pico = t.output_pico + EXCLUDED.output_pico,
               image_pico = t.image_pico + EXCLUDED.image_pico,
               request_pico = t.request_pico + EXCLUDED.request_pico,
               cache_write_tokens = t.cache_write_tokens + EXCLUDED.cache_write_tokens,
               cache_write_pico = t.cache_write_pico + EXCLUDED.cache_write_pico;
    END IF;
    DELETE FROM unsettled_holds u
     WHERE u.organization_id = i.organization_id
       AND u.admitted_day = i.admitted_day
       AND u.reservation_id = i.reservation_id;
    outcome := 0;
END
$$;
