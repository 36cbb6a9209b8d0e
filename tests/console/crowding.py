"""A large organization around the console's example: what its pages are timed with."""

from datetime import UTC, date, datetime
from typing import Final

import asyncpg

from tests.support.organization_fixture import OrganizationFixture

PROJECTS: Final = 10
KEYS: Final = 200
COST_DAYS: Final = 400
REQUESTS: Final = 100_000
REQUEST_DAYS: Final = 30
FILLING_SECONDS_MAX: Final = 300

# IDs that sort by time, as the gateway mints them; the rest of each comes from its number.
_MINTED: Final = """
CREATE FUNCTION pg_temp.minted(at timestamptz, number bigint) RETURNS uuid IMMUTABLE
RETURN (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')
        || '7' || left(md5(number::text), 3) || '8' || right(md5(number::text), 15))::uuid
"""
_PROJECTS: Final = """
INSERT INTO projects (organization_id, id, name, created_at)
SELECT $1, pg_temp.minted(now(), number), 'Project ' || number, now()
  FROM generate_series(1, $2::bigint) AS number
"""
_KEYS: Final = """
CREATE TEMPORARY TABLE crowd AS
SELECT pg_temp.minted(now(), 1000 + number) AS id,
       pg_temp.minted(now(), 1 + number % $1) AS project_id, number
  FROM generate_series(1, $2::bigint) AS number
"""
_NAMED_KEYS: Final = """
INSERT INTO project_keys (
    organization_id, id, project_id, name, redacted_value, permissions, created_at)
SELECT $1, id, project_id, 'Key ' || number, 'thp_...' || number, '{}', now()
  FROM crowd
"""
_COSTS: Final = """
INSERT INTO cost_daily
SELECT $1, $2::date - ago, project_id, id, 'example/large', 40, 9000, 1200, 2100, 0,
       10 ^ 9 * (1 + (ago * 7 + number) % 23), 10 ^ 8, 10 ^ 9 * (1 + number % 11), 0, 0
  FROM crowd, generate_series(1, $3) AS ago
"""
_PARTITIONS: Final = """
SELECT make_day_partition('requests', $1::date - ago)
  FROM generate_series(0, $2) AS ago
"""
_REQUESTS: Final = """
INSERT INTO requests (
    organization_id, day, request_id, project_id, api_key_id, operation, started_at, status,
    error_code, failed_by, model, backend, is_stream, input_tokens, cached_input_tokens,
    output_tokens, cost_pico, total_ms)
SELECT $1, (at AT TIME ZONE 'UTC')::date, pg_temp.minted(at, made), project_id, id,
       'createChatCompletion', at, CASE WHEN made % 50 = 0 THEN 502 ELSE 200 END,
       CASE WHEN made % 50 = 0 THEN 'upstream_error' END,
       CASE WHEN made % 50 = 0 THEN 'backend' END,
       'example/large', 'engine', made % 2 = 0, 900, 120, 210, 10 ^ 9, 420
  FROM generate_series(1, $2::bigint) AS made
  JOIN crowd ON crowd.number = 1 + made % $3
 CROSS JOIN LATERAL (SELECT now() - made * interval '1 day' * $4 / $2 AS at) AS moment
"""
_HOURS: Final = """
INSERT INTO request_hours
SELECT organization_id, date_trunc('hour', started_at, 'UTC'), project_id, api_key_id, model,
       status, coalesce(error_code, ''), count(*), sum(input_tokens), sum(cached_input_tokens),
       sum(output_tokens), sum(total_ms), ARRAY[0, 0, 0, count(*), 0, 0, 0, 0, 0, 0]
  FROM requests
 WHERE organization_id = $1
 GROUP BY 1, 2, 3, 4, 5, 6, 7
"""


async def crowd(org: OrganizationFixture, url: str) -> None:
    """Keys, days of costs and requests by the ten thousand, before anybody traded."""
    connection = await asyncpg.connect(url, command_timeout=FILLING_SECONDS_MAX)
    today: date = datetime.now(UTC).date()
    owner = org.organization_id
    try:
        async with connection.transaction():
            await connection.execute(_MINTED)
            await connection.execute(_PROJECTS, owner, PROJECTS)
            await connection.execute(_KEYS, PROJECTS, KEYS)
            await connection.execute(_NAMED_KEYS, owner)
            await connection.execute(_COSTS, owner, today, COST_DAYS)
            await connection.execute(_PARTITIONS, today, REQUEST_DAYS)
            await connection.execute(_REQUESTS, owner, REQUESTS, KEYS, REQUEST_DAYS)
            await connection.execute(_HOURS, owner)
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()
