"""Metrics of the database server and of its standbys, as each worker sees them.

A gauge with labels has no series before it is first set, so that an unknown value is not a zero.
"""

from typing import Final, Literal

from tollhouse.observability.buffered_metrics import BufferedCounter, BufferedGauge
from tollhouse.observability.registry import registry

COMMIT_LEVELS: Final = ("off", "local", "remote_write", "on", "remote_apply")

_up = BufferedGauge(
    "tollhouse_database_up",
    "1 if the database answered the last look, 0 if it did not: then what the other metrics of it"
    " say is old.",
    multiprocess_mode="livemin",
    registry=registry,
)
_is_read_only = BufferedGauge(
    "tollhouse_database_is_read_only",
    "1 if transactions on the primary are read-only, as services set it when a disk is full.",
    multiprocess_mode="livemostrecent",
    registry=registry,
)
_is_standby = BufferedGauge(
    "tollhouse_database_is_standby",
    "1 if the database server is a standby, on which nothing can be stored.",
    multiprocess_mode="livemostrecent",
    registry=registry,
)
_synchronous_standbys = BufferedGauge(
    "tollhouse_database_synchronous_standbys",
    "Standbys that a commit waits for (required), and those connected that it may count"
    " (connected; only if the role has pg_monitor).",
    ["state"],
    multiprocess_mode="livemostrecent",
    registry=registry,
)
_commit_level = BufferedGauge(
    "tollhouse_database_synchronous_commit",
    "1 for the value of synchronous_commit that the sessions of Tollhouse have, 0 for the others.",
    ["level"],
    multiprocess_mode="livemostrecent",
    registry=registry,
)
_settings_missing = BufferedGauge(
    "tollhouse_database_settings_missing",
    "Settings of Tollhouse's sessions that a connection pooler drops.",
    multiprocess_mode="livemostrecent",
    registry=registry,
)
_clock_difference_seconds = BufferedGauge(
    "tollhouse_database_clock_difference_seconds",
    "Seconds by which the database's clock is ahead of this machine's.",
    multiprocess_mode="livemostrecent",
    registry=registry,
)
_oldest_snapshot_seconds = BufferedGauge(
    "tollhouse_database_oldest_snapshot_seconds",
    "Age of the oldest transaction that keeps dead rows from being removed.",
    multiprocess_mode="livemostrecent",
    registry=registry,
)
_oldest_snapshot_transactions = BufferedGauge(
    "tollhouse_database_oldest_snapshot_transactions",
    "Transactions since the oldest snapshot of a session, replication slot or prepared"
    " transaction.",
    multiprocess_mode="livemostrecent",
    registry=registry,
)
_size_bytes = BufferedGauge(
    "tollhouse_database_size_bytes",
    "Size of the database.",
    multiprocess_mode="livemostrecent",
    registry=registry,
)
_disk_bytes = BufferedGauge(
    "tollhouse_database_disk_bytes",
    "Free and total space of the server's disk, only if its data directory is on this machine"
    " and readable.",
    ["space"],
    multiprocess_mode="livemostrecent",
    registry=registry,
)
_timeline = BufferedGauge(
    "tollhouse_database_timeline",
    "Timeline of the primary, by the system identifier of the cluster. Each promotion adds 1; if it"
    " falls, an older primary is back and commits are lost.",
    ["system"],
    multiprocess_mode="livemostrecent",
    registry=registry,
)
_days_ahead = BufferedGauge(
    "tollhouse_partition_days_ahead",
    "Days after today whose partition exists, without a gap, by table; -1 if today's is missing.",
    ["table"],
    multiprocess_mode="livemostrecent",
    registry=registry,
)

_replica_reads = BufferedCounter(
    "tollhouse_database_replica_reads_total",
    "Reports and lists, by the server that answered: the replica of database.replica_url, or the"
    " primary in its place.",
    ["server"],
    registry=registry,
)
_replica_reads.show_zeros(("replica", "primary"))


def reached(*, is_up: bool) -> None:
    """Set whether the server could be asked."""
    _up.set(int(is_up))


def server_role(*, is_standby: bool, is_read_only: bool) -> None:
    """Set whether the server is a standby, and whether it refuses changes as a primary."""
    _is_standby.set(int(is_standby))
    _is_read_only.set(int(is_read_only))


def timeline(system_identifier: int, number: int) -> None:
    """Set the timeline of a cluster's primary."""
    _timeline.labels(str(system_identifier)).set(number)


def standbys(*, required: int, connected: int | None) -> None:
    """Set the numbers of synchronous standbys; `connected` is None if it is not known."""
    _synchronous_standbys.labels("required").set(required)
    if connected is not None:
        _synchronous_standbys.labels("connected").set(connected)


def commit_level(level: str) -> None:
    """Set the value of synchronous_commit."""
    for each in COMMIT_LEVELS:
        _commit_level.labels(each).set(int(each == level))


def settings_missing(count: int) -> None:
    """Set how many settings of the session do not reach the server."""
    _settings_missing.set(count)


def clock_difference(seconds: float) -> None:
    """Set how far the database's clock is ahead."""
    _clock_difference_seconds.set(seconds)


def oldest_snapshot(*, seconds: float, transactions: int) -> None:
    """Set the age of the oldest snapshot, in seconds and in transactions."""
    _oldest_snapshot_seconds.set(seconds)
    _oldest_snapshot_transactions.set(transactions)


def size(size_bytes: int) -> None:
    """Set the size of the database."""
    _size_bytes.set(size_bytes)


def disk(*, free_bytes: int, total_bytes: int) -> None:
    """Set the space of the server's disk."""
    _disk_bytes.labels("free").set(free_bytes)
    _disk_bytes.labels("total").set(total_bytes)


def days_ahead(table: str, days: int) -> None:
    """Set for how many days a table has partitions."""
    _days_ahead.labels(table).set(days)


def replica_read(*, by: Literal["replica", "primary"]) -> None:
    """Count one read that the standby answered, or should have."""
    _replica_reads.labels(by).add()
