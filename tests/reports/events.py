"""A past to report on: settled, void, absorbed and open requests over many days, made by SQL.

Holds are inserted as admission leaves them, and resolved by the very function that resolves
them in production, so that the rollups are its work and not the test's.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import asyncpg

EVENTS = int(os.environ.get("TOLLHOUSE_EVENTS", "3000"))
DAYS = 400
LAST_DAY = date(2026, 3, 2)
FIRST_DAY = LAST_DAY - timedelta(days=DAYS - 1)
MODELS = ("example/large", "example/small", "example/free", "a, b")
PARTITIONS_AT_ONCE = 50
RESOLVED_AT_ONCE = 5_000

_OPEN_ACCOUNT = """
UPDATE accounts
   SET credit_pico = 10::numeric ^ 30, ceiling_pico = 10::numeric ^ 30,
       reserved_pico = reserved_pico + $2
 WHERE organization_id = $1
"""
_HOLD = """
INSERT INTO ledger_entries (organization_id, admitted_day, reservation_id, phase, kind, admitted_at,
                            deadline_at, project_id, api_key_id, model, price_revision, instance_id,
                            bills_without_answer, held_pico)
SELECT $1, (at AT TIME ZONE 'UTC')::date, id, 0, 'reserve', at, at + interval '10 minutes',
       ($5::uuid[])[key], ($6::uuid[])[key], ($7::text[])[model], 1, id, false, 10 ^ 12
  FROM (SELECT gen_random_uuid() AS id,
               -- One in ten lies on a whole hour, where spans are cut.
               CASE WHEN random() < 0.1 THEN date_trunc('hour', raw, 'UTC') ELSE raw END AS at,
               1 + floor(random() * cardinality($5::uuid[]))::int AS key,
               1 + floor(random() * cardinality($7::text[]))::int AS model
          FROM (SELECT $2::timestamptz + random() * ($3::timestamptz - $2) AS raw
                  FROM generate_series(1, $4)) r OFFSET 0) e
"""
# Of a hundred: 85 posts (some without any cost), 5 voids, 5 absorbed (half of them with a part
# posted), 5 left open.
_CHOSEN = """
CREATE TEMPORARY TABLE chosen AS
SELECT h.organization_id, h.reservation_id, h.admitted_day,
       row_number() OVER (ORDER BY h.admitted_day, h.reservation_id) / $2 AS batch,
       l.kind, l.is_charged AND h.model <> 'example/free' AS is_charged, l.is_charged AS is_used,
       l.input, l.written, l.cached, l.output, l.images
  FROM ledger_entries h
 CROSS JOIN LATERAL (SELECT CASE WHEN roll < 85 THEN 'post' WHEN roll < 90 THEN 'void'
                                 WHEN roll < 95 THEN 'write_off' ELSE 'open' END AS kind,
                            roll < 82 OR roll IN (90, 91) AS is_charged,
                            (mixed / 100) % 1000 AS input, (mixed / 100000) % 3 * 77 AS cached,
                            CASE WHEN mixed % 5 = 0 THEN (mixed / 100) % 1000 / 4 ELSE 0 END
                                AS written,
                            (mixed / 1000000) % 900 AS output,
                            CASE WHEN mixed % 7 = 0 THEN 2 ELSE 0 END AS images
                       FROM (SELECT mixed % 100 AS roll, mixed
                               FROM (SELECT abs(hashtextextended(h.reservation_id::text, 7)
                                                % 1000000000000) AS mixed) m) r) l
 WHERE h.organization_id = $1
   AND h.phase = 0
   AND l.kind <> 'open'
   AND NOT EXISTS (SELECT FROM ledger_entries p
                    WHERE p.organization_id = $1 AND p.admitted_day = h.admitted_day
                      AND p.reservation_id = h.reservation_id AND p.phase = 1)
"""
_RESOLVE = """
SELECT count(*)
  FROM (SELECT array_agg(ROW(
                   organization_id, reservation_id, admitted_day, kind, 0, input, cached, output,
                   images, price * ((input - written) * 37501 + written * 46877),
                   price * cached * 3751, price * output * 150007, price * images * 1000003,
                   CASE WHEN images > 0 THEN price * 13 ELSE 0 END, output,
                   is_used AND input % 3 = 0, NULL, NULL, written, price * written * 46877
               )::ledger_resolution) AS resolutions
          FROM (SELECT organization_id, reservation_id, admitted_day, kind, is_used,
                       is_charged::int AS price, is_used::int * input AS input,
                       is_used::int * written AS written, is_used::int * cached AS cached,
                       is_used::int * output AS output, is_used::int * images AS images
                  FROM chosen
                 WHERE batch = $1) used) c
 CROSS JOIN LATERAL ledger_settle_batch(resolutions, false)
"""


@dataclass(frozen=True)
class Keys:
    """Project keys with their projects, side by side."""

    project_ids: Sequence[UUID]
    api_key_ids: Sequence[UUID]


async def make_partitions(connection: asyncpg.Connection, first: date, last: date) -> None:
    """In steps: each partition takes locks until its transaction ends."""
    day = first
    while day <= last:
        until = min(day + timedelta(days=PARTITIONS_AT_ONCE - 1), last)
        await connection.execute(
            """
            SELECT make_day_partition('ledger_entries', d::date)
              FROM generate_series($1::date, $2::date, '1 day') d
            """,
            day,
            until,
        )
        day = until + timedelta(days=1)


async def hold(
    connection: asyncpg.Connection,
    organization_id: UUID,
    keys: Keys,
    count: int,
    *,
    since: datetime,
    until: datetime,
) -> None:
    """So many holds at random instants, each of a dollar."""
    await connection.execute(_OPEN_ACCOUNT, organization_id, count * 10**12)
    await connection.execute(
        *(_HOLD, organization_id, since, until, count),
        *(list(keys.project_ids), list(keys.api_key_ids), list(MODELS)),
    )


async def resolve(connection: asyncpg.Connection, organization_id: UUID) -> int:
    """Settle nineteen of twenty holds that are still open; returns how many."""
    await connection.execute(_CHOSEN, organization_id, RESOLVED_AT_ONCE)
    await connection.execute("CREATE INDEX ON chosen (batch)")
    try:
        batches = await connection.fetchval("SELECT coalesce(max(batch), -1) + 1 FROM chosen")
        counts = [await connection.fetchval(_RESOLVE, batch) for batch in range(batches)]
    finally:
        await connection.execute("DROP TABLE chosen")
    return sum(counts)


async def mark_unsettled(connection: asyncpg.Connection, organization_id: UUID) -> int:
    """What is still open becomes unsettled, as after a crash."""
    status = await connection.execute(
        """
        INSERT INTO unsettled_holds (organization_id, admitted_day, reservation_id, held_pico,
                                     admitted_at, project_id, api_key_id, decide_at)
        SELECT organization_id, admitted_day, reservation_id, held_pico, admitted_at, project_id,
               api_key_id, 'infinity'
          FROM ledger_entries h
         WHERE organization_id = $1
           AND phase = 0
           AND NOT EXISTS (SELECT FROM ledger_entries p
                            WHERE p.organization_id = $1 AND p.admitted_day = h.admitted_day
                              AND p.reservation_id = h.reservation_id AND p.phase = 1)
        ON CONFLICT DO NOTHING
        """,
        organization_id,
    )
    return int(status.rpartition(" ")[2])


async def close_day(connection: asyncpg.Connection, day: date) -> None:
    """Take a day's entries away as retention does; what brute force needs stays in `dropped`."""
    partition = f"ledger_entries_{day:%Y%m%d}"
    await connection.execute(
        f"""
        CREATE TABLE IF NOT EXISTS dropped (LIKE ledger_entries);
        INSERT INTO dropped SELECT * FROM {partition};
        INSERT INTO ledger_closings
        SELECT organization_id, admitted_day, project_id, api_key_id, model, count(*),
               sum(input_tokens), sum(cached_input_tokens), sum(output_tokens), sum(images),
               sum(input_pico), sum(cached_input_pico), sum(output_pico), sum(image_pico),
               sum(request_pico), sum(excess_pico), sum(unknown_pico),
               count(*) FILTER (WHERE is_estimated), sum(cache_write_tokens),
               sum(cache_write_pico)
          FROM {partition}
         WHERE phase = 1
         GROUP BY 1, 2, 3, 4, 5;
        INSERT INTO closed_days (day) VALUES ('{day}');
        """  # noqa: S608 - a name cannot be a parameter
    )
    await connection.execute(
        f"ALTER TABLE ledger_entries DETACH PARTITION {partition} CONCURRENTLY"
    )
    await connection.execute(f"DROP TABLE {partition}")


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
