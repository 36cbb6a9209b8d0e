"""Verify each hold of an organization against its resolution and its mark."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.ledger.types import UNDELIVERED
from tollhouse.storage.database import Row, Transaction

OVERDUE_AFTER: Final = timedelta(seconds=120)

# Delivered tokens must be charged, unless the entry has a rule of `OperatorPays` that allows them.
# An entry contains all used output, even if the hold was too small to pay for it: the excess then
# needs a rule too.
# Each line item is its units at the price of the entry's own model in its own list; of output it is
# not stored which was reasoning. What a hold was too small for was cut.
_HOLDS: Final = """
    WITH holds AS MATERIALIZED (
        SELECT hold.reservation_id AS held_id, resolution.reservation_id AS resolved_id,
               coalesce(hold.reservation_id, resolution.reservation_id) AS reservation_id,
               hold.held_pico, hold.deadline_at, hold.price_revision AS held_revision,
               resolution.kind, resolution.posted_pico,
               resolution.excess_pico, resolution.unknown_pico,
               resolution.held_pico AS resolved_pico, resolution.delivered_tokens,
               resolution.output_tokens, resolution.operator_pays, resolution.model,
               resolution.price_revision, resolution.input_tokens,
               resolution.cached_input_tokens, resolution.cache_write_tokens, resolution.images,
               resolution.input_pico, resolution.cached_input_pico, resolution.output_pico,
               resolution.image_pico, resolution.request_pico
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
    ), priced AS (
        SELECT holds.*, price.*,
               coalesce(price.input_cache_write, price.prompt) AS written,
               CASE WHEN price.input_cache_write IS NULL THEN 0 ELSE cache_write_tokens END
                   AS written_tokens
          FROM holds
          JOIN price_revisions revision ON revision.id = holds.price_revision
          LEFT JOIN LATERAL (
                SELECT prompt * 1e12 AS prompt, completion * 1e12 AS completion,
                       image * 1e12 AS image, request * 1e12 AS request,
                       input_cache_read * 1e12 AS input_cache_read,
                       input_cache_write * 1e12 AS input_cache_write,
                       reasoning * 1e12 AS reasoning
                  FROM jsonb_to_record(revision.prices -> holds.model) AS list (
                       prompt numeric, completion numeric, image numeric, request numeric,
                       input_cache_read numeric, input_cache_write numeric, reasoning numeric)
               ) price ON true
         WHERE holds.kind = 'post' OR holds.posted_pico > 0
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
    SELECT 'resolution.price_revision', reservation_id::text, held_revision, price_revision
      FROM holds
     WHERE resolved_id IS NOT NULL
       AND held_revision IS DISTINCT FROM price_revision
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
     UNION ALL
    SELECT 'resolution.' || item.part, reservation_id::text,
           CASE WHEN item.found < item.least THEN item.least ELSE item.most END, item.found
      FROM priced
     CROSS JOIN LATERAL (VALUES
            ('input_pico', input_pico,
             (input_tokens - written_tokens) * prompt + written_tokens * written,
             (input_tokens - written_tokens) * prompt + written_tokens * written),
            ('cached_input_pico', cached_input_pico, cached_input_tokens * input_cache_read,
             cached_input_tokens * input_cache_read),
            ('output_pico', output_pico, output_tokens * least(completion, reasoning),
             output_tokens * greatest(completion, reasoning)),
            ('image_pico', image_pico, images * image, images * image),
            ('request_pico', request_pico, request, request)
          ) item (part, found, least, most)
     WHERE (item.found BETWEEN CASE WHEN excess_pico > 0 THEN 0 ELSE item.least END AND item.most)
           IS NOT TRUE
"""


async def differing(
    tx: Transaction, organization_id: OrganizationId, days: Sequence[date] | None
) -> list[Row]:
    """Return what differs in the holds of these days, or of all: name, subject and two values."""
    return await tx.fetch_all(_HOLDS, organization_id, OVERDUE_AFTER, list(UNDELIVERED), days)
