"""The money of many organizations, for the operator's list."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tollhouse.base.ids import OrganizationId
from tollhouse.base.money import PicoUsd
from tollhouse.ledger.types import Credit, Period, to_pico_usd
from tollhouse.storage.database import Row, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class OrganizationMoney:
    """An organization's account, what it spent this month, and when it last spent anything."""

    credit: Credit
    month_pico_usd: PicoUsd
    last_charged_at: datetime | None
    """The hour of the newest request that was charged. None if no report has one."""


async def money_of(  # all organizations: the operator's list
    tx: Transaction, organization_ids: Sequence[OrganizationId], *, now: datetime
) -> dict[OrganizationId, OrganizationMoney]:
    """Return the money of these organizations, each found by its key in a few index reads."""
    rows = await tx.fetch_all(
        """
        SELECT a.organization_id, a.credit_pico, a.settled_pico, a.reserved_pico,
               a.written_off_excess_pico, a.written_off_unknown_pico,
               u.requests, u.held_pico, coalesce(m.settled_pico, 0) AS month_pico, h.hour
          FROM unnest($1::uuid[]) AS o (id)
         CROSS JOIN LATERAL (
                SELECT * FROM accounts x WHERE x.organization_id = o.id LIMIT 1) a
         CROSS JOIN LATERAL (
                SELECT count(*) AS requests, coalesce(sum(x.held_pico), 0) AS held_pico
                  FROM unsettled_holds x
                 WHERE x.organization_id = o.id) u
          LEFT JOIN LATERAL (
                SELECT x.settled_pico
                  FROM spending_counters x
                 WHERE x.organization_id = o.id
                   AND x.scope = 'organization'
                   AND x.scope_id = o.id
                   AND x.window_start = $2
                 LIMIT 1) m ON true
          LEFT JOIN LATERAL (
                SELECT x.hour
                  FROM cost_hourly x
                 WHERE x.organization_id = o.id
                 ORDER BY x.hour DESC
                 LIMIT 1) h ON true
        """,
        organization_ids,
        Period.MONTH.window_start(now.date()),
    )
    return {
        OrganizationId(row["organization_id"]): OrganizationMoney(
            credit=credit_of(row),
            month_pico_usd=PicoUsd(int(row["month_pico"])),
            last_charged_at=row["hour"],
        )
        for row in rows
    }


def credit_of(row: Row) -> Credit:
    """Return the account in a row, with its unsettled holds as `held_pico` and `requests`."""
    return Credit(
        organization_id=OrganizationId(row["organization_id"]),
        granted_pico_usd=to_pico_usd(row["credit_pico"]),
        settled_pico_usd=to_pico_usd(row["settled_pico"]),
        reserved_pico_usd=to_pico_usd(row["reserved_pico"]),
        unsettled_pico_usd=to_pico_usd(row["held_pico"]),
        unsettled_requests=row["requests"],
        written_off_excess_pico_usd=to_pico_usd(row["written_off_excess_pico"]),
        written_off_unknown_pico_usd=to_pico_usd(row["written_off_unknown_pico"]),
    )
