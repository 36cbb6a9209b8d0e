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
from tollhouse.storage.errors import StatementFailed
from tollhouse.storage.replica import ReportReads

logger = logging.getLogger("tollhouse.ledger")

VERIFY_EVERY: Final = timedelta(minutes=1)
WORK_MAX: Final = timedelta(seconds=6)
"""How long one run works: a tenth of the time. The last organization of a run is finished."""
SHOW_EVERY: Final = timedelta(minutes=1)
VERIFIED_AGAIN_AFTER: Final = timedelta(minutes=15)
LOGGED_MAX: Final = 20

# Claimed in the statement that finds them, so that a worker whose lease has passed to another one
# does not share its organization.
_CLAIM: Final = """
    INSERT INTO ledger_verifications AS last (organization_id, begun_at)
    SELECT organizations.id, clock_timestamp()
      FROM organizations
      LEFT JOIN ledger_verifications before ON before.organization_id = organizations.id
     WHERE before.begun_at IS NULL
        OR before.begun_at < clock_timestamp() - $1::interval
     ORDER BY coalesce(before.differences, 0) > 0 DESC, before.begun_at NULLS FIRST
     LIMIT 1
    ON CONFLICT (organization_id) DO UPDATE
       SET begun_at = EXCLUDED.begun_at
     WHERE last.begun_at < EXCLUDED.begun_at - $1::interval
    RETURNING organization_id, begun_at
"""
_RECORD: Final = """
    UPDATE ledger_verifications
       SET verified_at = $2, differences = $3, complete_until = $4
     WHERE organization_id = $1
       AND begun_at = $2
"""
_STATE: Final = """
    SELECT count(*) FILTER (WHERE last.differences > 0) AS differing,
           clock_timestamp() - min(coalesce(last.verified_at, organizations.created_at))
               AS oldest_age
      FROM organizations
      LEFT JOIN ledger_verifications last ON last.organization_id = organizations.id
"""


class VerificationState(Struct, frozen=True, kw_only=True):
    """What the continuous verification has found so far."""

    differing_organizations: int
    oldest_age: timedelta | None
    """How long the organization that waited longest was not verified; None without any."""


class Verifier:
    """Verifies the organization whose verification is the oldest, again and again."""

    def __init__(self, database: Database, reads: ReportReads) -> None:
        self._database = database
        self._reads = reads

    async def run(self) -> None:
        """Verify the organizations that are due, for a bounded time."""
        began_seconds = time.monotonic()
        while time.monotonic() - began_seconds < WORK_MAX.total_seconds():
            if (claim := await self._claim()) is None:
                return
            organization_id, begun_at = claim
            try:
                await self.verify(organization_id, begun_at)
            except StatementFailed:
                # The next one is not kept waiting, and the age of this one's verification grows.
                extra = {"organization_id": str(organization_id)}
                logger.exception("ledger_not_verified", extra=extra)

    async def verify(self, organization_id: OrganizationId, begun_at: datetime) -> Verification:
        """Verify one organization, and store the result. Only the primary says what differs."""
        found = await self._reads.run(
            lambda database: verification.verify_new(database, organization_id)
        )
        if found.differences:
            found = await verification.verify_new(self._database, organization_id)
        complete_until = found.marks.complete_until if found.marks is not None else None
        async with self._database.transaction() as tx:
            await tx.execute(
                _RECORD, organization_id, begun_at, len(found.differences), complete_until
            )
            if found.marks is not None:
                await verified_days.remember(tx, organization_id, found.marks.days)
        _log(found)
        return found

    async def show(self) -> None:
        """Set the metrics. Every worker does, because another one may have verified."""
        async with self._database.transaction() as tx:
            found = await state(tx)
        if found.oldest_age is not None:
            ledger_metrics.verified(
                differing_organizations=found.differing_organizations,
                oldest_seconds=found.oldest_age.total_seconds(),
            )

    async def _claim(  # all organizations: one job verifies all
        self,
    ) -> tuple[OrganizationId, datetime] | None:
        rows = await self._database.fetch_all(_CLAIM, VERIFIED_AGAIN_AFTER)
        return (OrganizationId(rows[0]["organization_id"]), rows[0]["begun_at"]) if rows else None


async def state(tx: Transaction) -> VerificationState:  # all organizations: one job verifies all
    """Return what was found so far."""
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
