"""Verify an organization's stored sums against its grants, entries and closings.

Each organization is read in a snapshot of its own, so a long verification neither blocks admissions
nor keeps old rows alive for longer than one organization takes. Entries of days that were verified
before need not be read again: `verified_days` says when their cost rows stand for them.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.base.retention import HOURS_KEPT
from tollhouse.ledger import verified_days, verified_holds
from tollhouse.ledger.verified_days import NOTHING_VERIFIED, NewMarks, VerifiedDays
from tollhouse.storage.database import Database, Row, Transaction

STATEMENT_SECONDS_MAX: Final = 86_400


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A stored number that differs from its recomputed value. None stands for a missing row."""

    organization_id: OrganizationId
    name: str
    subject: str
    expected: int | None
    found: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """What differs, or the marks of the days that need not be read again."""

    differences: list[Difference]
    marks: NewMarks | None


# The lock precedes the snapshot: otherwise a day could be detached after the snapshot is taken and
# before its entries are read, and they would be missing without their closings.
_KEEP_DAYS: Final = "LOCK TABLE ONLY ledger_entries IN ACCESS SHARE MODE"

# One pass over the entries computes hours; all other sums are computed from these and the closings.
# Of a closed day only the sum of its hours is known, and of a verified day ($3) its cost rows are.
# Hours of closed days that are older than $6 may be removed.
# A plan that is made for these days ($2) reads no other partition.
_SUMS: Final = """
    WITH hours AS MATERIALIZED (
        SELECT admitted_day AS day, date_trunc('hour', admitted_at, 'UTC') AS hour,
               project_id, api_key_id, model,
               count(*) FILTER (WHERE is_cost) AS requests,
               count(*) FILTER (WHERE is_cost AND is_estimated) AS estimated_requests,
               coalesce(sum(input_tokens) FILTER (WHERE is_cost), 0) AS input_tokens,
               coalesce(sum(cached_input_tokens) FILTER (WHERE is_cost), 0) AS cached_input_tokens,
               coalesce(sum(output_tokens) FILTER (WHERE is_cost), 0) AS output_tokens,
               coalesce(sum(images) FILTER (WHERE is_cost), 0) AS images,
               sum(input_pico) AS input_pico, sum(cached_input_pico) AS cached_input_pico,
               sum(output_pico) AS output_pico, sum(image_pico) AS image_pico,
               sum(request_pico) AS request_pico,
               coalesce(sum(cache_write_tokens) FILTER (WHERE is_cost), 0) AS cache_write_tokens,
               sum(cache_write_pico) AS cache_write_pico,
               sum(excess_pico) AS excess_pico, sum(unknown_pico) AS unknown_pico,
               sum(CASE phase WHEN 0 THEN held_pico ELSE -held_pico END) AS reserved_pico
          FROM (SELECT *, phase = 1 AND (kind = 'post' OR posted_pico > 0) AS is_cost
                  FROM ledger_entries
                 WHERE organization_id = $1
                   AND ($2::date[] IS NULL OR admitted_day = ANY($2))) entry
         WHERE NOT EXISTS (SELECT FROM closed_days WHERE closed_days.day = entry.admitted_day)
         GROUP BY 1, 2, 3, 4, 5
    ), days AS MATERIALIZED (
        SELECT day, project_id, api_key_id, model,
               sum(requests) AS requests, sum(estimated_requests) AS estimated_requests,
               sum(input_tokens) AS input_tokens,
               sum(cached_input_tokens) AS cached_input_tokens,
               sum(output_tokens) AS output_tokens, sum(images) AS images,
               sum(input_pico) AS input_pico, sum(cached_input_pico) AS cached_input_pico,
               sum(output_pico) AS output_pico, sum(image_pico) AS image_pico,
               sum(request_pico) AS request_pico,
               sum(cache_write_tokens) AS cache_write_tokens,
               sum(cache_write_pico) AS cache_write_pico,
               sum(excess_pico) AS excess_pico, sum(unknown_pico) AS unknown_pico,
               sum(reserved_pico) AS reserved_pico, false AS is_closed
          FROM hours
         GROUP BY 1, 2, 3, 4
         UNION ALL
        SELECT admitted_day, project_id, api_key_id, model,
               requests, estimated_requests,
               input_tokens, cached_input_tokens, output_tokens, images,
               input_pico, cached_input_pico, output_pico, image_pico, request_pico,
               cache_write_tokens, cache_write_pico,
               excess_pico, unknown_pico, 0, true
          FROM ledger_closings
         WHERE organization_id = $1
         UNION ALL
        SELECT day, project_id, api_key_id, model,
               requests, estimated_requests,
               input_tokens, cached_input_tokens, output_tokens, images,
               input_pico, cached_input_pico, output_pico, image_pico, request_pico,
               cache_write_tokens, cache_write_pico,
               0, 0, 0, false
          FROM cost_daily
         WHERE organization_id = $1
           AND day = ANY($3::date[])
    ), spent AS MATERIALIZED (
        SELECT day, project_id, api_key_id, reserved_pico, excess_pico, unknown_pico,
               input_pico + cached_input_pico + output_pico + image_pico + request_pico
                   AS settled_pico
          FROM days
    ), totals AS (
        SELECT coalesce(sum(settled_pico), 0) AS settled_pico,
               coalesce(sum(reserved_pico), 0) AS reserved_pico,
               coalesce(sum(excess_pico), 0) + $4::numeric AS excess_pico,
               coalesce(sum(unknown_pico), 0) + $5::numeric AS unknown_pico,
               (SELECT coalesce(sum(amount_pico), 0)
                  FROM credit_grants
                 WHERE organization_id = $1) AS credit_pico
          FROM spent
    ), short_windows AS MATERIALIZED (
        SELECT w.scope, w.scope_id, w.window_start, w.short_start,
               sum(s.settled_pico) AS settled_pico, sum(s.reserved_pico) AS reserved_pico
          FROM spent s
         CROSS JOIN LATERAL (
                SELECT date_trunc('month', s.day)::date AS month,
                       date_trunc('week', s.day::timestamp)::date AS week) d
         CROSS JOIN LATERAL (VALUES
                ('organization', $1, d.month, s.day),
                ('organization', $1, '-infinity'::date, d.week),
                ('project', s.project_id, d.month, s.day),
                ('project', s.project_id, '-infinity'::date, d.week),
                ('api_key', s.api_key_id, d.month, s.day),
                ('api_key', s.api_key_id, '-infinity'::date, d.week)
              ) w (scope, scope_id, window_start, short_start)
         GROUP BY 1, 2, 3, 4
    ), windows AS (
        SELECT scope, scope_id, window_start,
               sum(settled_pico) AS settled_pico, sum(reserved_pico) AS reserved_pico
          FROM short_windows
         GROUP BY 1, 2, 3
    ), caps AS (
        SELECT scope, scope_id, period, limit_pico,
               div(limit_pico * alert_percent + 99, 100) AS alert_pico
          FROM spending_caps
         WHERE organization_id = $1
    ), expected_hourly AS (
        SELECT hour AS bucket, project_id, api_key_id, model,
               requests, estimated_requests,
               input_tokens, cached_input_tokens, output_tokens, images,
               input_pico, cached_input_pico, output_pico, image_pico, request_pico,
               cache_write_tokens, cache_write_pico
          FROM hours
         WHERE requests > 0
         UNION ALL
        SELECT day::timestamp AT TIME ZONE 'UTC', project_id, api_key_id, model,
               requests, estimated_requests,
               input_tokens, cached_input_tokens, output_tokens, images,
               input_pico, cached_input_pico, output_pico, image_pico, request_pico,
               cache_write_tokens, cache_write_pico
          FROM days
         WHERE is_closed
           AND day >= (clock_timestamp() AT TIME ZONE 'UTC' - $6::interval)::date
           AND requests > 0
    ), found_hourly AS (
        SELECT CASE WHEN closed_days.day IS NULL THEN hour
                    ELSE date_trunc('day', hour, 'UTC') END AS bucket,
               project_id, api_key_id, model,
               sum(requests) AS requests, sum(estimated_requests) AS estimated_requests,
               sum(input_tokens) AS input_tokens,
               sum(cached_input_tokens) AS cached_input_tokens,
               sum(output_tokens) AS output_tokens, sum(images) AS images,
               sum(input_pico) AS input_pico, sum(cached_input_pico) AS cached_input_pico,
               sum(output_pico) AS output_pico, sum(image_pico) AS image_pico,
               sum(request_pico) AS request_pico,
               sum(cache_write_tokens) AS cache_write_tokens,
               sum(cache_write_pico) AS cache_write_pico
          FROM cost_hourly
          LEFT JOIN closed_days ON closed_days.day = (hour AT TIME ZONE 'UTC')::date
         WHERE organization_id = $1
           AND (hour AT TIME ZONE 'UTC')::date <> ALL($3)
           AND (closed_days.day IS NULL
                OR closed_days.day >= (clock_timestamp() AT TIME ZONE 'UTC' - $6::interval)::date)
         GROUP BY 1, 2, 3, 4
    )
    SELECT 'account.' || v.part AS name, 'account' AS subject, v.expected, v.found
      FROM totals t
      LEFT JOIN accounts a ON a.organization_id = $1
     CROSS JOIN LATERAL (VALUES
            ('credit_pico', t.credit_pico, a.credit_pico),
            ('settled_pico', t.settled_pico, a.settled_pico),
            ('reserved_pico', t.reserved_pico, a.reserved_pico),
            ('ceiling_pico', greatest(t.credit_pico, t.settled_pico + t.reserved_pico),
             a.ceiling_pico),
            ('written_off_excess_pico', t.excess_pico, a.written_off_excess_pico),
            ('written_off_unknown_pico', t.unknown_pico, a.written_off_unknown_pico)
          ) v (part, expected, found)
     WHERE v.expected IS DISTINCT FROM v.found
     UNION ALL
    SELECT 'counter.' || v.part, concat_ws(' ', k.scope, k.scope_id, k.window_start),
           v.expected, v.found
      FROM (SELECT scope, scope_id, window_start,
                   CASE window_start WHEN '-infinity' THEN 'lifetime' ELSE 'month' END AS period,
                   coalesce(w.settled_pico, 0) AS settled, coalesce(w.reserved_pico, 0) AS reserved,
                   c.settled_pico, c.reserved_pico, c.limit_pico, c.alert_pico, c.ceiling_pico
              FROM windows w
              FULL JOIN (SELECT * FROM spending_counters WHERE organization_id = $1) c
                   USING (scope, scope_id, window_start)) k
      LEFT JOIN caps USING (scope, scope_id, period)
     CROSS JOIN LATERAL (VALUES
            ('settled_pico', k.settled, k.settled_pico),
            ('reserved_pico', k.reserved, k.reserved_pico),
            ('limit_pico', caps.limit_pico, k.limit_pico),
            ('alert_pico', caps.alert_pico, k.alert_pico),
            ('ceiling_pico', CASE WHEN caps.limit_pico IS NOT NULL
                                  THEN greatest(caps.limit_pico, k.settled + k.reserved) END,
             k.ceiling_pico)
          ) v (part, expected, found)
     WHERE v.expected IS DISTINCT FROM v.found
     UNION ALL
    SELECT 'counter.' || v.part,
           concat_ws(' ', c.scope, c.scope_id, c.window_start, c.short_start), v.expected, v.found
      FROM spending_counters c
     CROSS JOIN LATERAL (
            SELECT CASE c.window_start WHEN '-infinity' THEN 'week' ELSE 'day' END AS period,
                   CASE c.window_start WHEN '-infinity' THEN 7 ELSE 1 END AS days) short
      LEFT JOIN caps USING (scope, scope_id, period)
      LEFT JOIN short_windows w
        ON (w.scope, w.scope_id, w.window_start) = (c.scope, c.scope_id, c.window_start)
       AND w.short_start = c.short_start
      LEFT JOIN short_windows b
        ON (b.scope, b.scope_id, b.window_start) = (c.scope, c.scope_id, c.window_start)
       AND b.short_start = c.short_start - short.days
     CROSS JOIN LATERAL (VALUES
            ('short_settled_pico', coalesce(w.settled_pico, 0), c.short_settled_pico),
            ('short_reserved_pico', coalesce(w.reserved_pico, 0), c.short_reserved_pico),
            ('previous_settled_pico', coalesce(b.settled_pico, 0), c.previous_settled_pico),
            ('previous_reserved_pico', coalesce(b.reserved_pico, 0), c.previous_reserved_pico),
            ('short_limit_pico', caps.limit_pico, c.short_limit_pico),
            ('short_alert_pico', caps.alert_pico, c.short_alert_pico),
            ('short_ceiling_pico',
             CASE WHEN caps.limit_pico IS NOT NULL THEN greatest(
                  caps.limit_pico, coalesce(w.settled_pico + w.reserved_pico, 0)) END,
             c.short_ceiling_pico)
          ) v (part, expected, found)
     WHERE c.organization_id = $1
       AND v.expected IS DISTINCT FROM v.found
     UNION ALL
    SELECT 'cost_daily.' || v.part, concat_ws(' ', day, project_id, api_key_id, model),
           v.expected, v.found
      FROM (SELECT * FROM days WHERE requests > 0) e
      FULL JOIN (SELECT * FROM cost_daily WHERE organization_id = $1) f
           USING (day, project_id, api_key_id, model)
     CROSS JOIN LATERAL (VALUES
            ('requests', e.requests, f.requests),
            ('estimated_requests', e.estimated_requests, f.estimated_requests),
            ('input_tokens', e.input_tokens, f.input_tokens),
            ('cached_input_tokens', e.cached_input_tokens, f.cached_input_tokens),
            ('output_tokens', e.output_tokens, f.output_tokens),
            ('images', e.images, f.images),
            ('input_pico', e.input_pico, f.input_pico),
            ('cached_input_pico', e.cached_input_pico, f.cached_input_pico),
            ('output_pico', e.output_pico, f.output_pico),
            ('image_pico', e.image_pico, f.image_pico),
            ('request_pico', e.request_pico, f.request_pico),
            ('cache_write_tokens', e.cache_write_tokens, f.cache_write_tokens),
            ('cache_write_pico', e.cache_write_pico, f.cache_write_pico)
          ) v (part, expected, found)
     WHERE v.expected IS DISTINCT FROM v.found
     UNION ALL
    SELECT 'cost_hourly.' || v.part, concat_ws(' ', bucket, project_id, api_key_id, model),
           v.expected, v.found
      FROM expected_hourly e
      FULL JOIN found_hourly f USING (bucket, project_id, api_key_id, model)
     CROSS JOIN LATERAL (VALUES
            ('requests', e.requests, f.requests),
            ('estimated_requests', e.estimated_requests, f.estimated_requests),
            ('input_tokens', e.input_tokens, f.input_tokens),
            ('cached_input_tokens', e.cached_input_tokens, f.cached_input_tokens),
            ('output_tokens', e.output_tokens, f.output_tokens),
            ('images', e.images, f.images),
            ('input_pico', e.input_pico, f.input_pico),
            ('cached_input_pico', e.cached_input_pico, f.cached_input_pico),
            ('output_pico', e.output_pico, f.output_pico),
            ('image_pico', e.image_pico, f.image_pico),
            ('request_pico', e.request_pico, f.request_pico),
            ('cache_write_tokens', e.cache_write_tokens, f.cache_write_tokens),
            ('cache_write_pico', e.cache_write_pico, f.cache_write_pico)
          ) v (part, expected, found)
     WHERE v.expected IS DISTINCT FROM v.found
"""


async def verify(database: Database, organization_id: OrganizationId) -> list[Difference]:
    """Return all differences between an organization's stored and recomputed numbers.

    Reads every entry. A missing phase or row appears as a difference of one of its amounts.
    """
    async with database.snapshot(statement_seconds=STATEMENT_SECONDS_MAX) as tx:
        await tx.execute(_KEEP_DAYS)
        return await _differences(tx, organization_id, NOTHING_VERIFIED)


async def verify_new(database: Database, organization_id: OrganizationId) -> Verification:
    """Return all differences, reading only entries of days that were not verified before.

    If anything differs, every entry is read: only that can tell which number is wrong.
    """
    async with database.snapshot(statement_seconds=STATEMENT_SECONDS_MAX) as tx:
        await tx.execute(_KEEP_DAYS)
        verified = await verified_days.still_verified(tx, organization_id)
        differences = await _differences(tx, organization_id, verified)
        if differences and verified.other_days is not None:
            verified = NOTHING_VERIFIED
            differences = await _differences(tx, organization_id, verified)
        if differences:
            return Verification(differences=differences, marks=None)
        last = await verified_days.last_ended(tx)
        marks = await verified_days.ended(tx, organization_id, verified, last)
    return Verification(differences=[], marks=marks)


async def _differences(
    tx: Transaction, organization_id: OrganizationId, verified: VerifiedDays
) -> list[Difference]:
    sums = await tx.fetch_all(
        _SUMS,
        organization_id,
        verified.other_days,
        verified.days,
        verified.excess_pico,
        verified.unknown_pico,
        HOURS_KEPT,
    )
    holds = await verified_holds.differing(tx, organization_id, verified.other_days)
    found = [_difference(organization_id, row) for row in (*sums, *holds)]
    return sorted(found, key=lambda difference: (difference.name, difference.subject))


def _difference(organization_id: OrganizationId, row: Row) -> Difference:
    return Difference(
        organization_id=organization_id,
        name=row["name"],
        subject=row["subject"],
        expected=_whole(row["expected"]),
        found=_whole(row["found"]),
    )


def _whole(value: Decimal | None) -> int | None:
    return None if value is None or value.is_nan() else int(value)
