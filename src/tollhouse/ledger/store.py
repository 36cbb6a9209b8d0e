"""Queries of credit and caps, outside the inference path.

A caller that changes them calls `lock_account` first: the lock is a statement of its own, so that
later reads see the last committed state.
"""

from datetime import date, datetime, timedelta

from tollhouse.base.ids import GrantId, OrganizationId
from tollhouse.base.money import PicoUsd
from tollhouse.ledger.overview import credit_of
from tollhouse.ledger.types import (
    CREDIT_ALERT_PERCENT,
    Cap,
    CapId,
    CapScope,
    CapUse,
    Credit,
    Grant,
    GrantKind,
    Period,
    to_pico_usd,
)
from tollhouse.storage.database import Mutation, Row, Transaction


async def lock_account(tx: Mutation, organization_id: OrganizationId) -> None:
    """Lock the account against admissions, settlements and other changes until the commit."""
    await tx.execute(
        "SELECT 1 FROM accounts WHERE organization_id = $1 FOR UPDATE", organization_id
    )


async def get_credit(tx: Transaction, organization_id: OrganizationId) -> Credit | None:
    """Return the account, or None if there is none."""
    row = await tx.fetch_one(
        """
        SELECT a.organization_id, a.credit_pico, a.settled_pico, a.reserved_pico,
               a.written_off_excess_pico, a.written_off_unknown_pico, u.requests, u.held_pico
          FROM accounts a
         CROSS JOIN LATERAL (
                SELECT count(*) AS requests, coalesce(sum(h.held_pico), 0) AS held_pico
                  FROM unsettled_holds h
                 WHERE h.organization_id = a.organization_id) u
         WHERE a.organization_id = $1
        """,
        organization_id,
    )
    return None if row is None else credit_of(row)


async def insert_grant(tx: Mutation, grant: Grant) -> None:
    """Insert a grant. `add_credit` changes the account."""
    await tx.execute(
        """
        INSERT INTO credit_grants (organization_id, id, kind, amount_pico, reason,
                                   actor_type, actor_id, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        grant.organization_id,
        grant.id,
        grant.kind,
        grant.amount_pico_usd,
        grant.reason,
        grant.actor_type,
        grant.actor_id,
        grant.created_at,
    )


async def add_credit(tx: Mutation, organization_id: OrganizationId, amount: PicoUsd) -> None:
    """Change the credit; insert an alert if the settled share of it newly reaches 80 percent."""
    await tx.execute(
        """
        WITH changed AS (
            UPDATE accounts a
               SET credit_pico = a.credit_pico + $2,
                   ceiling_pico = greatest(a.credit_pico + $2, a.settled_pico + a.reserved_pico),
                   is_alerted = a.settled_pico > 0
                       AND a.settled_pico * 100 >= (a.credit_pico + $2) * $3
              FROM accounts before
             WHERE a.organization_id = $1
               AND before.organization_id = a.organization_id
            RETURNING a.organization_id, a.is_alerted AND NOT before.is_alerted AS rings
        )
        INSERT INTO spending_alerts (organization_id, scope, scope_id, window_start)
        SELECT organization_id, 'credit', organization_id, '-infinity'
          FROM changed
         WHERE rings
        """,
        organization_id,
        amount,
        CREDIT_ALERT_PERCENT,
    )


async def get_grant(
    tx: Transaction, organization_id: OrganizationId, grant_id: GrantId
) -> Grant | None:
    """Return one grant of the organization, or None."""
    row = await tx.fetch_one(
        """
        SELECT organization_id, id, kind, amount_pico, reason, actor_type, actor_id, created_at
          FROM credit_grants
         WHERE organization_id = $1
           AND id = $2
        """,
        organization_id,
        grant_id,
    )
    return None if row is None else _grant(row)


async def page_grants(
    tx: Transaction, organization_id: OrganizationId, *, after: GrantId | None, limit: int
) -> list[Grant]:
    """Return grants, newest first."""
    rows = await tx.fetch_all(
        """
        SELECT organization_id, id, kind, amount_pico, reason, actor_type, actor_id, created_at
          FROM credit_grants
         WHERE organization_id = $1
           AND ($2::uuid IS NULL OR id < $2)
         ORDER BY id DESC
         LIMIT $3
        """,
        organization_id,
        after,
        limit,
    )
    return [_grant(row) for row in rows]


async def has_scope(tx: Transaction, organization_id: OrganizationId, place: CapId) -> bool:
    """Return whether the scope of a cap exists in the organization."""
    return await tx.fetch_value(
        """
        SELECT CASE $2::text
               WHEN 'organization' THEN $1::uuid = $3::uuid
               WHEN 'project' THEN EXISTS (
                    SELECT FROM projects WHERE organization_id = $1 AND id = $3)
               WHEN 'api_key' THEN EXISTS (
                    SELECT FROM project_keys WHERE organization_id = $1 AND id = $3)
               END
        """,
        organization_id,
        place.scope,
        place.scope_id,
    )


async def get_cap(
    tx: Transaction, organization_id: OrganizationId, place: CapId, *, now: datetime
) -> CapUse | None:
    """Return a cap with its use in the window of `now`, or None if it is not set."""
    row = await tx.fetch_one(
        """
        SELECT cap.organization_id, cap.scope, cap.scope_id, cap.period, cap.limit_pico,
               cap.alert_percent, counter.settled_pico, counter.reserved_pico,
               counter.short_start, counter.short_settled_pico, counter.short_reserved_pico,
               counter.previous_settled_pico, counter.previous_reserved_pico
          FROM spending_caps cap
          LEFT JOIN spending_counters counter
            ON counter.organization_id = cap.organization_id
           AND counter.scope = cap.scope
           AND counter.scope_id = cap.scope_id
           AND counter.window_start = $5
         WHERE cap.organization_id = $1
           AND cap.scope = $2
           AND cap.scope_id = $3
           AND cap.period = $4
        """,
        organization_id,
        place.scope,
        place.scope_id,
        place.period,
        place.period.counter_period.window_start(now.date()),
    )
    return None if row is None else _cap_use(row, now.date())


async def page_caps(
    tx: Transaction,
    organization_id: OrganizationId,
    *,
    now: datetime,
    after: CapId | None,
    limit: int,
) -> list[CapUse]:
    """Return caps ordered by scope, each with its use in the window of `now`."""
    rows = await tx.fetch_all(
        """
        SELECT cap.organization_id, cap.scope, cap.scope_id, cap.period, cap.limit_pico,
               cap.alert_percent, counter.settled_pico, counter.reserved_pico,
               counter.short_start, counter.short_settled_pico, counter.short_reserved_pico,
               counter.previous_settled_pico, counter.previous_reserved_pico
          FROM spending_caps cap
          LEFT JOIN spending_counters counter
            ON counter.organization_id = cap.organization_id
           AND counter.scope = cap.scope
           AND counter.scope_id = cap.scope_id
           AND counter.window_start = CASE
               WHEN cap.period IN ('week', 'lifetime') THEN $2::date ELSE $3 END
         WHERE cap.organization_id = $1
           AND ($4::text IS NULL OR (cap.scope, cap.scope_id, cap.period) > ($4, $5::uuid, $6))
         ORDER BY cap.scope, cap.scope_id, cap.period
         LIMIT $7
        """,
        organization_id,
        Period.LIFETIME.window_start(now.date()),
        Period.MONTH.window_start(now.date()),
        None if after is None else after.scope,
        None if after is None else after.scope_id,
        None if after is None else after.period,
        limit,
    )
    return [_cap_use(row, now.date()) for row in rows]


async def save_cap(tx: Mutation, cap: Cap) -> None:
    """Insert or update the cap. `cap_counters` copies it into its counters."""
    await tx.execute(
        """
        INSERT INTO spending_caps (organization_id, scope, scope_id, period,
                                   limit_pico, alert_percent)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (organization_id, scope, scope_id, period) DO UPDATE
           SET limit_pico = EXCLUDED.limit_pico, alert_percent = EXCLUDED.alert_percent
        """,
        cap.organization_id,
        cap.scope,
        cap.scope_id,
        cap.period,
        cap.limit_pico_usd,
        cap.alert_percent,
    )


async def cap_counters(tx: Mutation, cap: Cap, *, today: date) -> None:
    """Copy the cap into its counters; insert an alert if today's newly reaches its alert amount."""
    await tx.execute(
        """
        WITH changed AS (
            UPDATE spending_counters c
               SET limit_pico = $5,
                   ceiling_pico = greatest($5, c.settled_pico + c.reserved_pico),
                   alert_pico = $6,
                   is_alerted = c.settled_pico >= $6
              FROM spending_counters before
             WHERE c.organization_id = $1
               AND c.scope = $2
               AND c.scope_id = $3
               AND (c.window_start = '-infinity') = ($4 = 'lifetime')
               AND before.organization_id = c.organization_id
               AND before.scope = c.scope
               AND before.scope_id = c.scope_id
               AND before.window_start = c.window_start
            RETURNING c.window_start, c.is_alerted AND NOT before.is_alerted AS rings
        )
        INSERT INTO spending_alerts (organization_id, scope, scope_id, window_start)
        SELECT $1, $2, $3, window_start
          FROM changed
         WHERE rings
           AND window_start = $7
        """,
        cap.organization_id,
        cap.scope,
        cap.scope_id,
        cap.period,
        cap.limit_pico_usd,
        cap.alert_pico_usd,
        cap.period.window_start(today),
    )


async def delete_cap(tx: Mutation, organization_id: OrganizationId, place: CapId) -> None:
    """Delete the cap. `uncap_counters` removes it from its counters."""
    await tx.execute(
        """
        DELETE FROM spending_caps
         WHERE organization_id = $1
           AND scope = $2
           AND scope_id = $3
           AND period = $4
        """,
        organization_id,
        place.scope,
        place.scope_id,
        place.period,
    )


async def uncap_counters(tx: Mutation, organization_id: OrganizationId, place: CapId) -> None:
    """Remove the cap from its counters, which go on counting."""
    await tx.execute(
        """
        UPDATE spending_counters
           SET limit_pico = NULL, ceiling_pico = NULL, alert_pico = NULL, is_alerted = false
         WHERE organization_id = $1
           AND scope = $2
           AND scope_id = $3
           AND (window_start = '-infinity') = ($4 = 'lifetime')
        """,
        organization_id,
        place.scope,
        place.scope_id,
        place.period,
    )


async def find_prices(tx: Transaction, digest: bytes) -> int | None:  # all organizations: one list
    """Return the ID of a stored price list, or None."""
    return await tx.fetch_value("SELECT id FROM price_revisions WHERE digest = $1", digest)


async def insert_prices(  # all organizations: they share one list of prices
    tx: Transaction, digest: bytes, prices: str
) -> int | None:
    """Insert a price list and return its ID, or None if another worker inserted it first."""
    return await tx.fetch_value(
        """
        INSERT INTO price_revisions (digest, prices)
        VALUES ($1, $2)
        ON CONFLICT (digest) DO NOTHING
        RETURNING id
        """,
        digest,
        prices,
    )


def _grant(row: Row) -> Grant:
    return Grant(
        organization_id=OrganizationId(row["organization_id"]),
        id=GrantId(row["id"]),
        kind=GrantKind(row["kind"]),
        amount_pico_usd=to_pico_usd(row["amount_pico"]),
        reason=row["reason"],
        actor_type=row["actor_type"],
        actor_id=row["actor_id"],
        created_at=row["created_at"],
    )


def _cap_use(row: Row, day: date) -> CapUse:
    """Return the cap of a row with its use, which is zero if its window has no counter yet."""
    period = Period(row["period"])
    prefix: str | None = ""
    if period.short_days is not None:
        start = period.window_start(day)
        prefixes = {start: "short_", start + timedelta(days=period.short_days): "previous_"}
        prefix = prefixes.get(row["short_start"])
    settled, reserved = (
        (row[f"{prefix}settled_pico"], row[f"{prefix}reserved_pico"])
        if prefix is not None
        else (None, None)
    )
    return CapUse(
        cap=Cap(
            organization_id=OrganizationId(row["organization_id"]),
            scope=CapScope(row["scope"]),
            scope_id=row["scope_id"],
            period=period,
            limit_pico_usd=to_pico_usd(row["limit_pico"]),
            alert_percent=row["alert_percent"],
        ),
        settled_pico_usd=to_pico_usd(settled or 0),
        reserved_pico_usd=to_pico_usd(reserved or 0),
    )
