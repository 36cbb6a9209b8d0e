"""The nightly export of costs and records, in a process of its own.

Parquet needs CPU time and memory that requests must not wait for. So the worker that holds the
lease starts `python -m tollhouse.nightly_export`, which reads the settings from standard input.
"""

import asyncio
import logging
import os
import sys
from contextlib import AsyncExitStack
from datetime import date
from typing import Final

import msgspec

from tollhouse import pools
from tollhouse.archive.errors import ExportNotConfigured
from tollhouse.archive.exporting import DayExporter, ExportRange, exported_until
from tollhouse.archive.files import ArchiveFiles
from tollhouse.archive.types import DayManifest
from tollhouse.base.errors import DeploymentError
from tollhouse.ledger import partitions as ledger_days
from tollhouse.observability import ledger_metrics, log
from tollhouse.settings import Settings
from tollhouse.storage.database import Database
from tollhouse.storage.leases import LeasedJob
from tollhouse.storage.replica import DatabaseReplica, ReplicaReads

logger = logging.getLogger("tollhouse.nightly_export")

RUN_EVERY_SECONDS: Final = 3600.0
OPEN_HOLD_SECONDS_MAX: Final = 600
NICENESS: Final = 10


class ExportFailed(DeploymentError):
    """The process of the nightly export failed. Its log lines say why; the next run goes on."""

    code = "export_failed"


def export_job(settings: Settings, database: Database, url: str) -> LeasedJob:
    """Return the job that exports finished days. It does nothing on most of its hourly runs."""

    async def measure() -> None:
        ledger_metrics.exported(until_seconds=await exported_until(database, url))

    async def run() -> None:
        # Before as well: a process that never ends must not keep the age of the export unknown.
        await measure()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "tollhouse.nightly_export"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            await process.communicate(msgspec.json.encode(settings))
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode != 0:
            message = f"The nightly export ended with the code {process.returncode}."
            raise ExportFailed(message)
        await measure()

    return LeasedJob(name="nightly-export", every_seconds=RUN_EVERY_SECONDS, run=run)


async def export(
    database: Database,
    replica: DatabaseReplica | None,
    settings: Settings,
    chosen: ExportRange | None = None,
) -> list[DayManifest]:
    """Export the days that are due, or the days of a range; return those that were written.

    Raises `ExportNotConfigured`, `ArchivePackagesMissing`, `ArchiveUnreachable` and
    `ArchiveDiffers`.
    """
    if settings.exports.url is None:
        raise ExportNotConfigured

    async def is_final(day: date) -> bool:
        async with database.transaction(statement_seconds=OPEN_HOLD_SECONDS_MAX) as tx:
            return not await ledger_days.has_open_hold(tx, day)

    if replica is not None:
        await replica.settle()
    reads = ReplicaReads(database, replica)
    exporter = DayExporter(
        database,
        ArchiveFiles(settings.exports.url),
        is_final=is_final,
        read=lambda query: reads.run(query, is_complete=True),
    )
    return await exporter.run(chosen)


async def _run(settings: Settings) -> None:
    async with AsyncExitStack() as opened:
        database = await pools.connect_admin(settings)
        opened.push_async_callback(database.close)
        if (replica := pools.replica_of(database, settings)) is not None:
            opened.push_async_callback(replica.close)
        for day in await export(database, replica, settings):
            extra = {"table": day.table, "day": day.day.isoformat(), "count": day.total.rows}
            logger.info("day_exported", extra=extra)


def main() -> None:
    """Export what is due, with the settings from standard input."""
    log.configure("INFO")
    os.nice(NICENESS)
    settings = msgspec.json.decode(sys.stdin.buffer.read(), type=Settings)
    try:
        asyncio.run(_run(settings))
    except DeploymentError as failure:
        logger.error("export_failed", extra={"reason": str(failure)})  # noqa: TRY400 - no bug
        sys.exit(1)


if __name__ == "__main__":
    main()
