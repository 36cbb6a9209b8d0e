-- Entries of one phase for a list of reservations, day by day.
--
-- The plan of each day is made for its value, so that only the partition of the day is opened. A
-- list is joined by `CROSS JOIN LATERAL (... LIMIT 1)`: on a table without statistics, such as a
-- young partition, the planner would otherwise read the whole table to find sixty-four rows.

CREATE OR REPLACE FUNCTION ledger_find_entries(
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
$$;

-- As `ledger_find_entries`, for resolutions of many organizations.
CREATE OR REPLACE FUNCTION ledger_find_resolved(
    p_resolutions ledger_resolution[], p_organization_ids uuid[], p_phase integer
) RETURNS TABLE (
    item bigint, is_backfill boolean, admitted_at timestamptz, deadline_at timestamptz,
    project_id uuid, api_key_id uuid, model text, price_revision bigint, instance_id uuid,
    bills_without_answer boolean, held_pico bigint)
LANGUAGE plpgsql STABLE ROWS 10 SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    v_day date;
BEGIN
    FOR v_day IN SELECT DISTINCT i.admitted_day FROM unnest(p_resolutions) i LOOP
        RETURN QUERY
        SELECT i.ordinality, x.is_backfill, x.admitted_at, x.deadline_at, x.project_id,
               x.api_key_id, x.model, x.price_revision, x.instance_id, x.bills_without_answer,
               x.held_pico
          FROM unnest(p_resolutions) WITH ORDINALITY AS i
         CROSS JOIN LATERAL (
                SELECT *
                  FROM ledger_entries e
                 WHERE e.organization_id = i.organization_id
                   AND e.admitted_day = v_day
                   AND e.reservation_id = i.reservation_id
                   AND e.phase = p_phase
                 LIMIT 1) x
         WHERE i.admitted_day = v_day
           AND i.organization_id = ANY(p_organization_ids);
    END LOOP;
END
$$;
