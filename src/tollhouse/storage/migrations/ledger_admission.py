"""The admission of revision 0014: holds as rows, decided together where all of them fit.

`ledger_admit_batch` adds up what the holds of each organization need. Where the sum fits into the
credit and into every counter, all of them are admitted with one statement per table. Where it does
not, `ledger_admit_each` decides the organization's holds one after the other and says what is
missing. `ledger_admit_one` does the same for a single hold without sets, which start slowly.
"""

from typing import Final

HOLD: Final = """
CREATE TYPE ledger_hold AS (
    organization_id      uuid,
    reservation_id       uuid,
    admitted_at          timestamptz,
    deadline_at          timestamptz,
    amount_pico          bigint,
    project_id           uuid,
    api_key_id           uuid,
    model                text,
    price_revision       bigint,
    bills_without_answer boolean)
"""

_INSERT: Final = """INSERT INTO ledger_entries (
        organization_id, admitted_day, reservation_id, phase, kind, admitted_at, deadline_at,
        project_id, api_key_id, model, price_revision, instance_id, bills_without_answer, held_pico)
    SELECT i.organization_id, (i.admitted_at AT TIME ZONE 'UTC')::date, i.reservation_id, 0,
           'reserve', i.admitted_at, i.deadline_at, i.project_id, i.api_key_id, i.model,
           i.price_revision, p_instance_id, i.bills_without_answer, i.amount_pico"""
WINDOWS: Final = """CROSS JOIN LATERAL (
                SELECT date_trunc('month', i.admitted_at AT TIME ZONE 'UTC')::date AS start) month
         CROSS JOIN LATERAL (VALUES
                (1, 'organization', i.organization_id, month.start),
                (2, 'organization', i.organization_id, '-infinity'::date),
                (3, 'project', i.project_id, month.start),
                (4, 'project', i.project_id, '-infinity'::date),
                (5, 'api_key', i.api_key_id, month.start),
                (6, 'api_key', i.api_key_id, '-infinity'::date)
              ) k (position, scope, scope_id, window_start)"""
"""In the order in which caps are compared; a refusal by the first of them is verdict 10."""
_IN_TIME: Final = """abs(extract(epoch FROM i.admitted_at - clock_timestamp())) <= 600
           AND i.deadline_at > clock_timestamp()"""

ADMIT_EACH: Final = f"""
CREATE FUNCTION ledger_admit_each(
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
            PERFORM ledger_open_counters(
                    p_organization_id, array_agg(k.scope), array_agg(k.scope_id),
                    array_agg(k.window_start))
               FROM (SELECT i.*) i
         {WINDOWS}
              WHERE NOT EXISTS (
                    SELECT FROM spending_counters c
                     WHERE c.organization_id = p_organization_id
                       AND c.scope = k.scope
                       AND c.scope_id = k.scope_id
                       AND c.window_start = k.window_start)
             HAVING count(*) > 0;
            SELECT k.position, c.scope, c.scope_id, c.window_start, c.reserved_pico AS reserved,
                   c.limit_pico - c.settled_pico - c.reserved_pico AS available
              INTO v_cap
              FROM (SELECT i.*) i
         {WINDOWS}
              JOIN spending_counters c
                ON c.organization_id = p_organization_id
               AND c.scope = k.scope
               AND c.scope_id = k.scope_id
               AND c.window_start = k.window_start
             WHERE c.settled_pico + c.reserved_pico + i.amount_pico > c.limit_pico
             ORDER BY k.position
             LIMIT 1;
            IF FOUND THEN
                verdict := 9 + v_cap.position;
                available_pico := v_cap.available;
                held_pico := v_cap.reserved - ledger_unsettled(
                    p_organization_id, v_cap.scope, v_cap.scope_id, v_cap.window_start);
            END IF;
        END IF;
        IF verdict = 0 THEN
            {_INSERT}
              FROM (SELECT i.*) i;
            UPDATE accounts a
               SET reserved_pico = a.reserved_pico + i.amount_pico
             WHERE a.organization_id = p_organization_id;
            UPDATE spending_counters c
               SET reserved_pico = c.reserved_pico + i.amount_pico
              FROM (SELECT k.*
                      FROM (SELECT i.*) i
         {WINDOWS}) k
             WHERE c.organization_id = p_organization_id
               AND c.scope = k.scope
               AND c.scope_id = k.scope_id
               AND c.window_start = k.window_start;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$
"""  # noqa: S608 - composed of constants

ADMIT_ONE: Final = f"""
CREATE FUNCTION ledger_admit_one(
    i             ledger_hold,
    p_instance_id uuid,
    p_is_retry    boolean,
    OUT verdict smallint, OUT available_pico numeric, OUT held_pico numeric
) LANGUAGE plpgsql AS $$
DECLARE
    v_fits   boolean;
    v_month  date;
    v_places tid[];
BEGIN
    SELECT a.credit_pico - a.settled_pico - a.reserved_pico >= i.amount_pico
      INTO v_fits
      FROM accounts a
     WHERE a.organization_id = i.organization_id
       FOR UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (
            SELECT FROM accounts a WHERE a.organization_id = i.organization_id) THEN
        verdict := 4;
        RETURN;
    END IF;
    IF v_fits AND NOT p_is_retry AND {_IN_TIME} THEN
        v_month := date_trunc('month', i.admitted_at AT TIME ZONE 'UTC')::date;
        SELECT array_agg(c.place)
          INTO v_places
          FROM (VALUES ('organization', i.organization_id, v_month),
                       ('organization', i.organization_id, '-infinity'),
                       ('project', i.project_id, v_month),
                       ('project', i.project_id, '-infinity'),
                       ('api_key', i.api_key_id, v_month),
                       ('api_key', i.api_key_id, '-infinity')) k (scope, scope_id, window_start)
         CROSS JOIN LATERAL (
                SELECT x.ctid AS place
                  FROM spending_counters x
                 WHERE x.organization_id = i.organization_id
                   AND x.scope = k.scope
                   AND x.scope_id = k.scope_id
                   AND x.window_start = k.window_start
                   AND (x.limit_pico IS NULL
                        OR x.settled_pico + x.reserved_pico + i.amount_pico <= x.limit_pico)
                 LIMIT 1) c;
    END IF;
    IF cardinality(v_places) = 6 THEN
        {_INSERT};
        UPDATE accounts a
           SET reserved_pico = a.reserved_pico + i.amount_pico
         WHERE a.organization_id = i.organization_id;
        UPDATE spending_counters c
           SET reserved_pico = c.reserved_pico + i.amount_pico
         WHERE c.ctid = ANY(v_places);
        verdict := 0;
        RETURN;
    END IF;
    SELECT d.verdict, d.available_pico, d.held_pico
      INTO verdict, available_pico, held_pico
      FROM ledger_admit_each(i.organization_id, ARRAY[i], p_instance_id, p_is_retry) d;
END
$$
"""  # noqa: S608 - composed of constants

_LOCK_ACCOUNTS: Final = """SELECT array_agg(a.organization_id),
               coalesce(array_agg(a.organization_id) FILTER (
                   WHERE a.available >= t.total AND NOT p_is_retry), '{}')
          INTO v_locked, v_fitting
          FROM (SELECT i.organization_id, sum(i.amount_pico) AS total
                  FROM unnest(p_holds) i
                 GROUP BY 1) t
         CROSS JOIN LATERAL (
                SELECT x.organization_id,
                       x.credit_pico - x.settled_pico - x.reserved_pico AS available
                  FROM accounts x
                 WHERE x.organization_id = t.organization_id
                 LIMIT 1
                   FOR UPDATE """

ADMIT_BATCH: Final = f"""
CREATE FUNCTION ledger_admit_batch(
    p_holds        ledger_hold[],
    p_instance_id  uuid,
    p_is_retry     boolean,
    p_skips_locked boolean
) RETURNS TABLE (verdict smallint, available_pico numeric, held_pico numeric)
LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
DECLARE
    v_locked   uuid[];
    v_fitting  uuid[];
    v_refusing uuid[];
    v_payers   uuid[];
    v_places   tid[];
    v_totals   numeric[];
BEGIN
    IF cardinality(p_holds) = 0 THEN
        RETURN;
    END IF;
    IF p_skips_locked THEN
        {_LOCK_ACCOUNTS} SKIP LOCKED) a;
    ELSE
        {_LOCK_ACCOUNTS}) a;
    END IF;

    SELECT array_agg(d.organization_id), array_agg(c.place), array_agg(d.total),
           array_agg(d.organization_id) FILTER (WHERE c.place IS NULL OR NOT d.is_in_time)
      INTO v_payers, v_places, v_totals, v_refusing
      FROM (SELECT i.organization_id, k.scope, k.scope_id, k.window_start,
                   sum(i.amount_pico) AS total, bool_and({_IN_TIME}) AS is_in_time
              FROM unnest(p_holds) i
         {WINDOWS}
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
             LIMIT 1) c ON true;
    IF v_refusing IS NOT NULL THEN
        v_fitting := ARRAY(SELECT unnest(v_fitting) EXCEPT SELECT unnest(v_refusing));
    END IF;

    {_INSERT}
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
       SET reserved_pico = c.reserved_pico + d.total
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
$$
"""  # noqa: S608 - composed of constants

FUNCTIONS: Final = (HOLD, ADMIT_EACH, ADMIT_ONE, ADMIT_BATCH)


def _changed(function: str, before: str, after: str) -> str:
    assert before in function, "the function of revision 0014"
    replaced = function.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)
    return replaced.replace(before, after)


_IS_FROZEN: Final = "coalesce({account}.frozen_until > clock_timestamp(), false)"
# A hold that was admitted before the freeze is found first, so that its retry is answered.
ADMIT_EACH_UNFROZEN: Final = _changed(
    ADMIT_EACH,
    "ELSIF abs(extract(epoch",
    f"ELSIF {_IS_FROZEN.format(account='v_account')} THEN\n"
    "            verdict := 6;\n"
    "        ELSIF abs(extract(epoch",
)
ADMIT_ONE_UNFROZEN: Final = _changed(
    ADMIT_ONE,
    "a.reserved_pico >= i.amount_pico\n      INTO",
    "a.reserved_pico >= i.amount_pico\n"
    f"           AND NOT {_IS_FROZEN.format(account='a')}\n      INTO",
)
ADMIT_BATCH_UNFROZEN: Final = _changed(
    ADMIT_BATCH,
    "x.credit_pico - x.settled_pico - x.reserved_pico AS available",
    f"CASE WHEN {_IS_FROZEN.format(account='x')} THEN -1\n"
    "                            ELSE x.credit_pico - x.settled_pico - x.reserved_pico\n"
    "                        END AS available",
)

UNFROZEN: Final = (ADMIT_EACH_UNFROZEN, ADMIT_ONE_UNFROZEN, ADMIT_BATCH_UNFROZEN)
"""The functions of revision 0019, which admit nothing to a frozen account."""
