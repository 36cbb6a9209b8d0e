"""Caps by day and week, and the counters of an organization from before they were counted.

The counter of a month has the amounts of its newest day, and that of a lifetime those of its newest
week. Callers lock the account first.
"""

from datetime import date
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.ledger.errors import ShortCapsUnavailable
from tollhouse.ledger.types import Cap, CapId
from tollhouse.storage import revisions
from tollhouse.storage.database import Mutation

REVISION: Final = "0025"

# A hold whose deadline the reaper has checked is resolved or marked as unsettled, so only later
# ones are looked for. The newest day is not always today: the clocks of workers differ.
_FILL: Final = """
    WITH open_holds AS (
        SELECT admitted_day, reservation_id, project_id, api_key_id, held_pico
          FROM unsettled_holds
         WHERE organization_id = $1
         UNION
        SELECT hold.admitted_day, hold.reservation_id, hold.project_id, hold.api_key_id,
               hold.held_pico
          FROM ledger_entries hold
         WHERE hold.kind = 'reserve'
           AND hold.deadline_at >= (SELECT checked_until FROM reaper_progress)
           AND hold.organization_id = $1
           AND NOT EXISTS (
                SELECT FROM ledger_entries resolution
                 WHERE resolution.organization_id = $1
                   AND resolution.admitted_day = hold.admitted_day
                   AND resolution.reservation_id = hold.reservation_id
                   AND resolution.phase = 1)
    ), spent AS MATERIALIZED (
        SELECT day, project_id, api_key_id, 0 AS held,
               input_pico + cached_input_pico + output_pico + image_pico + request_pico AS posted
          FROM cost_daily
         WHERE organization_id = $1
           AND day >= $2::date - 14
         UNION ALL
        SELECT admitted_day, project_id, api_key_id, held_pico, 0
          FROM open_holds
    ), newest AS MATERIALIZED (
        SELECT day, date_trunc('week', day::timestamp)::date AS week
          FROM (SELECT greatest($2, max(spent.day)) AS day FROM spent) latest
    ), counters AS (
        SELECT c.scope, c.scope_id, c.window_start, w.start, w.days
          FROM spending_counters c
         CROSS JOIN newest
         CROSS JOIN LATERAL (
                SELECT CASE c.window_start WHEN '-infinity' THEN newest.week ELSE newest.day END
                           AS start,
                       CASE c.window_start WHEN '-infinity' THEN 7 ELSE 1 END AS days) w
         WHERE c.organization_id = $1
           AND c.short_start IS NULL
           AND c.window_start IN ('-infinity', date_trunc('month', newest.day::timestamp)::date)
    ), sums AS (
        SELECT k.scope, k.scope_id, k.window_start, k.start,
               coalesce(sum(s.posted) FILTER (WHERE s.day >= k.start), 0) AS settled,
               coalesce(sum(s.held) FILTER (WHERE s.day >= k.start), 0) AS reserved,
               coalesce(sum(s.posted) FILTER (WHERE s.day < k.start), 0) AS settled_before,
               coalesce(sum(s.held) FILTER (WHERE s.day < k.start), 0) AS reserved_before
          FROM counters k
          LEFT JOIN spent s
            ON s.day >= greatest(k.start - k.days, k.window_start)
           AND k.scope_id = CASE k.scope WHEN 'organization' THEN $1
                                         WHEN 'project' THEN s.project_id
                                         ELSE s.api_key_id END
         GROUP BY 1, 2, 3, 4
    )
    UPDATE spending_counters c
       SET short_start = s.start,
           short_settled_pico = s.settled,
           short_reserved_pico = s.reserved,
           previous_settled_pico = s.settled_before,
           previous_reserved_pico = s.reserved_before
      FROM sums s
     WHERE c.organization_id = $1
       AND c.scope = s.scope
       AND c.scope_id = s.scope_id
       AND c.window_start = s.window_start
"""


async def fill(tx: Mutation, *, today: date) -> None:
    """Count the current day and week of counters from before revision 0025; no-op for others.

    Raises `ShortCapsUnavailable` before the contract step of that revision.
    """
    schema = await revisions.state(tx)
    if not schema.has_contracted(REVISION):
        raise ShortCapsUnavailable
    is_needed = await tx.fetch_value(
        "SELECT EXISTS (SELECT FROM spending_counters"
        " WHERE organization_id = $1 AND short_start IS NULL)",
        tx.organization_id,
    )
    if is_needed:
        await tx.execute(_FILL, tx.organization_id, today)


async def cap_counters(tx: Mutation, cap: Cap, *, today: date) -> None:
    """Copy the cap into its counters; insert an alert if today's newly reaches its alert amount."""
    await tx.execute(
        """
        WITH changed AS (
            UPDATE spending_counters c
               SET short_limit_pico = $5,
                   short_ceiling_pico = greatest($5, c.short_settled_pico + c.short_reserved_pico),
                   short_alert_pico = $6,
                   short_is_alerted = coalesce(c.short_settled_pico >= $6, false)
              FROM spending_counters before
             WHERE c.organization_id = $1
               AND c.scope = $2
               AND c.scope_id = $3
               AND (c.window_start = '-infinity') = ($4 = 'week')
               AND before.organization_id = c.organization_id
               AND before.scope = c.scope
               AND before.scope_id = c.scope_id
               AND before.window_start = c.window_start
            RETURNING c.short_start, c.short_is_alerted AND NOT before.short_is_alerted AS rings
        )
        INSERT INTO spending_alerts (organization_id, scope, scope_id, window_start, period)
        SELECT $1, $2, $3, short_start, $4
          FROM changed
         WHERE rings
           AND short_start = $7
        """,
        cap.organization_id,
        cap.scope,
        cap.scope_id,
        cap.period,
        cap.limit_pico_usd,
        cap.alert_pico_usd,
        cap.period.window_start(today),
    )


async def uncap_counters(tx: Mutation, organization_id: OrganizationId, place: CapId) -> None:
    """Remove the cap from its counters, which go on counting."""
    await tx.execute(
        """
        UPDATE spending_counters
           SET short_limit_pico = NULL, short_ceiling_pico = NULL, short_alert_pico = NULL,
               short_is_alerted = false
         WHERE organization_id = $1
           AND scope = $2
           AND scope_id = $3
           AND (window_start = '-infinity') = ($4 = 'week')
        """,
        organization_id,
        place.scope,
        place.scope_id,
        place.period,
    )
