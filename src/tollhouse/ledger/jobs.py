"""The jobs of the ledger, each run by one worker at a time."""

from datetime import timedelta
from functools import partial
from typing import Final

from tollhouse.ledger import alerts, partitions, reaper
from tollhouse.storage.database import Database
from tollhouse.storage.leases import LeasedJob
from tollhouse.storage.partitions import KEEP_EVERY

ALERTS_EVERY: Final = timedelta(seconds=10)


def jobs(
    database: Database, *, background: Database, maintenance: Database, entry_days: int
) -> tuple[LeasedJob, ...]:
    """Return the jobs that raise alerts, decide abandoned holds, and drop old days."""
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
            run=partial(partitions.remove_old, maintenance, entry_days=entry_days),
        ),
    )
