"""Searching for requests.

A search scans an index from its newest end and examines a bounded number of requests, so that a
filter without matches does not read a month. Failures and keys have an index of their own, so there
are three statements, which differ only in the index that they scan.
"""

from typing import Final, LiteralString

from tollhouse.activity import rows
from tollhouse.activity.types import RecordCursor, RecordFilter, RequestRecord
from tollhouse.base.ids import OrganizationId
from tollhouse.storage.database import Row, Transaction

EXAMINED_MAX: Final = 10_000
"""How many requests one search examines; this takes some tens of milliseconds."""

# A new day has no statistics. The planner then assumes that an organization has few rows in it, and
# would read and sort all of them instead of scanning the index.
_WALK: Final = """
    SELECT set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true)
"""

_ALL: Final = """
    SELECT *
      FROM (SELECT *, row_number() OVER (ORDER BY day DESC, request_id DESC) AS position,
                   status BETWEEN $4 AND $5
                   AND ($6::uuid IS NULL OR project_id = $6)
                   AND ($7::uuid IS NULL OR api_key_id = $7)
                   AND ($8::text IS NULL OR model = $8)
                   AND ($9::text IS NULL OR operation = $9) AS is_wanted
              FROM (SELECT *
                      FROM requests
                     WHERE organization_id = $1
                       AND day <= $2
                       AND request_id < $3
                     ORDER BY day DESC, request_id DESC
                     LIMIT $10) latest) examined
     WHERE is_wanted OR position = $10
     ORDER BY day DESC, request_id DESC
     LIMIT $11
"""

_FAILED: Final = """
    SELECT *
      FROM (SELECT *, row_number() OVER (ORDER BY day DESC, request_id DESC) AS position,
                   status BETWEEN $4 AND $5
                   AND ($6::uuid IS NULL OR project_id = $6)
                   AND ($7::uuid IS NULL OR api_key_id = $7)
                   AND ($8::text IS NULL OR model = $8)
                   AND ($9::text IS NULL OR operation = $9) AS is_wanted
              FROM (SELECT *
                      FROM requests
                     WHERE organization_id = $1
                       AND day <= $2
                       AND request_id < $3
                       AND status >= 400
                     ORDER BY day DESC, request_id DESC
                     LIMIT $10) latest) examined
     WHERE is_wanted OR position = $10
     ORDER BY day DESC, request_id DESC
     LIMIT $11
"""

_OF_KEY: Final = """
    SELECT *
      FROM (SELECT *, row_number() OVER (ORDER BY day DESC, request_id DESC) AS position,
                   status BETWEEN $4 AND $5
                   AND ($6::uuid IS NULL OR project_id = $6)
                   AND ($8::text IS NULL OR model = $8)
                   AND ($9::text IS NULL OR operation = $9) AS is_wanted
              FROM (SELECT *
                      FROM requests
                     WHERE organization_id = $1
                       AND api_key_id = $7
                       AND day <= $2
                       AND request_id < $3
                     ORDER BY day DESC, request_id DESC
                     LIMIT $10) latest) examined
     WHERE is_wanted OR position = $10
     ORDER BY day DESC, request_id DESC
     LIMIT $11
"""


async def search(
    tx: Transaction,
    organization_id: OrganizationId,
    only: RecordFilter,
    before: RecordCursor,
    *,
    limit: int,
) -> tuple[list[tuple[RequestRecord, bool]], bool]:
    """Return the latest requests before a cursor, and whether the search reached its bound.

    Each request comes with whether the filter matches it. All but the last one match. A last one
    that does not match is where the search reached its bound: the next search continues there.
    """
    if only.api_key_id is not None:
        found = await _search(tx, _OF_KEY, organization_id, only, before, limit)
    elif only.statuses.are_failures:
        found = await _search(tx, _FAILED, organization_id, only, before, limit)
    else:
        found = await _search(tx, _ALL, organization_id, only, before, limit)
    is_cut = bool(found) and found[-1]["position"] == EXAMINED_MAX
    return [(rows.record(row), row["is_wanted"]) for row in found], is_cut


async def _search(
    tx: Transaction,
    statement: LiteralString,
    organization_id: OrganizationId,
    only: RecordFilter,
    before: RecordCursor,
    limit: int,
) -> list[Row]:
    await tx.execute(_WALK)
    return await tx.fetch_all(
        statement,
        organization_id,
        before.day,
        before.request_id,
        only.statuses.lowest,
        only.statuses.highest,
        only.project_id,
        only.api_key_id,
        only.model,
        only.operation,
        EXAMINED_MAX,
        limit,
    )
