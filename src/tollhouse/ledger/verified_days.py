"""The days of an organization whose entries were verified, and need not be read again.

A day's mark has what only its entries say, and a digest of its cost rows. As long as these rows
have the digest, they stand for the entries. If they change, as by usage that is entered later, the
entries are read again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.base.money import PicoUsd
from tollhouse.storage.database import Transaction

REVISION: Final = "0021"
ENDED_AFTER: Final = timedelta(hours=1)
"""How long after its end a day is open: a hold is admitted at most some seconds after its instant,
and one of a process that was paused for longer is found by its amount in the account."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DayMark:
    """What the entries of a verified day say beyond its cost rows, and the digest of these."""

    day: date
    entries: int
    excess_pico: PicoUsd
    unknown_pico: PicoUsd
    costs_digest: str


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

_DIGESTS: Final = """
    SELECT day,
           encode(sha256(convert_to(string_agg(line, chr(10) ORDER BY line COLLATE "C"), 'UTF8')),
                  'hex') AS digest
      FROM (SELECT day,
                   concat_ws(' ', 'day', project_id, api_key_id, model, requests,
                             estimated_requests, input_tokens, cached_input_tokens, output_tokens,
                             images, input_pico, cached_input_pico, output_pico, image_pico,
                             request_pico) AS line
              FROM cost_daily
             WHERE organization_id = $1
               AND day = ANY($2::date[])
             UNION ALL
            SELECT (hour AT TIME ZONE 'UTC')::date,
                   concat_ws(' ', extract(epoch FROM hour), project_id, api_key_id, model, requests,
                             estimated_requests, input_tokens, cached_input_tokens, output_tokens,
                             images, input_pico, cached_input_pico, output_pico, image_pico,
                             request_pico)
              FROM cost_hourly
             WHERE organization_id = $1
               AND (hour AT TIME ZONE 'UTC')::date = ANY($2)) lines
     GROUP BY day
"""
_MARKS: Final = """
    SELECT day, costs_digest, excess_pico, unknown_pico
      FROM verified_days
     WHERE organization_id = $1
       AND NOT EXISTS (SELECT FROM closed_days WHERE closed_days.day = verified_days.day)
     ORDER BY day
"""
_OPEN_DAYS: Final = """
    SELECT to_date(right(inhrelid::regclass::text, 8), 'YYYYMMDD') AS day
      FROM pg_inherits
     WHERE inhparent = 'ledger_entries'::regclass
       AND NOT inhdetachpending
     ORDER BY 1
"""
_ENDED: Final = """
    SELECT admitted_day AS day, count(*) AS entries,
           sum(excess_pico) AS excess_pico, sum(unknown_pico) AS unknown_pico
      FROM ledger_entries
     WHERE organization_id = $1
       AND ($2::date[] IS NULL OR admitted_day = ANY($2))
       AND admitted_day < ((clock_timestamp() - $3::interval) AT TIME ZONE 'UTC')::date
       AND NOT EXISTS (SELECT FROM closed_days WHERE closed_days.day = admitted_day)
     GROUP BY 1
    HAVING count(*) FILTER (WHERE phase = 0) = count(*) FILTER (WHERE phase = 1)
     ORDER BY 1
"""
_REMEMBER: Final = """
    INSERT INTO verified_days AS mark (
        organization_id, day, entries, excess_pico, unknown_pico, costs_digest)
    SELECT $1::uuid, *
      FROM unnest($2::date[], $3::bigint[], $4::numeric[], $5::numeric[], $6::text[])
    ON CONFLICT (organization_id, day) DO UPDATE
       SET entries = EXCLUDED.entries, excess_pico = EXCLUDED.excess_pico,
           unknown_pico = EXCLUDED.unknown_pico, costs_digest = EXCLUDED.costs_digest,
           verified_at = EXCLUDED.verified_at
"""
_FORGET_CLOSED: Final = """
    DELETE FROM verified_days
     WHERE organization_id = $1
       AND day IN (SELECT day FROM closed_days)
"""


async def still_verified(tx: Transaction, organization_id: OrganizationId) -> VerifiedDays:
    """Return the marked days whose cost rows are as they were."""
    if not await tx.fetch_value("SELECT to_regclass('verified_days') IS NOT NULL"):
        return NOTHING_VERIFIED
    # A plan for any days would open the partitions of all.
    await tx.execute("SELECT set_config('plan_cache_mode', 'force_custom_plan', true)")
    marks = await tx.fetch_all(_MARKS, organization_id)
    digests = await _digests(tx, organization_id, [mark["day"] for mark in marks])
    kept = [mark for mark in marks if mark["costs_digest"] == digests.get(mark["day"], "")]
    days = [mark["day"] for mark in kept]
    open_days = await tx.fetch_all(_OPEN_DAYS)
    return VerifiedDays(
        days=days,
        other_days=sorted({row["day"] for row in open_days} - set(days)),
        excess_pico=PicoUsd(int(sum(mark["excess_pico"] for mark in kept))),
        unknown_pico=PicoUsd(int(sum(mark["unknown_pico"] for mark in kept))),
    )


async def ended(
    tx: Transaction, organization_id: OrganizationId, verified: VerifiedDays
) -> list[DayMark]:
    """Return the marks of days beside `verified` that have ended and have no open hold."""
    rows = await tx.fetch_all(_ENDED, organization_id, verified.other_days, ENDED_AFTER)
    digests = await _digests(tx, organization_id, [row["day"] for row in rows])
    return [
        DayMark(
            day=row["day"],
            entries=row["entries"],
            excess_pico=PicoUsd(int(row["excess_pico"])),
            unknown_pico=PicoUsd(int(row["unknown_pico"])),
            costs_digest=digests.get(row["day"], ""),
        )
        for row in rows
    ]


async def remember(
    tx: Transaction, organization_id: OrganizationId, days: Sequence[DayMark]
) -> None:
    """Mark days as verified, and remove the marks of closed days."""
    await tx.execute(
        _REMEMBER,
        organization_id,
        [each.day for each in days],
        [each.entries for each in days],
        [each.excess_pico for each in days],
        [each.unknown_pico for each in days],
        [each.costs_digest for each in days],
    )
    await tx.execute(_FORGET_CLOSED, organization_id)


async def _digests(
    tx: Transaction, organization_id: OrganizationId, days: Sequence[date]
) -> dict[date, str]:
    rows = await tx.fetch_all(_DIGESTS, organization_id, days)
    return {row["day"]: row["digest"] for row in rows}
