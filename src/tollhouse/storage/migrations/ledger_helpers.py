"""What stands around the functions that move money: days, counters, and mixed batches."""

from typing import Final

MAKE_PARTITION: Final = """
CREATE FUNCTION ledger_make_partition(p_day date) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_name text := 'ledger_entries_' || to_char(p_day, 'YYYYMMDD');
BEGIN
    IF EXISTS (SELECT FROM pg_inherits
                WHERE inhparent = 'ledger_entries'::regclass
                  AND inhrelid = to_regclass(quote_ident(v_name))) THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('ledger_make_partition'));
    IF to_regclass(quote_ident(v_name)) IS NULL THEN
        EXECUTE format(
            'CREATE TABLE %I (LIKE ledger_entries INCLUDING ALL,
                CONSTRAINT day_of_partition CHECK (admitted_day >= %L AND admitted_day < %L))',
            v_name, p_day, p_day + 1);
    END IF;
    IF NOT EXISTS (SELECT FROM pg_inherits
                    WHERE inhparent = 'ledger_entries'::regclass
                      AND inhrelid = to_regclass(quote_ident(v_name))) THEN
        EXECUTE format(
            'ALTER TABLE ledger_entries ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
            v_name, p_day, p_day + 1);
    END IF;
    RETURN true;
END
$$
"""

UNSETTLED: Final = """
CREATE FUNCTION ledger_unsettled(
    p_organization_id uuid, p_scope text, p_scope_id uuid, p_window date
) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT coalesce(sum(u.held_pico), 0)
      FROM unsettled_holds u
     WHERE u.organization_id = p_organization_id
       AND p_scope_id = CASE p_scope WHEN 'organization' THEN u.organization_id
                                     WHEN 'project' THEN u.project_id
                                     ELSE u.api_key_id END
       AND (p_window = '-infinity' OR date_trunc('month', u.admitted_day)::date = p_window)
$$
"""
"""What is held and will not be free soon: a refusal must not promise that waiting helps."""

OPEN_COUNTERS: Final = """
CREATE FUNCTION ledger_open_counters(
    p_organization_id uuid, p_scopes text[], p_scope_ids uuid[], p_windows date[]
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO spending_counters (organization_id, scope, scope_id, window_start,
                                   limit_pico, ceiling_pico, alert_pico)
    SELECT p_organization_id, k.scope, k.scope_id, k.window_start,
           cap.limit_pico, cap.limit_pico, div(cap.limit_pico * cap.alert_percent + 99, 100)
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
    ON CONFLICT DO NOTHING
$$
"""

IS_LOCKED_ELSEWHERE: Final = """
CREATE FUNCTION ledger_is_locked_elsewhere(p_organization_id uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM accounts a WHERE a.organization_id = p_organization_id FOR UPDATE SKIP LOCKED;
    RETURN NOT FOUND
       AND EXISTS (SELECT FROM accounts a WHERE a.organization_id = p_organization_id);
END
$$
"""

ADMIT_MIXED: Final = """
CREATE FUNCTION ledger_admit_mixed(
    p_organization_ids  uuid[],
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
    p_counter_windows   date[]
) RETURNS TABLE (verdict smallint, available_pico numeric, held_pico numeric)
LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. cardinality(p_reservation_ids) LOOP
        IF ledger_is_locked_elsewhere(p_organization_ids[i]) THEN
            RETURN QUERY SELECT 4::smallint, 0::numeric, 0::numeric;
            CONTINUE;
        END IF;
        RETURN QUERY SELECT * FROM ledger_admit(
            p_organization_ids[i], p_instance_id, p_is_retry, p_reservation_ids[i:i],
            p_admitted_ats[i:i], p_deadline_ats[i:i], p_amounts[i:i], p_project_ids[i:i],
            p_api_key_ids[i:i], p_models[i:i], p_price_revisions[i:i], p_bill_without[i:i],
            p_counter_scopes[6 * i - 5 : 6 * i], p_counter_scope_ids[6 * i - 5 : 6 * i],
            p_counter_windows[6 * i - 5 : 6 * i], ARRAY[1, 2, 3, 4, 5, 6]);
    END LOOP;
END
$$
"""

SETTLE_MIXED: Final = """
CREATE FUNCTION ledger_settle_mixed(
    p_organization_ids    uuid[],
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
            p_output_picos[i:i], p_image_picos[i:i], p_request_picos[i:i]);
    END LOOP;
END
$$
"""
