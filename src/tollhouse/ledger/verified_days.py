"""The days of an organization whose entries were verified, and need not be read again.

A day's mark has what only its entries say, and a digest of its cost rows. As long as these rows
have the digest, they stand for the entries. If they change, as by usage that is entered later, the
entries are read again, and so they are once in 30 days.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.base.money import PicoUsd
from tollhouse.storage.database import Transaction

ENDED_AFTER: Final = timedelta(hours=1)
"""How long after its end a day is open: a hold is admitted at most some seconds after its instant,
and one of a process that was paused for longer is found by its amount in the account."""


REREAD_AFTER: Final = timedelta(days=30)
"""After this time one day of an organization at a time is read again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DayMark:
    """What the entries of a day say beyond its cost rows, and the digest of these.

    The digest is None if the day has an open hold, and must be read again.
    """

    day: date
    excess_pico: PicoUsd
    unknown_pico: PicoUsd
    costs_digest: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewMarks:
    """The marks of days that have ended. All days until `complete_until` have one or are empty."""

    days: Sequence[DayMark]
    complete_until: date


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifiedDays:
    """The days whose cost rows stand for their entries, and the amounts that these rows lack."""

    days: Sequence[date]
    other_days: Sequence[date] | None
    """The days whose entries must be read; None means all."""
    excess_pico: PicoUsd
    unknown_pico: PicoUsd


NOTHING_VERIFIED: Final = VerifiedDays(
    days=(), other_days=None, excess_pico=PicoUsd(0), unknown_pico=PicoUsd(0)
)

# Rows without cache writes have the line that they had before the revision with these columns.
_DIGESTS: Final = """
    SELECT day,
           encode(sha256(convert_to(string_agg(line, chr(10) ORDER BY line COLLATE "C"), 'UTF8')),
                  'hex') AS digest
      FROM (SELECT day,
                   concat_ws(' ', 'day', project_id, api_key_id, model, requests,
                             estimated_requests, input_tokens, cached_input_tokens, output_tokens,
                             images, input_pico, cached_input_pico, output_pico, image_pico,
                             request_pico,
                             CASE WHEN (cache_write_tokens, cache_write_pico) <> (0, 0)
                                  THEN concat('writes ', cache_write_tokens, ' ', cache_write_pico)
                                  END) AS line
              FROM cost_daily
             WHERE organization_id = $1
               AND day <= $2
             UNION ALL
            SELECT (hour AT TIME ZONE 'UTC')::date,
                   concat_ws(' ', extract(epoch FROM hour), project_id, api_key_id, model, requests,
                             estimated_requests, input_tokens, cached_input_tokens, output_tokens,
                             images, input_pico, cached_input_pico, output_pico, image_pico,
                             request_pico,
                             CASE WHEN (cache_write_tokens, cache_write_pico) <> (0, 0)
                                  THEN concat('writes ', cache_write_tokens, ' ', cache_write_pico)
                                  END)
              FROM cost_hourly
             WHERE organization_id = $1
               AND hour < ($2::date + 1)::timestamp AT TIME ZONE 'UTC') lines
     WHERE NOT EXISTS (SELECT FROM closed_days WHERE closed_days.day = lines.day)
     GROUP BY day
"""
_COMPLETE_UNTIL: Final = """
    SELECT complete_until
      FROM ledger_verifications
     WHERE organization_id = $1
"""
_MARKS: Final = """
    SELECT day, costs_digest, excess_pico, unknown_pico,
           verified_at < clock_timestamp() - $2::interval
               AND row_number() OVER (ORDER BY verified_at) = 1 AS is_due
      FROM verified_days
     WHERE organization_id = $1
       AND NOT EXISTS (SELECT FROM closed_days WHERE closed_days.day = verified_days.day)
"""
_OPEN_DAYS: Final = """
    SELECT to_date(right(relname, 8), 'YYYYMMDD') AS day
      FROM pg_inherits
      JOIN pg_class ON pg_class.oid = inhrelid
     WHERE inhparent = 'ledger_entries'::regclass
       AND NOT inhdetachpending
       AND relname ~ '_[0-9]{8}$'
"""
_ENDED: Final = """
    SELECT admitted_day AS day,
           sum(excess_pico) AS excess_pico, sum(unknown_pico) AS unknown_pico,
           count(*) FILTER (WHERE phase = 0) = count(*) FILTER (WHERE phase = 1) AS is_resolved
      FROM ledger_entries
     WHERE organization_id = $1
       AND ($2::date[] IS NULL OR admitted_day = ANY($2))
       AND admitted_day <= $3
       AND NOT EXISTS (SELECT FROM closed_days WHERE closed_days.day = admitted_day)
     GROUP BY 1
"""
_LAST_ENDED: Final = """
    SELECT ((clock_timestamp() - $1::interval) AT TIME ZONE 'UTC')::date - 1
"""
_REMEMBER: Final = """
    INSERT INTO verified_days (organization_id, day, excess_pico, unknown_pico, costs_digest)
    SELECT $1::uuid, *
      FROM unnest($2::date[], $3::numeric[], $4::numeric[], $5::text[])
    ON CONFLICT (organization_id, day) DO UPDATE
       SET excess_pico = EXCLUDED.excess_pico, unknown_pico = EXCLUDED.unknown_pico,
           costs_digest = EXCLUDED.costs_digest, verified_at = EXCLUDED.verified_at
"""
_FORGET_CLOSED: Final = """
    DELETE FROM verified_days
     WHERE organization_id = $1
       AND day IN (SELECT day FROM closed_days)
"""


async def still_verified(tx: Transaction, organization_id: OrganizationId) -> VerifiedDays:
    """Return the marked days whose cost rows are as they were, and the days to be read.

    Until `complete_until`, a day without a mark is read only if it has cost rows by now.
    """
    complete_until = await tx.fetch_value(_COMPLETE_UNTIL, organization_id)
    if complete_until is None:
        return NOTHING_VERIFIED
    # A plan for any days would open the partitions of all.
    await tx.execute("SELECT set_config('plan_cache_mode', 'force_custom_plan', true)")
    open_days = {row["day"] for row in await tx.fetch_all(_OPEN_DAYS)}
    digests = await _digests(tx, organization_id, complete_until)
    marks = {row["day"]: row for row in await tx.fetch_all(_MARKS, organization_id, REREAD_AFTER)}
    kept = [
        mark
        for day, mark in marks.items()
        if day in open_days and not mark["is_due"] and mark["costs_digest"] == digests.get(day, "")
    ]
    days = {mark["day"] for mark in kept}
    later = {day for day in open_days if day > complete_until}
    return VerifiedDays(
        days=sorted(days),
        other_days=sorted(later | (digests.keys() | marks.keys()) - days),
        excess_pico=PicoUsd(int(sum(mark["excess_pico"] for mark in kept))),
        unknown_pico=PicoUsd(int(sum(mark["unknown_pico"] for mark in kept))),
    )


async def last_ended(tx: Transaction) -> date:
    """Return the last day that has ended."""
    return await tx.fetch_value(_LAST_ENDED, ENDED_AFTER)


async def ended(
    tx: Transaction, organization_id: OrganizationId, verified: VerifiedDays, last: date
) -> NewMarks:
    """Return the marks of the days beside `verified` until `last`, which has ended."""
    rows = await tx.fetch_all(_ENDED, organization_id, verified.other_days, last)
    digests = await _digests(tx, organization_id, last)
    marks = [
        DayMark(
            day=row["day"],
            excess_pico=PicoUsd(int(row["excess_pico"])),
            unknown_pico=PicoUsd(int(row["unknown_pico"])),
            costs_digest=digests.get(row["day"], "") if row["is_resolved"] else None,
        )
        for row in rows
    ]
    return NewMarks(days=marks, complete_until=last)


async def remember(
    tx: Transaction, organization_id: OrganizationId, days: Sequence[DayMark]
) -> None:
    """Store marks, and remove those of closed days."""
    await tx.execute(
        _REMEMBER,
        organization_id,
        [each.day for each in days],
        [each.excess_pico for each in days],
        [each.unknown_pico for each in days],
        [each.costs_digest for each in days],
    )
    await tx.execute(_FORGET_CLOSED, organization_id)


async def _digests(
    tx: Transaction, organization_id: OrganizationId, until: date
) -> dict[date, str]:
    rows = await tx.fetch_all(_DIGESTS, organization_id, until)
    return {row["day"]: row["digest"] for row in rows}
