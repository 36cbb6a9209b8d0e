"""SQL for records of requests and their hourly sums."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Final, LiteralString

import msgspec

from tollhouse.activity import rows
from tollhouse.activity.types import (
    LATENCY_BOUNDS_MS,
    HourlyCount,
    HourRange,
    RecordGap,
    RecordGrouping,
    RequestRecord,
)
from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId, RequestId, day_of
from tollhouse.observability.log import bounded_text, redact
from tollhouse.storage.database import Database, Transaction

# A retry after a lost answer counts nothing twice. All workers write hours in the same order, so
# that they cannot deadlock. After 400 and 404 the model may be any text of the caller, which must
# not create rows.
_INTO: Final = """
    WITH inserted AS (
        INSERT INTO requests (
            organization_id, day, request_id, project_id, api_key_id, operation, started_at,
            status, error_code, failed_by, model, backend, replica, is_stream,
            input_tokens, cached_input_tokens, output_tokens, cost_pico,
            queue_ms, admission_ms, judging_ms, first_byte_ms, total_ms, is_estimated, error_param
"""
_RECORDS: Final = ") SELECT * FROM unnest($1::request_record[], $3::text[])"
# Few records have more than the columns of `request_record`.
_NOTED_RECORDS: Final = """
            , requested_model, dropped_tools, attempts, label)
        SELECT *
          FROM unnest($1::request_record[], $3::text[], $4::text[], $5::text[], $6::text[],
                      $7::text[])
"""
_ROLL_UP: Final = """
            ON CONFLICT DO NOTHING
        RETURNING organization_id, started_at, project_id, api_key_id, model, status, error_code,
                  input_tokens, cached_input_tokens, output_tokens,
                  total_ms::double precision AS total_ms
    ), rolled_up AS (
        INSERT INTO request_hours AS known (
            organization_id, hour, project_id, api_key_id, model, status, error_code,
            requests, input_tokens, cached_input_tokens, output_tokens, total_ms, latency_counts)
        SELECT organization_id, date_trunc('hour', started_at, 'UTC'), project_id, api_key_id,
               CASE WHEN status IN (400, 404) THEN '' ELSE coalesce(model, '') END, status,
               coalesce(error_code, ''), count(*), coalesce(sum(input_tokens), 0),
               coalesce(sum(cached_input_tokens), 0), coalesce(sum(output_tokens), 0),
               sum(total_ms),
               ARRAY[count(*) FILTER (WHERE bucket = 0), count(*) FILTER (WHERE bucket = 1),
                     count(*) FILTER (WHERE bucket = 2), count(*) FILTER (WHERE bucket = 3),
                     count(*) FILTER (WHERE bucket = 4), count(*) FILTER (WHERE bucket = 5),
                     count(*) FILTER (WHERE bucket = 6), count(*) FILTER (WHERE bucket = 7),
                     count(*) FILTER (WHERE bucket = 8), count(*) FILTER (WHERE bucket = 9)]
          FROM (SELECT *, width_bucket(total_ms, $2::double precision[]) AS bucket
                  FROM inserted) one
         GROUP BY 1, 2, 3, 4, 5, 6, 7
         ORDER BY 1, 2, 3, 4, 5, 6, 7
            ON CONFLICT (organization_id, hour, project_id, api_key_id, model, status, error_code)
            DO UPDATE
           SET requests = known.requests + EXCLUDED.requests,
               input_tokens = known.input_tokens + EXCLUDED.input_tokens,
               cached_input_tokens = known.cached_input_tokens + EXCLUDED.cached_input_tokens,
               output_tokens = known.output_tokens + EXCLUDED.output_tokens,
               total_ms = known.total_ms + EXCLUDED.total_ms,
               latency_counts = ARRAY(
                    SELECT mine + theirs
                      FROM unnest(known.latency_counts, EXCLUDED.latency_counts)
                           WITH ORDINALITY AS bucket (mine, theirs, number)
                     ORDER BY number)
    )
"""
_WRITTEN: Final = "SELECT count(*) AS written FROM inserted"
_INSERT: Final = _INTO + _RECORDS + _ROLL_UP + _WRITTEN
_INSERT_NOTED: Final = _INTO + _NOTED_RECORDS + _ROLL_UP + _WRITTEN

_HOURS: Final = """
    SELECT hour, grouped, status, error_code, sum(requests)::bigint AS requests,
           sum(input_tokens) AS input_tokens, sum(cached_input_tokens) AS cached_input_tokens,
           sum(output_tokens) AS output_tokens, sum(total_ms) AS total_ms,
           ARRAY[sum(latency_counts[1]), sum(latency_counts[2]), sum(latency_counts[3]),
                 sum(latency_counts[4]), sum(latency_counts[5]), sum(latency_counts[6]),
                 sum(latency_counts[7]), sum(latency_counts[8]), sum(latency_counts[9]),
                 sum(latency_counts[10])]::bigint[] AS latency_counts
      FROM (SELECT *, CASE $4::text WHEN 'project_id' THEN project_id::text
                                    WHEN 'api_key_id' THEN api_key_id::text
                                    WHEN 'model' THEN model END AS grouped
              FROM request_hours
             WHERE organization_id = $1
               AND hour >= $2
               AND hour < $3) known
     GROUP BY hour, grouped, status, error_code
     ORDER BY hour, grouped COLLATE "C", status, error_code
     LIMIT $5
"""


async def insert(database: Database, records: Sequence[RequestRecord]) -> int:
    """Insert the records that are new, add them to their hours, and return their number.

    One statement, so one round trip.
    """
    if not any(map(_has_notes, records)):
        return await _insert(database, _INSERT, records)
    notes = (
        [bounded_text(record.requested_model) for record in records],
        [bounded_text(rows.TOOL_SEPARATOR.join(record.dropped_tools)) for record in records],
        [
            msgspec.json.encode(record.attempts).decode() if record.attempts else None
            for record in records
        ],
        [record.label for record in records],
    )
    return await _insert(database, _INSERT_NOTED, records, *notes)


def _has_notes(record: RequestRecord) -> bool:
    return bool(record.requested_model or record.dropped_tools or record.attempts or record.label)


async def _insert(  # all organizations: records are written together
    database: Database, statement: LiteralString, records: Sequence[RequestRecord], *notes: object
) -> int:
    found = await database.fetch_all(
        statement,
        list(map(_record_row, records)),
        LATENCY_BOUNDS_MS,
        [bounded_text(record.error_param) for record in records],
        *notes,
    )
    return found[0]["written"]


def _record_row(record: RequestRecord) -> tuple[object, ...]:
    """Return a record as the database's type `request_record`."""
    return (
        record.organization_id,
        day_of(record.request_id),
        record.request_id,
        record.project_id,
        record.api_key_id,
        record.operation,
        record.started_at,
        record.status,
        record.error_code,
        record.failed_by,
        None if record.model is None else redact(record.model),
        record.backend,
        record.replica,
        record.is_stream,
        record.input_tokens,
        record.cached_input_tokens,
        record.output_tokens,
        record.cost_pico_usd,
        record.queue_ms,
        record.admission_ms,
        record.judging_ms,
        record.first_byte_ms,
        record.total_ms,
        record.is_estimated,
    )


async def get(
    tx: Transaction, organization_id: OrganizationId, request_id: RequestId, day: date
) -> RequestRecord | None:
    """Return a request, or None. `day` is the day of its ID, so that only one partition is read."""
    row = await tx.fetch_one(
        "SELECT * FROM requests WHERE organization_id = $1 AND day = $2 AND request_id = $3",
        organization_id,
        day,
        request_id,
    )
    return None if row is None else rows.record(row)


async def oldest_of(
    tx: Transaction, organization_id: OrganizationId, request_ids: Sequence[RequestId]
) -> RequestId | None:
    """Return the oldest of these requests that has a record, or None."""
    row = await tx.fetch_one(
        """
        SELECT found.request_id
          FROM unnest($2::date[], $3::uuid[]) AS chosen (day, request_id)
         CROSS JOIN LATERAL
               (SELECT day, request_id
                  FROM requests
                 WHERE organization_id = $1
                   AND day = chosen.day
                   AND request_id = chosen.request_id) found
         ORDER BY found.day, found.request_id
         LIMIT 1
        """,
        organization_id,
        [day_of(request_id) for request_id in request_ids],
        request_ids,
    )
    return None if row is None else RequestId(row["request_id"])


async def find(  # all organizations: the operator has only the ID of a request
    tx: Transaction, request_id: RequestId, day: date
) -> RequestRecord | None:
    """Return a request of any organization, or None."""
    row = await tx.fetch_one(
        "SELECT * FROM requests WHERE day = $1 AND request_id = $2", day, request_id
    )
    return None if row is None else rows.record(row)


async def hours(
    tx: Transaction,
    organization_id: OrganizationId,
    asked: HourRange,
    grouping: RecordGrouping | None,
    *,
    rows_max: int,
) -> list[HourlyCount]:
    """Return at most `rows_max` counts of these hours, sorted by hour and group."""
    found = await tx.fetch_all(
        _HOURS,
        organization_id,
        datetime.fromtimestamp(asked.start, UTC),
        datetime.fromtimestamp(asked.end, UTC),
        grouping,
        rows_max,
    )
    return [rows.counted(row) for row in found]


async def remove_hours(  # all organizations: retention is the deployment's
    tx: Transaction, rows_max: int, *, first_kept: date
) -> int:
    """Delete at most `rows_max` hourly sums before `first_kept`, and return their number."""
    return await tx.execute(
        """
        DELETE FROM request_hours
         WHERE (organization_id, hour, project_id, api_key_id, model, status, error_code) IN (
               SELECT organization_id, hour, project_id, api_key_id, model, status, error_code
                 FROM request_hours
                WHERE (hour AT TIME ZONE 'UTC')::date < $1
                LIMIT $2)
        """,
        first_kept,
        rows_max,
    )


async def add_gap(  # all organizations: whose records were dropped may be unknown
    database: Database, gap: RecordGap
) -> None:
    """Store a gap."""
    await database.fetch_all(
        "INSERT INTO record_gaps (first_at, last_at, records) VALUES ($1, $2, $3)",
        gap.first_at,
        gap.last_at,
        gap.records,
    )


async def gaps(  # all organizations: whose records were dropped may be unknown
    tx: Transaction, start: datetime | None, end: datetime | None, *, limit: int
) -> list[RecordGap]:
    """Return the latest gaps that touch a range, newest first."""
    rows = await tx.fetch_all(
        """
        SELECT first_at, last_at, records
          FROM record_gaps
         WHERE last_at >= coalesce($1, '-infinity'::timestamptz)
           AND first_at < coalesce($2, 'infinity'::timestamptz)
         ORDER BY last_at DESC
         LIMIT $3
        """,
        start,
        end,
        limit,
    )
    return [RecordGap(**row) for row in rows]


async def remove_gaps(  # all organizations: retention is the deployment's
    tx: Transaction, first_kept: date
) -> None:
    """Delete gaps that ended before `first_kept`."""
    await tx.execute("DELETE FROM record_gaps WHERE last_at < $1::date", first_kept)


async def has_project(
    tx: Transaction, organization_id: OrganizationId, project_id: ProjectId
) -> bool:
    """Return whether the organization has this project, archived or not."""
    return await tx.fetch_value(
        "SELECT EXISTS (SELECT FROM projects WHERE organization_id = $1 AND id = $2)",
        organization_id,
        project_id,
    )


async def has_project_key(
    tx: Transaction, organization_id: OrganizationId, api_key_id: ProjectKeyId
) -> bool:
    """Return whether the organization has this project key, revoked or not."""
    return await tx.fetch_value(
        "SELECT EXISTS (SELECT FROM project_keys WHERE organization_id = $1 AND id = $2)",
        organization_id,
        api_key_id,
    )
