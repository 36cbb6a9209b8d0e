"""The jobs of the ledger, each run by one worker at a time."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Final

from tollhouse.ledger import alerts, hour_retention, partitions, reaper
from tollhouse.ledger.verifier import VERIFY_EVERY, Verifier
from tollhouse.storage.database import Database
from tollhouse.storage.leases import LeasedJob
from tollhouse.storage.partitions import KEEP_EVERY, Partition

ALERTS_EVERY: Final = timedelta(seconds=10)


def jobs(
    database: Database,
    *,
    background: Database,
    maintenance: Database,
    verifier: Verifier,
    entry_days: int,
    is_archived: Callable[[Partition], Awaitable[bool]] | None,
) -> tuple[LeasedJob, ...]:
    """Return the jobs that raise alerts, decide abandoned holds, drop old days, and verify."""
    return (
        LeasedJob(
            name="alerts",
            every_seconds=ALERTS_EVERY.total_seconds(),
            run=partial(alerts.notice, background),
        ),
        LeasedJob(
            name="reaper",
            every_seconds=reaper.REAP_EVERY.total_seconds(),
            run=partial(reaper.run, database),
        ),
        LeasedJob(
            name="ledger-retention",
            every_seconds=KEEP_EVERY.total_seconds(),
            run=partial(
                partitions.remove_old, maintenance, entry_days=entry_days, is_archived=is_archived
            ),
        ),
        LeasedJob(
            name="cost-hour-retention",
            every_seconds=KEEP_EVERY.total_seconds(),
            run=partial(hour_retention.remove_old, maintenance),
        ),
        LeasedJob(
            name="ledger-verification",
            every_seconds=VERIFY_EVERY.total_seconds(),
            run=verifier.run,
        ),
    )
