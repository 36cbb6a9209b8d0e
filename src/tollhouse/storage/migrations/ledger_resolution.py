"""The settlement of revision 0014: resolutions as rows, of one organization or of many.

`ledger_settle_batch` finds the holds, and writes with one statement for all tables.
`ledger_settle_one` does the same for a single hold without sets, which start slowly; whatever is
not plain about it (a hold that was resolved before, an alert to raise) it leaves to the batch.
"""

from typing import Final

RESOLUTION: Final = """
CREATE TYPE ledger_resolution AS (
    organization_id     uuid,
    reservation_id      uuid,
    admitted_day        date,
    kind                text,
    excess_pico         bigint,
    input_tokens        bigint,
    cached_input_tokens bigint,
    output_tokens       bigint,
    images              bigint,
    input_pico          bigint,
    cached_input_pico   bigint,
    output_pico         bigint,
    image_pico          bigint,
    request_pico        bigint,
    delivered_tokens    bigint,
    is_estimated        boolean,
    operator_pays       text)
"""

_ENTRY: Final = """
            organization_id, admitted_day, reservation_id, phase, kind, is_backfill, admitted_at,
            deadline_at, project_id, api_key_id, model, price_revision, instance_id,
            bills_without_answer, held_pico, posted_pico, excess_pico, unknown_pico,
            input_tokens, cached_input_tokens, output_tokens, images,
            input_pico, cached_input_pico, output_pico, image_pico, request_pico,
            delivered_tokens, is_estimated, operator_pays"""
_QUANTITIES: Final = (
    *("requests", "estimated_requests"),
    *("input_tokens", "cached_input_tokens", "output_tokens", "images"),
    *("input_pico", "cached_input_pico", "output_pico", "image_pico", "request_pico"),
)
_USE: Final = ", ".join(_QUANTITIES)
_ADD_USE: Final = ", ".join(f"{name} = t.{name} + EXCLUDED.{name}" for name in _QUANTITIES)
_USED_BY_ALL: Final = "count(*), count(*) FILTER (WHERE r.is_estimated), " + ", ".join(
    f"sum(r.{name})" for name in _QUANTITIES[2:]
)
_USED_BY_ONE: Final = "1, i.is_estimated::int, " + ", ".join(
    f"i.{name}" for name in _QUANTITIES[2:]
)

# A hold never changes once it is committed, so it is read before its account is locked. EXECUTE
# plans for the values, so that only the partition of the day is opened.
_READ_HOLD: Final = """EXECUTE 'SELECT * FROM ledger_entries WHERE organization_id = $1'
            ' AND admitted_day = $2 AND reservation_id = $3 AND phase = 0'
       INTO v_hold
      USING i.organization_id, i.admitted_day, i.reservation_id;"""

SETTLE_ONE: Final = f"""
CREATE FUNCTION ledger_settle_one(i ledger_resolution, OUT outcome smallint)
LANGUAGE plpgsql AS $$
DECLARE
    v_hold   ledger_entries;
    v_posted bigint := i.input_pico + i.cached_input_pico + i.output_pico + i.image_pico
                       + i.request_pico;
    v_plain  boolean;
    v_month  date;
    v_places tid[];
BEGIN
    {_READ_HOLD}
    IF v_hold.organization_id IS NULL THEN
        outcome := 2;
        RETURN;
    END IF;
    SELECT a.is_alerted OR (a.settled_pico + v_posted) * 100 < a.credit_pico * 80
      INTO v_plain
      FROM accounts a
     WHERE a.organization_id = i.organization_id
       FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        outcome := 4;
        RETURN;
    END IF;
    IF v_plain THEN
        v_month := date_trunc('month', i.admitted_day)::date;
        SELECT array_agg(c.place)
          INTO v_places
          FROM (VALUES ('organization', i.organization_id, v_month),
                       ('organization', i.organization_id, '-infinity'),
                       ('project', v_hold.project_id, v_month),
                       ('project', v_hold.project_id, '-infinity'),
                       ('api_key', v_hold.api_key_id, v_month),
                       ('api_key', v_hold.api_key_id, '-infinity'))
                    k (scope, scope_id, window_start)
         CROSS JOIN LATERAL (
                SELECT x.ctid AS place
                  FROM spending_counters x
                 WHERE x.organization_id = i.organization_id
                   AND x.scope = k.scope
                   AND x.scope_id = k.scope_id
                   AND x.window_start = k.window_start
                   AND (x.alert_pico IS NULL OR x.is_alerted
                        OR x.settled_pico + v_posted < x.alert_pico)
                 LIMIT 1) c;
    END IF;
    IF cardinality(v_places) = 6 THEN
        INSERT INTO ledger_entries ({_ENTRY})
        VALUES (i.organization_id, i.admitted_day, i.reservation_id, 1, i.kind, v_hold.is_backfill,
                v_hold.admitted_at, v_hold.deadline_at, v_hold.project_id, v_hold.api_key_id,
                v_hold.model, v_hold.price_revision, v_hold.instance_id,
                v_hold.bills_without_answer, v_hold.held_pico, v_posted, i.excess_pico,
                CASE i.kind WHEN 'write_off' THEN v_hold.held_pico - v_posted ELSE 0 END,
                i.input_tokens, i.cached_input_tokens, i.output_tokens, i.images,
                i.input_pico, i.cached_input_pico, i.output_pico, i.image_pico, i.request_pico,
                i.delivered_tokens, i.is_estimated, i.operator_pays)
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
           written_off_unknown_pico = a.written_off_unknown_pico
               + CASE i.kind WHEN 'write_off' THEN v_hold.held_pico - v_posted ELSE 0 END
     WHERE a.organization_id = i.organization_id;
    UPDATE spending_counters c
       SET reserved_pico = c.reserved_pico - v_hold.held_pico,
           settled_pico = c.settled_pico + v_posted,
           ceiling_pico = CASE WHEN c.limit_pico IS NOT NULL THEN greatest(
               c.limit_pico, c.settled_pico + c.reserved_pico + v_posted - v_hold.held_pico) END
     WHERE c.ctid = ANY(v_places);
    IF i.kind = 'post' OR v_posted > 0 THEN
        INSERT INTO cost_daily AS t (organization_id, day, project_id, api_key_id, model, {_USE})
        VALUES (i.organization_id, i.admitted_day, v_hold.project_id, v_hold.api_key_id,
                v_hold.model, {_USED_BY_ONE})
        ON CONFLICT (organization_id, day, project_id, api_key_id, model) DO UPDATE SET {_ADD_USE};
        INSERT INTO cost_hourly AS t (organization_id, hour, project_id, api_key_id, model, {_USE})
        VALUES (i.organization_id, date_trunc('hour', v_hold.admitted_at, 'UTC'),
                v_hold.project_id, v_hold.api_key_id, v_hold.model, {_USED_BY_ONE})
        ON CONFLICT (organization_id, hour, project_id, api_key_id, model) DO UPDATE SET {_ADD_USE};
    END IF;
    DELETE FROM unsettled_holds u
     WHERE u.organization_id = i.organization_id
       AND u.admitted_day = i.admitted_day
       AND u.reservation_id = i.reservation_id;
    outcome := 0;
END
$$
"""  # noqa: S608 - composed of constants

# As `ledger_find_entries`, for resolutions of many organizations.
FIND_HOLDS: Final = """
CREATE FUNCTION ledger_find_resolved(
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
$$
"""

_LOCK_ACCOUNTS: Final = """SELECT array_agg(a.organization_id)
          INTO v_locked
          FROM (SELECT DISTINCT i.organization_id FROM unnest(p_resolutions) i) t
         CROSS JOIN LATERAL (
                SELECT x.organization_id
                  FROM accounts x
                 WHERE x.organization_id = t.organization_id
                 LIMIT 1
                   FOR UPDATE """

SETTLE_BATCH: Final = f"""
CREATE FUNCTION ledger_settle_batch(p_resolutions ledger_resolution[], p_skips_locked boolean)
RETURNS TABLE (outcome smallint)
LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
DECLARE
    v_locked   uuid[];
    v_resolved uuid[];
BEGIN
    IF cardinality(p_resolutions) = 0 THEN
        RETURN;
    END IF;
    IF p_skips_locked THEN
        {_LOCK_ACCOUNTS} SKIP LOCKED) a;
    ELSE
        {_LOCK_ACCOUNTS}) a;
    END IF;

    WITH resolved AS (
        INSERT INTO ledger_entries ({_ENTRY})
        SELECT i.organization_id, i.admitted_day, i.reservation_id, 1, i.kind, h.is_backfill,
               h.admitted_at, h.deadline_at, h.project_id, h.api_key_id, h.model, h.price_revision,
               h.instance_id, h.bills_without_answer, h.held_pico, sums.posted, i.excess_pico,
               CASE i.kind WHEN 'write_off' THEN h.held_pico - sums.posted ELSE 0 END,
               i.input_tokens, i.cached_input_tokens, i.output_tokens, i.images,
               i.input_pico, i.cached_input_pico, i.output_pico, i.image_pico, i.request_pico,
               i.delivered_tokens, i.is_estimated, i.operator_pays
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
                   OR coalesce(d.posted > 0 AND c.settled_pico + d.posted >= c.alert_pico, false)
          FROM (SELECT r.organization_id, k.scope, k.scope_id, k.window_start,
                       sum(r.held_pico) AS held, sum(r.posted_pico) AS posted
                  FROM resolved r
                 CROSS JOIN LATERAL (
                        SELECT date_trunc('month', r.admitted_day)::date AS start) month
                 CROSS JOIN LATERAL (VALUES
                        ('organization', r.organization_id, month.start),
                        ('organization', r.organization_id, '-infinity'::date),
                        ('project', r.project_id, month.start),
                        ('project', r.project_id, '-infinity'::date),
                        ('api_key', r.api_key_id, month.start),
                        ('api_key', r.api_key_id, '-infinity'::date)
                      ) k (scope, scope_id, window_start)
                 GROUP BY 1, 2, 3, 4) d
         CROSS JOIN LATERAL (
                SELECT p.ctid AS place, p.is_alerted
                  FROM spending_counters p
                 WHERE p.organization_id = d.organization_id
                   AND p.scope = d.scope
                   AND p.scope_id = d.scope_id
                   AND p.window_start = d.window_start
                 LIMIT 1) before
         WHERE c.ctid = before.place
        RETURNING c.organization_id, c.scope, c.scope_id, c.window_start,
                  c.is_alerted AND NOT before.is_alerted AS rings
    ), alerts AS (
        INSERT INTO spending_alerts (organization_id, scope, scope_id, window_start)
        SELECT account.organization_id, 'credit', account.organization_id, '-infinity'
          FROM account WHERE rings
        UNION ALL
        SELECT counted.organization_id, counted.scope, counted.scope_id, counted.window_start
          FROM counted WHERE rings
    ), daily AS (
        INSERT INTO cost_daily AS t (organization_id, day, project_id, api_key_id, model, {_USE})
        SELECT r.organization_id, r.admitted_day, r.project_id, r.api_key_id, r.model,
               {_USED_BY_ALL}
          FROM resolved r
         WHERE r.kind = 'post' OR r.posted_pico > 0
         GROUP BY 1, 2, 3, 4, 5
        ON CONFLICT (organization_id, day, project_id, api_key_id, model) DO UPDATE SET {_ADD_USE}
    ), hourly AS (
        INSERT INTO cost_hourly AS t (organization_id, hour, project_id, api_key_id, model, {_USE})
        SELECT r.organization_id, date_trunc('hour', r.admitted_at, 'UTC'), r.project_id,
               r.api_key_id, r.model, {_USED_BY_ALL}
          FROM resolved r
         WHERE r.kind = 'post' OR r.posted_pico > 0
         GROUP BY 1, 2, 3, 4, 5
        ON CONFLICT (organization_id, hour, project_id, api_key_id, model) DO UPDATE SET {_ADD_USE}
    )
    SELECT coalesce(array_agg(r.reservation_id), '{{}}') INTO v_resolved FROM resolved r;

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
$$
"""  # noqa: S608 - composed of constants

FUNCTIONS: Final = (RESOLUTION, FIND_HOLDS, SETTLE_BATCH, SETTLE_ONE)

# The partition by its name is planned in a quarter of the time.
_READ_HOLD_OF_DAY: Final = """v_partition := to_char(i.admitted_day, '"ledger_entries_"YYYYMMDD');
    IF to_regclass(v_partition) IS NOT NULL THEN
        EXECUTE format(
            'SELECT * FROM %I WHERE organization_id = $1 AND admitted_day = $2'
            ' AND reservation_id = $3 AND phase = 0', v_partition)
           INTO v_hold
          USING i.organization_id, i.admitted_day, i.reservation_id;
    END IF;"""

SETTLE_ONE_BY_NAME: Final = (
    SETTLE_ONE.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    .replace(_READ_HOLD, _READ_HOLD_OF_DAY)
    .replace("v_places tid[];", "v_places tid[];\n    v_partition text;")
)


def answered(settle_batch: str) -> str:
    """Return `ledger_settle_answered`: `p_models` has a model, or NULL for that of the hold."""
    changes = {
        "ledger_settle_batch(p_resolutions ledger_resolution[], p_skips_locked boolean)": (
            "ledger_settle_answered(\n"
            "    p_resolutions ledger_resolution[], p_models text[], p_skips_locked boolean)"
        ),
        "h.api_key_id, h.model, h.price_revision": (
            "h.api_key_id,\n"
            "               coalesce(p_models[i.ordinality], h.model), h.price_revision"
        ),
    }
    for before, after in changes.items():
        assert settle_batch.count(before) == 1, "the function of revision 0014"
        settle_batch = settle_batch.replace(before, after)
    return settle_batch
