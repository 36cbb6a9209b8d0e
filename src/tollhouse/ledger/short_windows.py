"""Caps by day and week in the counters of months and lifetimes.

The counter of a month has the amounts of its newest day, and that of a lifetime those of its newest
week. Callers lock the account first.
"""

from datetime import date

from tollhouse.base.ids import OrganizationId
from tollhouse.ledger.types import Cap, CapId
from tollhouse.storage.database import Mutation


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
