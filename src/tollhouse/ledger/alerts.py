"""Log and count spending alerts, which are a queue of rows: inserted when raised, then removed."""

import logging

from tollhouse.ledger.types import LIFETIME_START
from tollhouse.observability import metrics
from tollhouse.storage.database import Database, Row, Transaction

logger = logging.getLogger("tollhouse.ledger")

BATCH_MAX = 100


async def notice(database: Database) -> None:
    """Log, count and remove all alerts that were not logged before, oldest first."""
    is_full = True
    while is_full:
        async with database.transaction() as tx:
            is_full = await _notice_some(tx) == BATCH_MAX


async def _notice_some(tx: Transaction) -> int:  # all organizations: one job logs for all
    """Log one batch and return its size. Logs before the commit: rather twice than never."""
    rows = await tx.fetch_all(
        """
        DELETE FROM spending_alerts
         WHERE id = ANY (ARRAY (
                SELECT id
                  FROM spending_alerts
                 WHERE noticed_at IS NULL
                 ORDER BY id
                 LIMIT $1
                   FOR UPDATE SKIP LOCKED))
        RETURNING id, organization_id, scope, scope_id, window_start, period
        """,
        BATCH_MAX,
    )
    for row in sorted(rows, key=lambda row: row["id"]):
        _tell(row)
    return len(rows)


def _tell(row: Row) -> None:
    start = row["window_start"]
    long = "lifetime" if start == LIFETIME_START else "month"
    metrics.spending_alerted(row["scope"])
    logger.warning(
        "spending_alert",
        extra={
            "organization_id": str(row["organization_id"]),
            "scope": row["scope"],
            "scope_id": str(row["scope_id"]),
            "period": row["period"] or long,
            "window": "lifetime" if start == LIFETIME_START else str(start),
        },
    )
