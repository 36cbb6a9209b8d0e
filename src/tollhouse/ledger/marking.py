"""Mark open holds as unsettled: they stay reserved until they are resolved or due."""

import logging
from collections.abc import Sequence
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.ledger.open_holds import OpenHold, account_locked, by_organization
from tollhouse.storage.database import Database
from tollhouse.storage.errors import LockTimedOut

logger = logging.getLogger("tollhouse.ledger")

_MARK: Final = """
    INSERT INTO unsettled_holds (organization_id, admitted_day, reservation_id, held_pico,
                                 admitted_at, project_id, api_key_id, decide_at)
    SELECT $1, hold.admitted_day, hold.reservation_id, hold.held_pico, hold.admitted_at,
           hold.project_id, hold.api_key_id,
           hold.deadline_at + CASE WHEN hold.bills_without_answer
                                   THEN interval '24 hours' ELSE interval '60 seconds' END
      FROM ledger_find_entries($1, $2, $3, 0) hold
      LEFT JOIN ledger_find_entries($1, $2, $3, 1) resolution ON resolution.item = hold.item
     WHERE resolution.item IS NULL
    ON CONFLICT DO NOTHING
"""


async def mark(database: Database, found: Sequence[OpenHold]) -> bool:
    """Mark holds as unsettled; return False if an account stayed locked and must be retried."""
    is_whole = True
    for organization_id, holds in by_organization(found):
        try:
            marked = await _mark_one(database, organization_id, holds)
        except LockTimedOut:
            is_whole = False
            logger.warning("account_locked", extra={"organization_id": str(organization_id)})
            continue
        if marked:
            logger.warning(
                "holds_unsettled",
                extra={"organization_id": str(organization_id), "count": marked},
            )
    return is_whole


async def _mark_one(
    database: Database, organization_id: OrganizationId, holds: Sequence[OpenHold]
) -> int:
    async with account_locked(database, organization_id) as tx:
        return await tx.execute(
            _MARK,
            organization_id,
            [hold.reservation_id for hold in holds],
            [hold.admitted_day for hold in holds],
        )
