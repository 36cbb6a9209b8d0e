"""Verify an organization's stored sums against its grants, entries and closings.

Each organization is read in a snapshot of its own, so a long verification neither blocks admissions
nor keeps old rows alive for longer than one organization takes. Entries of days that were verified
before need not be read again: `verified_days` says when their cost rows stand for them.
"""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.base.retention import HOURS_KEPT
from tollhouse.ledger import verified_days
from tollhouse.ledger.types import UNDELIVERED
from tollhouse.ledger.verified_days import NOTHING_VERIFIED, NewMarks, VerifiedDays
from tollhouse.storage.database import Database, Row, Transaction

STATEMENT_SECONDS_MAX: Final = 86_400
OVERDUE_AFTER: Final = timedelta(seconds=120)


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
               sum(excess_pico) AS excess_pico, sum(unknown_pico) AS unknown_pico,
               sum(reserved_pico) AS reserved_pico, false AS is_closed
          FROM hours
         GROUP BY 1, 2, 3, 4
         UNION ALL
        SELECT admitted_day, project_id, api_key_id, model,
               requests, estimated_requests,
               input_tokens, cached_input_tokens, output_tokens, images,
               input_pico, cached_input_pico, output_pico, image_pico, request_pico,
               excess_pico, unknown_pico, 0, true
          FROM ledger_closings
         WHERE organization_id = $1
         UNION ALL
        SELECT day, project_id, api_key_id, model,
               requests, estimated_requests,
               input_tokens, cached_input_tokens, output_tokens, images,
               input_pico, cached_input_pico, output_pico, image_pico, request_pico,
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
    ), windows AS (
        SELECT w.scope, w.scope_id, w.window_start,
               sum(s.settled_pico) AS settled_pico, sum(s.reserved_pico) AS reserved_pico
          FROM spent s
         CROSS JOIN LATERAL (VALUES
                ('organization', $1, date_trunc('month', s.day)::date),
                ('organization', $1, '-infinity'::date),
                ('project', s.project_id, date_trunc('month', s.day)::date),
                ('project', s.project_id, '-infinity'::date),
                ('api_key', s.api_key_id, date_trunc('month', s.day)::date),
                ('api_key', s.api_key_id, '-infinity'::date)
              ) w (scope, scope_id, window_start)
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
               input_pico, cached_input_pico, output_pico, image_pico, request_pico
          FROM hours
         WHERE requests > 0
         UNION ALL
        SELECT day::timestamp AT TIME ZONE 'UTC', project_id, api_key_id, model,
               requests, estimated_requests,
               input_tokens, cached_input_tokens, output_tokens, images,
               input_pico, cached_input_pico, output_pico, image_pico, request_pico
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
               sum(request_pico) AS request_pico
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
            ('request_pico', e.request_pico, f.request_pico)
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
            ('request_pico', e.request_pico, f.request_pico)
          ) v (part, expected, found)
     WHERE v.expected IS DISTINCT FROM v.found
"""

# Delivered tokens must be charged, unless the entry has a rule of `OperatorPays` that allows them.
# An entry contains all used output, even if the hold was too small to pay for it: the excess then
# needs a rule too.
_HOLDS: Final = """
    WITH holds AS MATERIALIZED (
        SELECT hold.reservation_id AS held_id, resolution.reservation_id AS resolved_id,
               coalesce(hold.reservation_id, resolution.reservation_id) AS reservation_id,
               hold.held_pico, hold.deadline_at, resolution.kind, resolution.posted_pico,
               resolution.excess_pico, resolution.unknown_pico,
               resolution.held_pico AS resolved_pico, resolution.delivered_tokens,
               resolution.output_tokens, resolution.operator_pays
          FROM (SELECT *
                  FROM ledger_entries
                 WHERE organization_id = $1
                   AND phase = 0
                   AND ($4::date[] IS NULL OR admitted_day = ANY($4))) hold
          FULL JOIN (SELECT *
                       FROM ledger_entries
                      WHERE organization_id = $1
                        AND phase = 1
                        AND ($4::date[] IS NULL OR admitted_day = ANY($4))) resolution
               USING (admitted_day, reservation_id)
    ), marked AS (
        SELECT reservation_id, held_pico
          FROM unsettled_holds
         WHERE organization_id = $1
    )
    SELECT 'resolution.held_pico' AS name, reservation_id::text AS subject,
           held_pico::numeric AS expected, resolved_pico::numeric AS found
      FROM holds
     WHERE resolved_id IS NOT NULL
       AND held_pico IS DISTINCT FROM resolved_pico
     UNION ALL
    SELECT 'resolution.posted_pico', reservation_id::text, least(posted_pico, held_pico),
           posted_pico
      FROM holds
     WHERE posted_pico > held_pico
     UNION ALL
    SELECT 'resolution.excess_pico', reservation_id::text, 0, excess_pico
      FROM holds
     WHERE excess_pico > 0
       AND posted_pico < held_pico
       AND operator_pays IS DISTINCT FROM 'above_hold'
     UNION ALL
    SELECT 'resolution.unknown_pico', reservation_id::text,
           CASE kind WHEN 'write_off' THEN held_pico - posted_pico ELSE 0 END, unknown_pico
      FROM holds
     WHERE unknown_pico <> CASE kind WHEN 'write_off' THEN held_pico - posted_pico ELSE 0 END
     UNION ALL
    SELECT 'resolution.delivered_tokens', reservation_id::text, output_tokens, delivered_tokens
      FROM holds
     WHERE delivered_tokens > output_tokens
       AND (operator_pays IS NULL OR operator_pays = ANY($3))
     UNION ALL
    SELECT 'resolution.unpaid_pico', reservation_id::text, 0, excess_pico
      FROM holds
     WHERE delivered_tokens IS NOT NULL
       AND excess_pico > 0
       AND operator_pays IS NULL
     UNION ALL
    SELECT 'hold.overdue_pico', holds.reservation_id::text, 0, holds.held_pico
      FROM holds
      LEFT JOIN marked ON marked.reservation_id = holds.held_id
     WHERE holds.resolved_id IS NULL
       AND marked.reservation_id IS NULL
       AND holds.deadline_at + $2::interval < clock_timestamp()
     UNION ALL
    SELECT 'unsettled.held_pico', marked.reservation_id::text,
           CASE WHEN holds.resolved_id IS NULL THEN holds.held_pico END, marked.held_pico
      FROM marked
      LEFT JOIN holds ON holds.reservation_id = marked.reservation_id
     WHERE CASE WHEN holds.resolved_id IS NULL THEN holds.held_pico END
           IS DISTINCT FROM marked.held_pico
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
    holds = await tx.fetch_all(
        _HOLDS, organization_id, OVERDUE_AFTER, list(UNDELIVERED), verified.other_days
    )
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
