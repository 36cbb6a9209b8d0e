"""SQL of attribution. Costs are those of the ledger's entries, whatever is stored about them."""

from datetime import date, datetime
from typing import Final

import msgspec

from tollhouse.attribution.types import (
    DELETED,
    OTHER,
    UNRECORDED,
    AttributedCost,
    AttributionSetting,
)
from tollhouse.base.ids import OrganizationId
from tollhouse.base.money import PicoUsd
from tollhouse.storage.database import Mutation, Transaction

_COSTS: Final = """
    WITH by_value AS (
        SELECT CASE WHEN a.request_id IS NULL THEN $7 ELSE coalesce(v.value, $8) END AS value,
               count(*) AS requests, sum(e.input_tokens) AS input_tokens,
               sum(e.cached_input_tokens) AS cached_input_tokens,
               sum(e.output_tokens) AS output_tokens, sum(e.posted_pico) AS cost_pico
          FROM ledger_entries e
          LEFT JOIN request_attributions a
            ON a.organization_id = $1 AND a.dimension = $2
           AND a.request_id = e.reservation_id
          LEFT JOIN attribution_values v
            ON v.organization_id = $1 AND v.id = a.value_id
         WHERE e.organization_id = $1
           AND e.admitted_day BETWEEN ($3 AT TIME ZONE 'UTC')::date
                                  AND ($4 AT TIME ZONE 'UTC')::date
           AND e.admitted_at >= $3
           AND e.admitted_at < $4
           AND e.phase = 1
           AND (e.kind = 'post' OR e.posted_pico > 0)
         GROUP BY 1
    ), ranked AS (
        SELECT *, row_number() OVER (ORDER BY cost_pico DESC, value) AS rank FROM by_value
    )
    SELECT CASE WHEN rank <= $5 OR value IN ($7, $8) THEN value ELSE $6 END AS value,
           sum(requests)::bigint AS requests, sum(input_tokens) AS input_tokens,
           sum(cached_input_tokens) AS cached_input_tokens,
           sum(output_tokens) AS output_tokens, sum(cost_pico) AS cost_pico
      FROM ranked
     GROUP BY 1
     ORDER BY 6 DESC, 1
"""


async def setting(tx: Transaction, organization_id: OrganizationId) -> AttributionSetting:
    """Return the setting of an organization."""
    stored = await tx.fetch_value(
        "SELECT attribution::text FROM organizations WHERE id = $1", organization_id
    )
    return AttributionSetting() if stored is None else _decoded(stored)


async def setting_for_update(tx: Mutation, organization_id: OrganizationId) -> AttributionSetting:
    """Return the setting of an organization, and lock it."""
    stored = await tx.fetch_value(
        "SELECT attribution::text FROM organizations WHERE id = $1 FOR NO KEY UPDATE",
        organization_id,
    )
    return AttributionSetting() if stored is None else _decoded(stored)


async def save(tx: Mutation, organization_id: OrganizationId, changed: AttributionSetting) -> None:
    """Store a setting."""
    await tx.execute(
        "UPDATE organizations SET attribution = $2::jsonb WHERE id = $1",
        organization_id,
        msgspec.json.encode(changed).decode(),
    )


async def erase(tx: Mutation, organization_id: OrganizationId, dimension: str, value: str) -> int:
    """Replace a value by NULL on all days; return their number."""
    return await tx.execute(
        """
        UPDATE attribution_values
           SET value = NULL
         WHERE organization_id = $1
           AND dimension = $2
           AND value = $3
        """,
        organization_id,
        dimension,
        value,
    )


async def is_closed(  # all organizations: shared days
    tx: Transaction, first_day: date, last_day: date
) -> bool:
    """Return whether entries of the range may be dropped."""
    return await tx.fetch_value(
        "SELECT EXISTS (SELECT FROM closed_days WHERE day BETWEEN $1 AND $2)", first_day, last_day
    )


async def costs(
    tx: Transaction,
    organization_id: OrganizationId,
    dimension: str,
    *,
    start: datetime,
    end: datetime,
    values_max: int,
) -> list[AttributedCost]:
    """Return the costs of requests admitted in a range by value, the dearest first.

    Every entry counts once, because a request has at most one value of a dimension. Values beyond
    `values_max` are summed as `OTHER`.
    """
    rows = await tx.fetch_all(
        _COSTS,
        organization_id,
        dimension,
        start,
        end,
        values_max,
        OTHER,
        UNRECORDED,
        DELETED,
    )
    return [
        AttributedCost(
            value=row["value"],
            requests=row["requests"],
            input_tokens=int(row["input_tokens"]),
            cached_input_tokens=int(row["cached_input_tokens"]),
            output_tokens=int(row["output_tokens"]),
            cost_pico_usd=PicoUsd(int(row["cost_pico"])),
        )
        for row in rows
    ]


async def remove_old(tx: Transaction, limit: int) -> int:  # all organizations: retention
    """Delete values and attributions after the retention of their organizations."""
    return await tx.fetch_value(
        """
        WITH kept AS (
            SELECT id AS organization_id, (clock_timestamp() AT TIME ZONE 'UTC')::date
                   - (attribution ->> 'retention_days')::int AS first_day
              FROM organizations
             WHERE attribution IS NOT NULL
        ), attributions AS (
            DELETE FROM request_attributions
             WHERE (organization_id, dimension, request_id) IN (
                    SELECT a.organization_id, a.dimension, a.request_id
                      FROM kept k
                      JOIN request_attributions a
                        ON a.organization_id = k.organization_id AND a.day < k.first_day
                     LIMIT $1)
            RETURNING 1
        ), named AS (
            DELETE FROM attribution_values
             WHERE (organization_id, id) IN (
                    SELECT v.organization_id, v.id
                      FROM kept k
                      JOIN attribution_values v
                        ON v.organization_id = k.organization_id AND v.day < k.first_day
                     LIMIT $1)
            RETURNING 1
        )
        SELECT greatest((SELECT count(*) FROM attributions), (SELECT count(*) FROM named))
        """,
        limit,
    )


def _decoded(stored: str) -> AttributionSetting:
    return msgspec.json.decode(stored, type=AttributionSetting)
