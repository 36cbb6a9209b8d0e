"""The regular look of a worker at its database server, for metrics and the log."""

import logging
from typing import Final

from tollhouse.base.clock import Clock, SystemClock
from tollhouse.base.errors import DeploymentError
from tollhouse.base.findings import Finding, FindingOutcome
from tollhouse.observability import database_metrics
from tollhouse.storage import server_checks
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable
from tollhouse.storage.server_health import (
    ServerHealth,
    ServerHistory,
    is_standby,
    read_health,
    read_history,
)

logger = logging.getLogger("tollhouse.storage")

LOOK_EVERY_SECONDS: Final = 30.0


class ServerIsStandby(DeploymentError):
    """The database URL leads to a standby, on which no worker can serve."""

    code = "database_is_standby"

    def __init__(self) -> None:
        super().__init__(
            "The database server is a standby, which stores nothing. Name the primary, or all "
            "hosts, in database.url; or promote this server."
        )


async def refuse_standby(database: Database) -> None:
    """Raise `ServerIsStandby` unless the server accepts writes."""
    if await is_standby(database):
        raise ServerIsStandby


class HealthWatch:
    """Measures the server, and logs each warning and failure once when it begins."""

    def __init__(self, database: Database, machine: Clock | None = None) -> None:
        self._database = database
        self._machine = machine or SystemClock()
        self._outcomes: dict[str, FindingOutcome] = {}
        self._newest_timelines: dict[int, int] = {}

    async def look(self) -> None:
        """Measure the server, set its metrics and log what changed."""
        try:
            health = await read_health(self._database, self._machine)
        except DatabaseUnavailable:
            database_metrics.reached(is_up=False)
            raise
        show(health)
        for finding in server_checks.findings(health):
            self._log_change(finding)
        if (history := await read_history(self._database)) is not None:
            self._log_change(self._compare(history))

    def _compare(self, history: ServerHistory) -> Finding:
        """Compare the server with those that this worker used before."""
        system = history.system_identifier
        database_metrics.timeline(system, history.timeline)
        newest = max(history.timeline, self._newest_timelines.get(system, 0))
        self._newest_timelines[system] = newest
        return server_checks.history_finding(history, newest_timeline=newest)

    def _log_change(self, finding: Finding) -> None:
        before = self._outcomes.get(finding.check, FindingOutcome.OK)
        self._outcomes[finding.check] = finding.outcome
        if finding.outcome is before:
            return
        extra = {"check": finding.check, "reason": finding.found, "remedy": finding.remedy}
        if finding.outcome is FindingOutcome.OK:
            logger.info("database_check_passes", extra=extra)
        else:
            logger.warning("database_check_fails", extra=extra)


def show(health: ServerHealth) -> None:
    """Set the metrics of the database server."""
    database_metrics.reached(is_up=True)
    database_metrics.server_role(is_standby=health.is_standby, is_read_only=health.is_read_only)
    database_metrics.standbys(
        required=health.required_standbys,
        connected=health.connected_candidates if health.sees_all_sessions else None,
    )
    database_metrics.commit_level(health.synchronous_commit)
    database_metrics.clock_difference(health.clock_difference.total_seconds())
    database_metrics.oldest_snapshot(
        seconds=health.snapshots.seconds, transactions=health.snapshots.transactions
    )
    database_metrics.size(health.size_bytes)
    database_metrics.settings_missing(len(health.missing_settings))
    if health.disk is not None:
        database_metrics.disk(
            free_bytes=health.disk.free_bytes, total_bytes=health.disk.total_bytes
        )
    for table, days in health.days_ahead.items():
        database_metrics.days_ahead(table, days)
