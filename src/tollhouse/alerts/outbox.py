"""The outbox in SQL, as the jobs of workers use it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from tollhouse.alerts.rows import to_claimed
from tollhouse.alerts.types import ClaimedDelivery, DeliveryAttempt, DeliveryState
from tollhouse.base.ids import AlertDeliveryId, OrganizationId
from tollhouse.storage.database import Transaction

_CLAIM: Final = """
    WITH due AS (
        SELECT d.organization_id, d.id, h.attempts AS made,
               row_number() OVER (PARTITION BY d.organization_id
                                  ORDER BY d.attempts > 0, d.next_attempt_at, d.id) AS place
          FROM alert_deliveries d
          JOIN alert_hours h USING (organization_id)
         WHERE d.organization_id = ANY ($5::uuid[])
           AND d.state = 'pending'
           AND d.next_attempt_at <= clock_timestamp()
    ), claimed AS (
        SELECT d.organization_id, d.id
          FROM due
          JOIN alert_deliveries d USING (organization_id, id)
         WHERE due.place <= $2
           AND due.made + due.place <= CASE d.attempts WHEN 0 THEN $4 ELSE ($4 + 1) / 2 END
           AND d.state = 'pending'
           AND d.next_attempt_at <= clock_timestamp()
         ORDER BY due.place, d.next_attempt_at
         LIMIT $1
           FOR UPDATE OF d SKIP LOCKED
    ), attempted AS (
        UPDATE alert_deliveries d
           SET attempts = d.attempts + 1, last_attempt_at = clock_timestamp(),
               next_attempt_at = clock_timestamp() + make_interval(secs => $3)
          FROM claimed
          JOIN alert_subscriptions s USING (organization_id)
         WHERE d.organization_id = claimed.organization_id
           AND d.id = claimed.id
           AND s.id = d.subscription_id
        RETURNING d.*, s.url, s.emails, s.secret,
                  CASE WHEN s.previous_secret_until > clock_timestamp()
                       THEN s.previous_secret END AS previous_secret
    ), counted AS (
        UPDATE alert_hours h
           SET attempts = h.attempts + sums.attempts
          FROM (SELECT organization_id, count(*) AS attempts
                  FROM attempted
                 GROUP BY organization_id) sums
         WHERE h.organization_id = sums.organization_id
    )
    SELECT * FROM attempted
"""


async def look(  # all organizations: one worker looks for all
    tx: Transaction, after: OrganizationId | None, *, limit: int
) -> OrganizationId | None:
    """Raise what the next organizations have reached; return the last of them, None at the end."""
    rows = await tx.fetch_all(
        """
        SELECT DISTINCT organization_id
          FROM alert_subscriptions
         WHERE $1::uuid IS NULL OR organization_id > $1
         ORDER BY 1
         LIMIT $2
        """,
        after,
        limit,
    )
    found = [OrganizationId(row["organization_id"]) for row in rows]
    await tx.execute("SELECT alert_look($1)", found)
    return found[-1] if len(found) == limit else None


async def raise_backend_down(  # all organizations: the operator's are few
    tx: Transaction, backend: str
) -> int:
    """Raise this hour's alert about a backend for each subscription; return how many are new."""
    return await tx.execute(
        """
        INSERT INTO alert_deliveries
               (organization_id, id, subscription_id, type, dedup_key, details)
        SELECT organization_id, alert_id(), id, 'backend.down',
               concat_ws(' ', 'backend', date_trunc('hour', clock_timestamp(), 'UTC'), $1::text),
               jsonb_build_object('backend', $1::text)
          FROM alert_subscriptions
         WHERE backend_down
        ON CONFLICT DO NOTHING
        """,
        backend,
    )


async def lock_hours(  # all organizations: one worker delivers for all
    tx: Transaction,
) -> list[OrganizationId]:
    """Lock the count of attempts of each organization with due alerts; begin one for a new hour.

    Until the transaction ends, no other worker claims alerts of these organizations.
    """
    rows = await tx.fetch_all(
        """
        INSERT INTO alert_hours AS h (organization_id, attempts, hour)
        SELECT organization_id, 0, date_trunc('hour', clock_timestamp(), 'UTC')
          FROM alert_deliveries
         WHERE state = 'pending'
           AND next_attempt_at <= clock_timestamp()
         GROUP BY organization_id
         ORDER BY organization_id
        ON CONFLICT (organization_id) DO UPDATE
           SET attempts = CASE WHEN h.hour = date_trunc('hour', clock_timestamp(), 'UTC')
                               THEN h.attempts ELSE 0 END,
               hour = date_trunc('hour', clock_timestamp(), 'UTC')
        RETURNING organization_id
        """
    )
    return [OrganizationId(row["organization_id"]) for row in rows]


async def claim(  # all organizations: one worker delivers for all
    tx: Transaction,
    locked: Sequence[OrganizationId],
    *,
    deliveries_max: int,
    per_organization_max: int,
    per_hour_max: int,
    seconds: float,
) -> list[ClaimedDelivery]:
    """Return deliveries to attempt now. Until `seconds` are over, no worker gets them again.

    First attempts come before others, which use at most half of `per_hour_max`: destinations that
    do not answer leave room for new alerts.
    """
    rows = await tx.fetch_all(
        _CLAIM,
        deliveries_max,
        per_organization_max,
        seconds,
        per_hour_max,
        locked,
    )
    return [to_claimed(row) for row in rows]


async def withhold(  # all organizations: one worker delivers for all
    tx: Transaction,
    locked: Sequence[OrganizationId],
    *,
    per_hour_max: int,
    rows_max: int,
    reason: str,
) -> dict[OrganizationId, int]:
    """Withhold new alerts of organizations without attempts left; return how many of each."""
    rows = await tx.fetch_all(
        """
        WITH withheld AS (
            UPDATE alert_deliveries
               SET state = 'withheld', last_error = $4
             WHERE (organization_id, id) IN (
                    SELECT d.organization_id, d.id
                      FROM alert_deliveries d
                      JOIN alert_hours h USING (organization_id)
                     WHERE d.organization_id = ANY ($1::uuid[])
                       AND h.attempts >= $2
                       AND d.state = 'pending'
                       AND d.attempts = 0
                       AND d.next_attempt_at <= clock_timestamp()
                     LIMIT $3
                       FOR UPDATE OF d SKIP LOCKED)
            RETURNING organization_id
        )
        SELECT organization_id, count(*) AS alerts FROM withheld GROUP BY organization_id
        """,
        locked,
        per_hour_max,
        rows_max,
        reason,
    )
    return {OrganizationId(row["organization_id"]): row["alerts"] for row in rows}


async def finish(
    tx: Transaction,
    organization_id: OrganizationId,
    delivery_id: AlertDeliveryId,
    *,
    state: DeliveryState,
    attempt: DeliveryAttempt,
    retry_after: timedelta,
) -> None:
    """Record the outcome of an attempt. A delivered alert stays delivered."""
    await tx.execute(
        """
        UPDATE alert_deliveries
           SET state = $3, last_status = $4, last_error = $5,
               next_attempt_at = clock_timestamp() + $6
         WHERE organization_id = $1
           AND id = $2
           AND state = 'pending'
        """,
        organization_id,
        delivery_id,
        state,
        attempt.status,
        attempt.error,
        retry_after,
    )


async def purge(  # all organizations: by age
    tx: Transaction, *, days: int, rows_max: int
) -> int:
    """Delete deliveries that were raised before that many days; return how many."""
    return await tx.execute(
        """
        DELETE FROM alert_deliveries
         WHERE (organization_id, id) IN (
                SELECT organization_id, id
                  FROM alert_deliveries
                 WHERE raised_at < clock_timestamp() - make_interval(days => $1)
                 ORDER BY raised_at
                 LIMIT $2)
        """,
        days,
        rows_max,
    )
