"""Fills a migrated database with organizations, keys, policies and a ledger of many days.

All sums agree with the entries, as `tollhouse ledger verify` would find them. Rows are written
without triggers and foreign keys, for which the connection must be a superuser's.
"""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import asyncpg

DAYS_AT_ONCE: Final = 20
DAYS_AHEAD: Final = 7
ACTIVITY_DAYS: Final = 30
"""The default retention of requests and of decisions."""


@dataclass(frozen=True, kw_only=True)
class Volume:
    """How much to load: ten keys and ten policies for each organization, two entries per request.

    The first organizations have most of the requests: 6 of 100 are of the first of 100,000.
    """

    organizations: int
    requests_per_day: int
    days: int


_UUID: Final = """
    CREATE FUNCTION pg_temp.uuid_of(at timestamptz, number bigint) RETURNS uuid
    LANGUAGE sql IMMUTABLE AS $$
        SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')
                || '7' || substr(md5(number::text), 1, 3)
                || '8' || substr(md5(number::text), 5, 15))::uuid
    $$
"""
_KEYS: Final = """
    CREATE TEMP TABLE loaded_keys AS
    SELECT o * 10 + k AS number,
           pg_temp.uuid_of('2025-01-01'::timestamptz + o * interval '1 s', o) AS organization_id,
           pg_temp.uuid_of('2025-02-01'::timestamptz + o * interval '1 s',
                           1000000000 + o * 2 + k % 2) AS project_id,
           pg_temp.uuid_of('2025-03-01'::timestamptz + o * interval '1 s', 2000000000 + o * 10 + k)
             AS key_id,
           pg_temp.uuid_of('2025-04-01'::timestamptz + o * interval '1 s', 3000000000 + o * 10 + k)
             AS policy_id
      FROM generate_series(0, $1::bigint - 1) o, generate_series(0, 9) k
"""
_IDENTITIES: Final = (
    "CREATE INDEX ON loaded_keys (number)",
    "ANALYZE loaded_keys",
    """
    INSERT INTO organizations (id, name, status, policy_version, created_at)
    SELECT organization_id, 'organization ' || number / 10, 'active', 10, '2025-01-01'
      FROM loaded_keys WHERE number % 10 = 0
    """,
    """
    INSERT INTO projects (organization_id, id, name, created_at)
    SELECT organization_id, project_id, 'project ' || number % 2, '2025-02-01'
      FROM loaded_keys WHERE number % 10 < 2
    """,
    """
    INSERT INTO project_keys (organization_id, id, project_id, name, redacted_value, permissions,
                              created_at)
    SELECT organization_id, key_id, project_id, 'key ' || number, 'thp_abc...xyz',
           ARRAY['inference.create', 'models.read'], '2025-03-01'
      FROM loaded_keys
    """,
    """
    INSERT INTO key_directory (digest, organization_id, key_kind, key_id)
    SELECT sha256(number::text::bytea), organization_id, 'project', key_id FROM loaded_keys
    """,
    """
    INSERT INTO rate_limits (organization_id, scope, scope_id, owner, requests_per_minute)
    SELECT organization_id, 'api_key', key_id, 'organization', 600
      FROM loaded_keys WHERE number % 4 = 0
    """,
    """
    INSERT INTO policies (organization_id, id, name, description, state, revision, rule, direction,
                          mode, scope, project_ids, base_version, current_version, created_at,
                          updated_at)
    SELECT organization_id, policy_id, 'policy ' || number, '', 'monitoring', 2,
           repeat('Does the text ask for something forbidden? ', 5), 'request', 'monitoring',
           CASE WHEN number % 10 < 2 THEN 'organization' ELSE 'projects' END,
           CASE WHEN number % 10 < 2 THEN '{}' ELSE ARRAY[project_id] END,
           1, 1, '2025-04-01', '2025-04-01'
      FROM loaded_keys
    """,
    """
    INSERT INTO policy_versions (organization_id, policy_id, version, rule, direction, mode, scope,
                                 project_ids, threshold_in_force_basis_points, published_at)
    SELECT organization_id, id, 1, rule, direction, mode, scope, project_ids, 5000, created_at
      FROM policies
    """,
    """
    INSERT INTO policy_targets (organization_id, policy_id, project_id)
    SELECT organization_id, id, project_ids[1] FROM policies
    """,
)
_ENTRIES: Final = """
    WITH drawn AS MATERIALIZED (
        SELECT number, $1::date + (number / $3)::integer AS day,
               ($1::date + (number / $3)::integer)::timestamp AT TIME ZONE 'UTC'
                 + number % $3 * interval '24 h' / $3 AS at,
               floor($4 * power(random(), 4))::bigint * 10 + floor(10 * random())::bigint AS key,
               (ARRAY['gpt-oss-20b', 'llama-70b', 'qwen-32b'])[1 + floor(3 * random())::integer]
                 AS model,
               (1e6 + 9e8 * random())::bigint AS held, random() AS part
          FROM generate_series(0, $2::integer * $3::bigint - 1) number
    )
    INSERT INTO ledger_entries (
        organization_id, admitted_day, reservation_id, phase, kind, admitted_at, recorded_at,
        deadline_at, project_id, api_key_id, model, price_revision, instance_id,
        bills_without_answer, held_pico, posted_pico, input_tokens, output_tokens, input_pico,
        output_pico)
    SELECT k.organization_id, day, pg_temp.uuid_of(at, request.number), phase,
           CASE phase WHEN 0 THEN 'reserve' ELSE 'post' END, at, at + phase * interval '3 s',
           at + interval '10 min', k.project_id, k.key_id, model, 1,
           '00000000-0000-7000-8000-000000000001', false, held, phase * posted, phase * 900,
           phase * 300, phase * (posted / 3), phase * (posted - posted / 3)
      FROM (SELECT *, (held * part)::bigint AS posted FROM drawn) request
      JOIN loaded_keys k ON k.number = request.key
     CROSS JOIN generate_series(0, 1) phase
     ORDER BY at, phase
"""
_REQUESTS: Final = """
    INSERT INTO requests (
        organization_id, day, request_id, project_id, api_key_id, operation, started_at, status,
        model, backend, replica, is_stream, input_tokens, cached_input_tokens, output_tokens,
        cost_pico, total_ms)
    SELECT organization_id, admitted_day, reservation_id, project_id, api_key_id,
           'createChatCompletion', admitted_at, 200, model, 'vllm', 'r1', true, input_tokens, 0,
           output_tokens, posted_pico, 2400
      FROM ledger_entries
     WHERE phase = 1 AND admitted_day >= $1
"""
_SUMS: Final = (
    """
    INSERT INTO cost_hourly
    SELECT organization_id, date_trunc('hour', admitted_at, 'UTC'), project_id, api_key_id, model,
           count(*), sum(input_tokens), 0, sum(output_tokens), 0, sum(input_pico), 0,
           sum(output_pico), 0, 0, 0
      FROM ledger_entries WHERE phase = 1 GROUP BY 1, 2, 3, 4, 5
    """,
    """
    INSERT INTO cost_daily
    SELECT organization_id, (hour AT TIME ZONE 'UTC')::date, project_id, api_key_id, model,
           sum(requests), sum(input_tokens), 0, sum(output_tokens), 0, sum(input_pico), 0,
           sum(output_pico), 0, 0, 0
      FROM cost_hourly GROUP BY 1, 2, 3, 4, 5
    """,
    """
    INSERT INTO spending_counters (organization_id, scope, scope_id, window_start, settled_pico)
    SELECT organization_id, scope, scope_id, window_start, sum(input_pico + output_pico)
      FROM cost_daily
     CROSS JOIN LATERAL (VALUES ('organization', organization_id), ('project', project_id),
                                ('api_key', api_key_id)) counted (scope, scope_id)
     CROSS JOIN LATERAL (VALUES (date_trunc('month', day)::date), ('-infinity'))
                     AS counting (window_start)
     GROUP BY 1, 2, 3, 4
    """,
    """
    INSERT INTO accounts (organization_id, credit_pico, settled_pico, ceiling_pico)
    SELECT o.id, 1e30, coalesce(spent.settled_pico, 0), 1e30
      FROM organizations o
      LEFT JOIN spending_counters spent
        ON spent.organization_id = o.id AND spent.scope = 'organization'
       AND spent.window_start = '-infinity'
    """,
    """
    INSERT INTO credit_grants (organization_id, id, kind, amount_pico, reason, actor_type,
                               created_at)
    SELECT id, id, 'promotional', 1e30, 'load', 'operator', created_at FROM organizations
    """,
    """
    INSERT INTO request_hours
    SELECT organization_id, date_trunc('hour', started_at, 'UTC'), project_id, api_key_id, model,
           status, '', count(*), sum(input_tokens), 0, sum(output_tokens), sum(total_ms),
           ARRAY[0, 0, 0, 0, 0, 0, 0, count(*), 0, 0]
      FROM requests GROUP BY 1, 2, 3, 4, 5, 6
    """,
    "UPDATE reaper_progress SET checked_until = clock_timestamp() - interval '10 min'",
)
_PARTITIONS: Final = """
    SELECT count(make_day_partition($1, day::date))
      FROM generate_series($2::date, $3::date, '1 day') day
"""


async def load(connection: asyncpg.Connection, volume: Volume) -> None:
    """Fill a database that has just been migrated; entries are of the days before today."""
    today = await connection.fetchval("SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date")
    activity_days = min(volume.days, ACTIVITY_DAYS)
    await _make_partitions(connection, "ledger_entries", today, volume.days)
    for table in ("requests", "evaluations", "policy_decisions"):
        await _make_partitions(connection, table, today, activity_days)
    await connection.execute(
        "SET synchronous_commit = off; SET session_replication_role = replica; SET jit = off;"
        " SET work_mem = '256MB'; SET timezone = 'UTC'"
    )
    await connection.execute("SELECT setseed(0.5)")
    await connection.execute(_UUID)
    await connection.execute(_KEYS, volume.organizations)
    for statement in _IDENTITIES:
        await connection.execute(statement)
    await _write_entries(connection, volume, today)
    await connection.execute(_REQUESTS, today - timedelta(days=activity_days))
    for statement in _SUMS:
        await connection.execute(statement)
    await connection.execute("VACUUM ANALYZE")


async def _make_partitions(
    connection: asyncpg.Connection, table: str, today: date, days: int
) -> None:
    """Each partition is locked until the commit, so a few are made at a time."""
    for back in range(days, -DAYS_AHEAD - 1, -DAYS_AT_ONCE):
        first = today - timedelta(days=back)
        last = today - timedelta(days=max(back - DAYS_AT_ONCE + 1, -DAYS_AHEAD))
        await connection.fetchval(_PARTITIONS, table, first, last)


async def _write_entries(connection: asyncpg.Connection, volume: Volume, today: date) -> None:
    if not volume.requests_per_day:
        return
    for back in range(volume.days, 0, -DAYS_AT_ONCE):
        await connection.execute(
            _ENTRIES,
            today - timedelta(days=back),
            min(back, DAYS_AT_ONCE),
            volume.requests_per_day,
            volume.organizations,
        )
