"""Queries of reports. Sums of whole days and hours come from rollups, others from entries."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Final, LiteralString
from uuid import UUID

from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId
from tollhouse.base.money import PicoUsd
from tollhouse.base.retention import HOURS_KEPT
from tollhouse.reports.types import (
    CostQuery,
    Dimension,
    Group,
    ReportSpan,
    Sums,
    UnsettledUsage,
    Used,
)
from tollhouse.storage.database import Row, Transaction

_SUMS: Final = """
               sum(input_tokens) AS input_tokens,
               sum(cached_input_tokens) AS cached_input_tokens,
               sum(output_tokens) AS output_tokens,
               sum(images) AS images,
               sum(input_pico) AS input_pico,
               sum(cached_input_pico) AS cached_input_pico,
               sum(output_pico) AS output_pico,
               sum(image_pico) AS image_pico,
               sum(request_pico) AS request_pico,
               sum(cache_write_tokens) AS cache_write_tokens,
               sum(cache_write_pico) AS cache_write_pico"""
_ENTRY_GROUPS: Final = """
    SELECT floor(extract(epoch FROM admitted_at))::bigint / $9 * $9 AS bucket,
           CASE WHEN $6 THEN project_id END AS project_id,
           CASE WHEN $7 THEN api_key_id END AS api_key_id,
           CASE WHEN $8 THEN model END AS model,
"""
_ENTRY_SUMS: Final = f"""
           count(*) AS requests,
           count(*) FILTER (WHERE is_estimated) AS estimated_requests,
           {_SUMS}
      FROM ledger_entries
"""
_ENTRY_FILTERS: Final = """
     WHERE organization_id = $1
       AND admitted_day BETWEEN $10 AND $11
       AND phase = 1
       AND (kind = 'post' OR posted_pico > 0)
       AND admitted_at >= $2
       AND admitted_at < $3
       AND ($4::uuid[] IS NULL OR project_id = ANY($4))
       AND ($5::uuid[] IS NULL OR api_key_id = ANY($5))
     GROUP BY 1, 2, 3, 4
"""
_ENTRIES: Final = f"{_ENTRY_GROUPS} {_ENTRY_SUMS} {_ENTRY_FILTERS}"


async def hold_still(tx: Transaction) -> None:  # all organizations: reads no row
    """Make the transaction read one snapshot; must be its first statement.

    The lock precedes the snapshot, so that no partition of the snapshot can be detached.
    """
    await tx.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    await tx.execute("LOCK TABLE ONLY ledger_entries IN ACCESS SHARE MODE")


async def days(
    tx: Transaction, organization_id: OrganizationId, question: CostQuery, span: ReportSpan
) -> list[Used]:
    """Return the sums of whole days."""
    return await _sums(
        tx,
        f"""
        SELECT extract(epoch FROM day)::bigint AS bucket,
               CASE WHEN $6 THEN project_id END AS project_id,
               CASE WHEN $7 THEN api_key_id END AS api_key_id,
               CASE WHEN $8 THEN model END AS model,
               sum(requests) AS requests,
               sum(estimated_requests) AS estimated_requests,
               {_SUMS}
          FROM cost_daily
         WHERE organization_id = $1
           AND day >= $2
           AND day < $3
           AND ($4::uuid[] IS NULL OR project_id = ANY($4))
           AND ($5::uuid[] IS NULL OR api_key_id = ANY($5))
         GROUP BY 1, 2, 3, 4
        """,  # noqa: S608 - composed of constants
        organization_id,
        _day(span.start),
        _day(span.end),
        *_chosen(question),
    )


async def hours(
    tx: Transaction, organization_id: OrganizationId, question: CostQuery, span: ReportSpan
) -> list[Used]:
    """Return the sums of whole hours."""
    return await _sums(
        tx,
        f"""
        SELECT extract(epoch FROM hour)::bigint / $9 * $9 AS bucket,
               CASE WHEN $6 THEN project_id END AS project_id,
               CASE WHEN $7 THEN api_key_id END AS api_key_id,
               CASE WHEN $8 THEN model END AS model,
               sum(requests) AS requests,
               sum(estimated_requests) AS estimated_requests,
               {_SUMS}
          FROM cost_hourly
         WHERE organization_id = $1
           AND hour >= $2
           AND hour < $3
           AND ($4::uuid[] IS NULL OR project_id = ANY($4))
           AND ($5::uuid[] IS NULL OR api_key_id = ANY($5))
         GROUP BY 1, 2, 3, 4
        """,  # noqa: S608 - composed of constants
        organization_id,
        _instant(span.start),
        _instant(span.end),
        *_chosen(question),
        question.width.value,
    )


async def entries(
    tx: Transaction, organization_id: OrganizationId, question: CostQuery, span: ReportSpan
) -> list[Used]:
    """Return the sums of requests admitted in any span, exact to the second; reads every entry."""
    asked = (
        organization_id,
        _instant(span.start),
        _instant(span.end),
        *_chosen(question),
        question.width.value,
        *_days_of(span),
    )
    return await _sums(tx, _ENTRIES, *asked)


async def _sums(tx: Transaction, statement: LiteralString, *arguments: object) -> list[Used]:
    return [_used(row) for row in await tx.fetch_all(statement, *arguments)]


async def is_closed(tx: Transaction, span: ReportSpan) -> bool:  # all organizations: shared days
    """Return whether a day of the span is closed, so that its entries may be dropped."""
    return await tx.fetch_value(
        "SELECT EXISTS (SELECT FROM closed_days WHERE day BETWEEN $1 AND $2)", *_days_of(span)
    )


async def are_hours_removed(  # all organizations: shared days
    tx: Transaction, span: ReportSpan
) -> bool:
    """Return whether sums by hour of a day of the span may be removed."""
    return await tx.fetch_value(
        """
        SELECT EXISTS (
            SELECT FROM closed_days
             WHERE day BETWEEN $1 AND $2
               AND day < (clock_timestamp() AT TIME ZONE 'UTC' - $3::interval)::date)
        """,
        *_days_of(span),
        HOURS_KEPT,
    )


async def unsettled(
    tx: Transaction, organization_id: OrganizationId, question: CostQuery, span: ReportSpan
) -> dict[int, UnsettledUsage]:
    """Return the unsettled requests that were admitted in the span, by the start of the bucket."""
    project_ids, api_key_ids, *_ = _chosen(question)
    rows = await tx.fetch_all(
        """
        SELECT floor(extract(epoch FROM admitted_at))::bigint / $8 * $8 AS bucket,
               count(*) AS requests,
               sum(held_pico) AS held_pico
          FROM unsettled_holds
         WHERE organization_id = $1
           AND admitted_day BETWEEN $2 AND $3
           AND admitted_at >= $4
           AND admitted_at < $5
           AND ($6::uuid[] IS NULL OR project_id = ANY($6))
           AND ($7::uuid[] IS NULL OR api_key_id = ANY($7))
         GROUP BY 1
        """,
        organization_id,
        *_days_of(span),
        _instant(span.start),
        _instant(span.end),
        project_ids,
        api_key_ids,
        question.width.value,
    )
    return {
        row["bucket"]: UnsettledUsage(
            requests=row["requests"], held_pico_usd=PicoUsd(int(row["held_pico"]))
        )
        for row in rows
    }


async def unknown_projects(
    tx: Transaction, organization_id: OrganizationId, project_ids: Iterable[ProjectId]
) -> list[str]:
    """Return the IDs that are no project of the organization, archived or not."""
    rows = await tx.fetch_all(
        """
        SELECT asked.id::text
          FROM unnest($2::uuid[]) AS asked (id)
         WHERE NOT EXISTS (
               SELECT FROM projects p WHERE p.organization_id = $1 AND p.id = asked.id)
         ORDER BY asked.id
        """,
        organization_id,
        list(project_ids),
    )
    return [row["id"] for row in rows]


async def unknown_project_keys(
    tx: Transaction, organization_id: OrganizationId, api_key_ids: Iterable[ProjectKeyId]
) -> list[str]:
    """Return the IDs that are no project key of the organization, revoked or not."""
    rows = await tx.fetch_all(
        """
        SELECT asked.id::text
          FROM unnest($2::uuid[]) AS asked (id)
         WHERE NOT EXISTS (
               SELECT FROM project_keys k WHERE k.organization_id = $1 AND k.id = asked.id)
         ORDER BY asked.id
        """,
        organization_id,
        list(api_key_ids),
    )
    return [row["id"] for row in rows]


async def names(
    tx: Transaction,
    organization_id: OrganizationId,
    project_ids: Iterable[ProjectId],
    api_key_ids: Iterable[ProjectKeyId],
) -> tuple[str, dict[UUID, str]]:
    """Return the name of the organization, and those of its projects and keys with these IDs."""
    rows = await tx.fetch_all(
        """
        SELECT id, name FROM organizations WHERE id = $1
         UNION ALL
        SELECT id, name FROM projects WHERE organization_id = $1 AND id = ANY($2::uuid[])
         UNION ALL
        SELECT id, name FROM project_keys WHERE organization_id = $1 AND id = ANY($3::uuid[])
        """,
        organization_id,
        list(project_ids),
        list(api_key_ids),
    )
    found: dict[UUID, str] = {row["id"]: row["name"] for row in rows}
    return found[organization_id], found


def _chosen(question: CostQuery) -> tuple[list[UUID] | None, list[UUID] | None, bool, bool, bool]:
    """Return filters and grouping in the order of the statements' parameters."""
    only, grouping = question.only, question.grouping
    return (
        None if only.project_ids is None else list(only.project_ids),
        None if only.api_key_ids is None else list(only.api_key_ids),
        Dimension.PROJECT in grouping,
        Dimension.KEY in grouping,
        not grouping.isdisjoint({Dimension.MODEL, Dimension.LINE_ITEM}),
    )


def _used(row: Row) -> Used:
    return Used(
        group=Group(
            bucket=row["bucket"],
            project_id=row["project_id"],
            api_key_id=row["api_key_id"],
            model=row["model"],
        ),
        sums=Sums(
            requests=int(row["requests"]),
            estimated_requests=int(row["estimated_requests"]),
            input_tokens=int(row["input_tokens"]),
            cached_input_tokens=int(row["cached_input_tokens"]),
            cache_write_tokens=int(row.get("cache_write_tokens", 0)),
            output_tokens=int(row["output_tokens"]),
            images=int(row["images"]),
            input_pico_usd=int(row["input_pico"]),
            cached_input_pico_usd=int(row["cached_input_pico"]),
            cache_write_pico_usd=int(row.get("cache_write_pico", 0)),
            output_pico_usd=int(row["output_pico"]),
            image_pico_usd=int(row["image_pico"]),
            request_pico_usd=int(row["request_pico"]),
        ),
    )


def _instant(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _day(seconds: int) -> date:
    return _instant(seconds).date()


def _days_of(span: ReportSpan) -> tuple[date, date]:
    """Return the first and the last day of a span."""
    return _day(span.start), _day(span.end - 1)
