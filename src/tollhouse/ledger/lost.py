"""What a restored ledger has forgotten, by the request lines of a log that survived."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from tollhouse.base.ids import OrganizationId, RequestId
from tollhouse.storage.database import Transaction

SETTLING: Final = timedelta(minutes=10)
"""How long before its loss a request may have been logged: settlement follows the answer."""


async def charged(
    tx: Transaction,
    organization_id: OrganizationId,
    request_ids: Sequence[RequestId],
    *,
    since: datetime,
) -> set[RequestId]:
    """Return the requests that are resolved, if they began a day before `since` or later."""
    rows = await tx.fetch_all(
        """
        SELECT reservation_id
          FROM ledger_entries
         WHERE organization_id = $1
           AND admitted_day >= ($3::timestamptz AT TIME ZONE 'UTC')::date - 1
           AND reservation_id = ANY($2)
           AND phase = 1
        """,
        organization_id,
        list(request_ids),
        since,
    )
    return {RequestId(row["reservation_id"]) for row in rows}


async def last_admission(
    tx: Transaction, organization_id: OrganizationId, *, since: datetime
) -> datetime | None:
    """Return when the newest request was admitted, or None if that was a day before `since`."""
    return await tx.fetch_value(
        """
        SELECT admitted_at
          FROM ledger_entries
         WHERE organization_id = $1
           AND admitted_day >= ($2::timestamptz AT TIME ZONE 'UTC')::date - 1
         ORDER BY admitted_day DESC, reservation_id DESC
         LIMIT 1
        """,
        organization_id,
        since,
    )
