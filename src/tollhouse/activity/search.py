"""Searching for requests.

A search scans an index from its newest end and examines a bounded number of requests, so that a
filter without matches does not read a month. Failures, error codes and keys have an index of their
own, so there are several statements, which differ only in the index that they scan. A range of time
is a range of IDs, which every index has.
"""

from typing import Final, LiteralString

from tollhouse.activity import rows, rules
from tollhouse.activity.types import RecordCursor, RecordFilter, RequestRecord
from tollhouse.base.ids import OrganizationId, day_of
from tollhouse.storage.database import Row, Transaction
from tollhouse.storage.partitions import read_in_index_order

EXAMINED_MAX: Final = 10_000
"""How many requests one search examines; this takes some tens of milliseconds."""

_EXAMINED: Final = """
    SELECT *
      FROM (SELECT *, row_number() OVER (ORDER BY day DESC, request_id DESC) AS position,
                   status BETWEEN $6 AND $7
                   AND ($8::uuid IS NULL OR project_id = $8)
                   AND ($9::uuid IS NULL OR api_key_id = $9)
                   AND ($10::text IS NULL OR model = $10)
                   AND ($11::text IS NULL OR operation = $11)
                   AND ($12::text IS NULL OR error_code = $12)
                   AND ($16::text IS NULL OR label = $16)
                   AND ($15::text IS NULL OR $15 =
                        CASE WHEN error_code IN ('policy_violation', 'policy_not_evaluable')
                                  OR status IN (402, 403, 429) THEN 'refused'
                             WHEN status < 400 AND error_code IS NULL THEN 'succeeded'
                             WHEN status BETWEEN 400 AND 499 OR status = 501 THEN 'client_error'
                             ELSE 'failed'
                         END) AS is_wanted
"""
_LATEST: Final = """
              FROM (SELECT *
                      FROM requests
                     WHERE organization_id = $1
                       AND day <= $2
                       AND request_id < $3
                       AND day >= $4
                       AND request_id >= $5
"""
_BOUNDED: Final = """
                     ORDER BY day DESC, request_id DESC
                     LIMIT $13) latest) examined
     WHERE is_wanted OR position = $13
     ORDER BY day DESC, request_id DESC
     LIMIT $14
"""
_ALL: Final = _EXAMINED + _LATEST + _BOUNDED
_FAILED: Final = _EXAMINED + _LATEST + " AND status >= 400 " + _BOUNDED
_OF_ERROR: Final = _EXAMINED + _LATEST + " AND error_code = $12 " + _BOUNDED
_OF_KEY: Final = _EXAMINED + _LATEST + " AND api_key_id = $9 " + _BOUNDED
# Each one is looked up by the primary key. With `= ANY`, PostgreSQL before 17 would walk all
# requests of their days to keep the order.
_ONE_BY_ONE: Final = """
              FROM (SELECT found.*
                      FROM unnest($17::date[], $18::uuid[]) AS chosen (day, request_id)
                     CROSS JOIN LATERAL
                           (SELECT *
                              FROM requests
                             WHERE organization_id = $1
                               AND day = chosen.day
                               AND request_id = chosen.request_id
                               AND day <= $2
                               AND request_id < $3
                               AND day >= $4
                               AND request_id >= $5) found
"""
_CHOSEN: Final = _EXAMINED + _ONE_BY_ONE + _BOUNDED


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
    if only.request_ids is not None:
        days = [day_of(request_id) for request_id in only.request_ids]
        chosen = (days, only.request_ids)
        found = await _search(tx, _CHOSEN, organization_id, only, before, limit, *chosen)
    elif only.api_key_id is not None:
        found = await _search(tx, _OF_KEY, organization_id, only, before, limit)
    elif only.error_code is not None:
        found = await _search(tx, _OF_ERROR, organization_id, only, before, limit)
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
    *chosen: object,
) -> list[Row]:
    await read_in_index_order(tx)
    newest, oldest = rules.bounds(before, only)
    return await tx.fetch_all(
        statement,
        organization_id,
        newest.day,
        newest.request_id,
        oldest.day,
        oldest.request_id,
        only.statuses.lowest,
        only.statuses.highest,
        only.project_id,
        only.api_key_id,
        only.model,
        only.operation,
        only.error_code,
        EXAMINED_MAX,
        limit,
        only.outcome,
        only.label,
        *chosen,
    )
