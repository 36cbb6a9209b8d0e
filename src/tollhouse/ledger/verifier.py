"""The continuous verification of all organizations, in turn, beside the traffic."""

import logging
import time
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from tollhouse.base.ids import OrganizationId
from tollhouse.ledger import verification, verified_days
from tollhouse.ledger.verification import Verification
from tollhouse.observability import ledger_metrics
from tollhouse.storage.database import Database, Transaction
from tollhouse.storage.replica import ReplicaReads

logger = logging.getLogger("tollhouse.ledger")

VERIFY_EVERY: Final = timedelta(minutes=1)
WORK_MAX: Final = timedelta(seconds=6)
"""How long one run works: a tenth of the time. The last organization of a run is finished."""
SHOW_EVERY: Final = timedelta(seconds=30)
VERIFIED_AGAIN_AFTER: Final = timedelta(minutes=15)
ORGANIZATIONS_MAX: Final = 1000
LOGGED_MAX: Final = 20

_DUE: Final = """
    SELECT accounts.organization_id
      FROM accounts
      LEFT JOIN ledger_verifications last USING (organization_id)
     WHERE last.verified_at IS NULL
        OR last.verified_at < clock_timestamp() - $1::interval
     ORDER BY last.verified_at NULLS FIRST
     LIMIT $2
"""
_RECORD: Final = """
    INSERT INTO ledger_verifications (organization_id, verified_at, differences)
    VALUES ($1, $2, $3)
    ON CONFLICT (organization_id) DO UPDATE
       SET verified_at = EXCLUDED.verified_at, differences = EXCLUDED.differences
"""
_STATE: Final = """
    SELECT (SELECT count(*) FROM ledger_verifications WHERE differences > 0) AS differing,
           (SELECT clock_timestamp() - min(verified_at) FROM ledger_verifications) AS oldest_age
"""


class VerificationState(Struct, frozen=True, kw_only=True):
    """What the continuous verification has found so far."""

    differing_organizations: int
    oldest_age: timedelta | None
    """The age of the oldest verification; None before the first."""


class Verifier:
    """Verifies the organization whose verification is the oldest, again and again."""

    def __init__(self, database: Database, reads: ReplicaReads) -> None:
        self._database = database
        self._reads = reads

    async def run(self) -> None:
        """Verify the organizations that are due, for a bounded time."""
        began_seconds = time.monotonic()
        for organization_id in await self._due():
            await self.verify(organization_id)
            if time.monotonic() - began_seconds >= WORK_MAX.total_seconds():
                return

    async def verify(self, organization_id: OrganizationId) -> Verification:
        """Verify one organization, and store the result.

        A standby may be late, so only the primary can tell that something differs.
        """
        verified_at = await self._now()
        found = await self._reads.run(
            lambda database: verification.verify_new(database, organization_id)
        )
        if found.differences:
            found = await verification.verify_new(self._database, organization_id)
        async with self._database.transaction() as tx:
            await tx.execute(_RECORD, organization_id, verified_at, len(found.differences))
            await verified_days.remember(tx, organization_id, found.new_days)
        _log(found)
        return found

    async def show(self) -> None:
        """Set the metrics. Every worker does, because another one may have verified."""
        async with self._database.transaction() as tx:
            found = await state(tx)
        if found is not None and found.oldest_age is not None:
            ledger_metrics.verified(
                differing_organizations=found.differing_organizations,
                oldest_seconds=found.oldest_age.total_seconds(),
            )

    async def _due(self) -> list[OrganizationId]:
        rows = await self._database.fetch_all(_DUE, VERIFIED_AGAIN_AFTER, ORGANIZATIONS_MAX)
        return [OrganizationId(row["organization_id"]) for row in rows]

    async def _now(self) -> datetime:
        rows = await self._database.fetch_all("SELECT clock_timestamp() AS now")
        return rows[0]["now"]


async def state(tx: Transaction) -> VerificationState | None:
    """Return what was found so far, or None on a schema without verifications."""
    if not await tx.fetch_value("SELECT to_regclass('ledger_verifications') IS NOT NULL"):
        return None
    (row,) = await tx.fetch_all(_STATE)
    return VerificationState(differing_organizations=row["differing"], oldest_age=row["oldest_age"])


def _log(found: Verification) -> None:
    for difference in found.differences[:LOGGED_MAX]:
        extra = {
            "organization_id": str(difference.organization_id),
            "check": difference.name,
            "subject": difference.subject,
            "expected": difference.expected,
            "found": difference.found,
        }
        logger.error("ledger_differs", extra=extra)
