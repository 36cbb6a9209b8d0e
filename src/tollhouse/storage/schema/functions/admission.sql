-- Admission: a hold is committed where credit and every counter leave room for it, or refused.
--
-- `ledger_admit_batch` adds up what the holds of each organization need. Where the sum fits into
-- the credit and into every counter, all of them are admitted with one statement per table. Where
-- it does not, `ledger_admit_each` decides the organization's holds one after the other and says
-- what is missing. `ledger_admit_one` does the same for a single hold without sets, which start
-- slowly.
--
-- The plain case needs counters whose current short window is that of the hold. A window that
-- begins, and a hold of the window before, are left to `ledger_admit_each`, once a day for each
-- key and in the seconds around midnight.
--
-- The settings of the batch and of the single hold are part of their texts: a plan that is made
-- once serves batches of all sizes, because every row is found by an index, and one that was made
-- while a table was small would read the whole of a larger one. Without them the functions are
-- right and up to a hundred times slower. A list of keys is joined by `CROSS JOIN LATERAL (...
-- LIMIT 1)` and rows are then updated by their place, for the same reason.

CREATE OR REPLACE FUNCTION ledger_admit_each(
    p_organization_id uuid,
    p_holds           ledger_hold[],
    p_instance_id     uuid,
    p_is_retry        boolean
) RETURNS TABLE (item integer, verdict smallint, available_pico numeric, held_pico numeric)
LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
#variable_conflict use_column
DECLARE
    i         ledger_hold;
    v_account accounts;
    v_cap     record;
BEGIN
    FOR v_item IN 1 .. cardinality(p_holds) LOOP
        i := p_holds[v_item];
        CONTINUE WHEN i.organization_id <> p_organization_id;
        item := v_item;
        verdict := 0;
        available_pico := 0;
        held_pico := 0;
        SELECT * INTO v_account
          FROM accounts a WHERE a.organization_id = p_organization_id FOR UPDATE;
        IF NOT FOUND THEN
            verdict := 3;
        ELSIF p_is_retry AND EXISTS (
                SELECT FROM ledger_find_entries(
                    p_organization_id, ARRAY[i.reservation_id],
                    ARRAY[(i.admitted_at AT TIME ZONE 'UTC')::date], 0)) THEN
            -- A hold that was decided meanwhile covers nothing: its request comes too late.
            IF EXISTS (SELECT FROM ledger_find_entries(
                    p_organization_id, ARRAY[i.reservation_id],
                    ARRAY[(i.admitted_at AT TIME ZONE 'UTC')::date], 1)) THEN
                verdict := 5;
            END IF;
            RETURN NEXT;
            CONTINUE;
        -- A hold from before the freeze was found above, so that its retry is answered.
        ELSIF coalesce(v_account.frozen_until > clock_timestamp(), false) THEN
            verdict := 6;
        ELSIF abs(extract(epoch FROM i.admitted_at - clock_timestamp())) > 600 THEN
            verdict := 2;
        ELSIF i.deadline_at <= clock_timestamp() THEN
            verdict := 5;
        ELSIF i.amount_pico
                > v_account.credit_pico - v_account.settled_pico - v_account.reserved_pico THEN
            verdict := 1;
            available_pico :=
                v_account.credit_pico - v_account.settled_pico - v_account.reserved_pico;
            held_pico := v_account.reserved_pico - ledger_unsettled(
                p_organization_id, 'organization', p_organization_id, '-infinity');
        ELSE
            PERFORM ledger_begin_windows(i);
            SELECT w.position, c.scope, c.scope_id, w.start, k.short_days, w.reserved,
                   w.available
              INTO v_cap
              FROM ledger_windows(i) k
              JOIN spending_counters c
                ON c.organization_id = p_organization_id
               AND c.scope = k.scope
               AND c.scope_id = k.scope_id
               AND c.window_start = k.window_start
             CROSS JOIN LATERAL (VALUES
                    (k.place, c.window_start, c.reserved_pico,
                     c.limit_pico - c.settled_pico - c.reserved_pico),
                    (k.place + 6, k.short_start,
                     CASE k.short_start WHEN c.short_start THEN c.short_reserved_pico
                                        ELSE c.previous_reserved_pico END,
                     c.short_limit_pico
                     - CASE k.short_start
                            WHEN c.short_start THEN c.short_settled_pico + c.short_reserved_pico
                            ELSE c.previous_settled_pico + c.previous_reserved_pico END)
                  ) w (position, start, reserved, available)
             WHERE w.available < i.amount_pico
             ORDER BY w.position
             LIMIT 1;
            IF FOUND THEN
                verdict := 9 + v_cap.position;
                available_pico := v_cap.available;
                held_pico := v_cap.reserved - CASE
                    WHEN v_cap.position <= 6 THEN ledger_unsettled(
                        p_organization_id, v_cap.scope, v_cap.scope_id, v_cap.start)
                    ELSE ledger_unsettled_in(
                        p_organization_id, v_cap.scope, v_cap.scope_id, v_cap.start,
                        v_cap.short_days) END;
            END IF;
        END IF;
        IF verdict = 0 THEN
            INSERT INTO ledger_entries (
                organization_id, admitted_day, reservation_id, phase, kind, admitted_at,
                deadline_at, project_id, api_key_id, model, price_revision, instance_id,
                bills_without_answer, held_pico)
            SELECT i.organization_id, (i.admitted_at AT TIME ZONE 'UTC')::date, i.reservation_id, 0,
                   'reserve', i.admitted_at, i.deadline_at, i.project_id, i.api_key_id, i.model,
                   i.price_revision, p_instance_id, i.bills_without_answer, i.amount_pico;
            UPDATE accounts a
               SET reserved_pico = a.reserved_pico + i.amount_pico
             WHERE a.organization_id = p_organization_id;
            PERFORM ledger_reserve_in_windows(i, false);
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION ledger_admit_one(
    i             ledger_hold,
    p_instance_id uuid,
    p_is_retry    boolean,
    OUT verdict smallint, OUT available_pico numeric, OUT held_pico numeric
) LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_fits   boolean;
    v_month  date;
    v_week   date;
    v_day    date;
    v_places tid[];
BEGIN
    SELECT a.credit_pico - a.settled_pico - a.reserved_pico >= i.amount_pico
           AND NOT coalesce(a.frozen_until > clock_timestamp(), false)
      INTO v_fits
      FROM accounts a
     WHERE a.organization_id = i.organization_id
       FOR UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (
            SELECT FROM accounts a WHERE a.organization_id = i.organization_id) THEN
        verdict := 4;
        RETURN;
    END IF;
    IF v_fits AND NOT p_is_retry
       AND abs(extract(epoch FROM i.admitted_at - clock_timestamp())) <= 600
       AND i.deadline_at > clock_timestamp() THEN
        v_day := (i.admitted_at AT TIME ZONE 'UTC')::date;
        v_week := date_trunc('week', v_day::timestamp)::date;
        v_month := date_trunc('month', i.admitted_at AT TIME ZONE 'UTC')::date;
        SELECT array_agg(c.place)
          INTO v_places
          FROM (VALUES ('organization', i.organization_id, v_month, v_day),
                       ('organization', i.organization_id, '-infinity', v_week),
                       ('project', i.project_id, v_month, v_day),
                       ('project', i.project_id, '-infinity', v_week),
                       ('api_key', i.api_key_id, v_month, v_day),
                       ('api_key', i.api_key_id, '-infinity', v_week))
              k (scope, scope_id, window_start, short_start)
         CROSS JOIN LATERAL (
                SELECT x.ctid AS place
                  FROM spending_counters x
                 WHERE x.organization_id = i.organization_id
                   AND x.scope = k.scope
                   AND x.scope_id = k.scope_id
                   AND x.window_start = k.window_start
                   AND (x.limit_pico IS NULL
                        OR x.settled_pico + x.reserved_pico + i.amount_pico <= x.limit_pico)
                   AND x.short_start = k.short_start
                   AND (x.short_limit_pico IS NULL
                        OR x.short_settled_pico + x.short_reserved_pico + i.amount_pico
                           <= x.short_limit_pico)
                 LIMIT 1) c;
    END IF;
    IF cardinality(v_places) = 6 THEN
        INSERT INTO ledger_entries (
            organization_id, admitted_day, reservation_id, phase, kind, admitted_at, deadline_at,
            project_id, api_key_id, model, price_revision, instance_id, bills_without_answer,
            held_pico)
        SELECT i.organization_id, (i.admitted_at AT TIME ZONE 'UTC')::date, i.reservation_id, 0,
               'reserve', i.admitted_at, i.deadline_at, i.project_id, i.api_key_id, i.model,
               i.price_revision, p_instance_id, i.bills_without_answer, i.amount_pico;
        UPDATE accounts a
           SET reserved_pico = a.reserved_pico + i.amount_pico
         WHERE a.organization_id = i.organization_id;
        UPDATE spending_counters c
           SET reserved_pico = c.reserved_pico + i.amount_pico,
               short_reserved_pico = c.short_reserved_pico + i.amount_pico
         WHERE c.ctid = ANY(v_places);
        verdict := 0;
        RETURN;
    END IF;
    SELECT d.verdict, d.available_pico, d.held_pico
      INTO verdict, available_pico, held_pico
      FROM ledger_admit_each(i.organization_id, ARRAY[i], p_instance_id, p_is_retry) d;
END
$$;

-- Only holds of the day of the first one are decided as a set, so that each row has one window.
CREATE OR REPLACE FUNCTION ledger_admit_batch(
    p_holds        ledger_hold[],
    p_instance_id  uuid,
    p_is_retry     boolean,
    p_skips_locked boolean
) RETURNS TABLE (verdict smallint, available_pico numeric, held_pico numeric)
LANGUAGE plpgsql
SET lock_timeout = '2s' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    v_locked   uuid[];
    v_fitting  uuid[];
    v_refusing uuid[];
    v_payers   uuid[];
    v_places   tid[];
    v_totals   numeric[];
    v_day      date := ((p_holds[1]).admitted_at AT TIME ZONE 'UTC')::date;
    v_week     date := date_trunc('week', v_day::timestamp)::date;
    v_month    date := date_trunc('month', v_day::timestamp)::date;
BEGIN
    IF cardinality(p_holds) = 0 THEN
        RETURN;
    END IF;
    IF NOT p_skips_locked THEN
        -- What waits for a lock is all of one organization.
        PERFORM FROM accounts a
          WHERE a.organization_id = (p_holds[1]).organization_id
            FOR UPDATE;
    END IF;
    SELECT array_agg(a.organization_id),
           coalesce(array_agg(a.organization_id) FILTER (
               WHERE a.available >= t.total AND NOT p_is_retry), '{}')
      INTO v_locked, v_fitting
      FROM (SELECT i.organization_id, sum(i.amount_pico) AS total
              FROM unnest(p_holds) i
             GROUP BY 1) t
     CROSS JOIN LATERAL (
            SELECT x.organization_id,
                   CASE WHEN coalesce(x.frozen_until > clock_timestamp(), false) THEN -1
                        ELSE x.credit_pico - x.settled_pico - x.reserved_pico
                    END AS available
              FROM accounts x
             WHERE x.organization_id = t.organization_id
             LIMIT 1
               FOR UPDATE SKIP LOCKED) a;

    SELECT array_agg(d.organization_id), array_agg(c.place), array_agg(d.total),
           array_agg(d.organization_id) FILTER (WHERE c.place IS NULL OR NOT d.is_in_time)
      INTO v_payers, v_places, v_totals, v_refusing
      FROM (SELECT i.organization_id, k.scope, k.scope_id, k.window_start,
                   sum(i.amount_pico) AS total,
                   bool_and(abs(extract(epoch FROM i.admitted_at - clock_timestamp())) <= 600
                            AND i.deadline_at > clock_timestamp()
                            AND (i.admitted_at AT TIME ZONE 'UTC')::date = v_day) AS is_in_time
              FROM unnest(p_holds) i
         CROSS JOIN LATERAL (VALUES
                ('organization', i.organization_id, v_month),
                ('organization', i.organization_id, '-infinity'),
                ('project', i.project_id, v_month),
                ('project', i.project_id, '-infinity'),
                ('api_key', i.api_key_id, v_month),
                ('api_key', i.api_key_id, '-infinity')
              ) k (scope, scope_id, window_start)
             WHERE i.organization_id = ANY(v_fitting)
             GROUP BY 1, 2, 3, 4) d
      LEFT JOIN LATERAL (
            SELECT x.ctid AS place
              FROM spending_counters x
             WHERE x.organization_id = d.organization_id
               AND x.scope = d.scope
               AND x.scope_id = d.scope_id
               AND x.window_start = d.window_start
               AND (x.limit_pico IS NULL
                    OR x.settled_pico + x.reserved_pico + d.total <= x.limit_pico)
               AND x.short_start = CASE d.window_start WHEN '-infinity' THEN v_week ELSE v_day END
               AND (x.short_limit_pico IS NULL
                    OR x.short_settled_pico + x.short_reserved_pico + d.total
                       <= x.short_limit_pico)
             LIMIT 1) c ON true;
    IF v_refusing IS NOT NULL THEN
        v_fitting := ARRAY(SELECT unnest(v_fitting) EXCEPT SELECT unnest(v_refusing));
    END IF;

    INSERT INTO ledger_entries (
        organization_id, admitted_day, reservation_id, phase, kind, admitted_at, deadline_at,
        project_id, api_key_id, model, price_revision, instance_id, bills_without_answer,
        held_pico)
    SELECT i.organization_id, (i.admitted_at AT TIME ZONE 'UTC')::date, i.reservation_id, 0,
           'reserve', i.admitted_at, i.deadline_at, i.project_id, i.api_key_id, i.model,
           i.price_revision, p_instance_id, i.bills_without_answer, i.amount_pico
      FROM unnest(p_holds) i
     WHERE i.organization_id = ANY(v_fitting);
    UPDATE accounts a
       SET reserved_pico = a.reserved_pico + d.total
      FROM (SELECT i.organization_id, sum(i.amount_pico) AS total
              FROM unnest(p_holds) i
             WHERE i.organization_id = ANY(v_fitting)
             GROUP BY 1) d
     CROSS JOIN LATERAL (
            SELECT x.ctid AS place
              FROM accounts x WHERE x.organization_id = d.organization_id LIMIT 1) old
     WHERE a.ctid = old.place;
    UPDATE spending_counters c
       SET reserved_pico = c.reserved_pico + d.total,
           short_reserved_pico = c.short_reserved_pico + d.total
      FROM unnest(v_payers, v_places, v_totals) AS d (organization_id, place, total)
     WHERE d.organization_id = ANY(v_fitting)
       AND c.ctid = d.place;

    IF (SELECT bool_and(i.organization_id = ANY(v_fitting)) FROM unnest(p_holds) i) THEN
        RETURN QUERY SELECT 0::smallint, 0::numeric, 0::numeric
                       FROM generate_series(1, cardinality(p_holds));
        RETURN;
    END IF;
    RETURN QUERY
    WITH decided AS (
        SELECT e.*
          FROM unnest(v_locked) AS o (organization_id)
         CROSS JOIN LATERAL ledger_admit_each(
                o.organization_id, p_holds, p_instance_id, p_is_retry) e
         WHERE o.organization_id <> ALL(v_fitting))
    SELECT coalesce(e.verdict,
                    CASE WHEN i.organization_id = ANY(v_fitting) THEN 0
                         WHEN EXISTS (SELECT FROM accounts a
                                       WHERE a.organization_id = i.organization_id) THEN 4
                         ELSE 3 END::smallint),
           coalesce(e.available_pico, 0), coalesce(e.held_pico, 0)
      FROM unnest(p_holds) WITH ORDINALITY AS i
      LEFT JOIN decided e ON e.item = i.ordinality
     ORDER BY i.ordinality;
END
$$;
