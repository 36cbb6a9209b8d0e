"""Findings about the database server, for `tollhouse doctor` and for the log of a worker."""

from typing import Final

from tollhouse.base.findings import Finding, failure, ok, warning
from tollhouse.storage.server_health import DiskSpace, ServerHealth, ServerHistory, Snapshots

CLOCK_DIFFERENCE_SECONDS_MAX: Final = 1.0
SNAPSHOT_SECONDS_MAX: Final = 3600.0
SNAPSHOT_TRANSACTIONS_MAX: Final = 50_000_000
FREE_DISK_PERCENT_MIN: Final = 15
FREE_DISK_PERCENT_LEAST: Final = 5
"""Below this share the server is about to stop, which is a failure."""
WAITING_COMMITS: Final = frozenset({"on", "remote_write", "remote_apply"})
"""The values of `synchronous_commit` with which a commit waits for standbys."""
GIGABYTE: Final = 10**9


def findings(health: ServerHealth) -> list[Finding]:
    """Return all findings about a server."""
    return [
        role_finding(is_standby=health.is_standby, is_read_only=health.is_read_only),
        standbys_finding(health),
        durability_finding(health),
        clock_finding(health.clock_difference.total_seconds()),
        snapshots_finding(health.snapshots, sees_all_sessions=health.sees_all_sessions),
        disk_finding(health.disk, size_bytes=health.size_bytes),
    ]


def role_finding(*, is_standby: bool, is_read_only: bool) -> Finding:
    """Return a failure for a standby or a primary that accepts no writes."""
    check = "server role"
    if is_read_only:
        remedy = "See why default_transaction_read_only is on: services set it when a disk is full."
        return failure(check, "the server is a primary that refuses every change", remedy)
    if is_standby:
        remedy = "Name the primary, or all hosts, in database.url; or promote this server."
        return failure(check, "the server is a standby, which stores nothing", remedy)
    return ok(check, "the server is a primary")


def history_finding(history: ServerHistory, *, newest_timeline: int) -> Finding:
    """Return a failure if the server has an older timeline than the one that was used before."""
    check = "history"
    if history.timeline >= newest_timeline:
        return ok(check, f"the server has timeline {history.timeline}")
    found = (
        f"the server has timeline {history.timeline}, and {newest_timeline} was used before: what"
        " was committed since the last failover is missing"
    )
    remedy = "Stop the gateway. Find the lost requests with `tollhouse ledger lost`."
    return failure(check, found, remedy)


def standbys_finding(health: ServerHealth) -> Finding:
    """Return a failure if commits wait for a missing standby, a warning if one more would do so."""
    check, required = "standbys", health.required_standbys
    if not health.sees_all_sessions and (required or health.standbys):
        found = f"{len(health.standbys)} connected, whose state this role may not see"
        return warning(check, found, "GRANT pg_monitor TO the role in database.url.")
    if not required:
        return _asynchronous(check, len(health.standbys))
    connected = health.connected_candidates
    found = f"{connected} synchronous standbys are connected, and a commit needs {required}"
    if connected < required:
        remedy = (
            "Every change waits until a standby is back. Start it, and compare its application_name"
            f" with synchronous_standby_names = '{health.synchronous_standby_names}'."
        )
        return failure(check, found, remedy)
    if connected == required:
        remedy = "If one stops, every change waits for it. Add a standby that can take its place."
        return warning(check, found, remedy)
    return ok(check, found)


def _asynchronous(check: str, connected: int) -> Finding:
    if not connected:
        return ok(check, "none is connected, and none is synchronous")
    remedy = (
        "A failover can lose commits that callers were answered for. Set synchronous_standby_names,"
        " or never promote these servers."
    )
    return warning(check, f"{connected} connected, none of them synchronous", remedy)


def durability_finding(health: ServerHealth) -> Finding:
    """Return what a crash or a failover can undo."""
    check, level = "durability", health.synchronous_commit
    found = f"fsync is {health.fsync}, synchronous_commit is {level}"
    if health.fsync == "off":
        return failure(check, found, "Set fsync = on: a crash can destroy everything.")
    if level == "off":
        remedy = "Set synchronous_commit = on: a crash can undo what was committed."
        return warning(check, found, remedy)
    if health.required_standbys and level not in WAITING_COMMITS:
        remedy = "Set synchronous_commit = on: commits wait for no standby, and a failover can"
        return warning(check, found, f"{remedy} lose them.")
    return ok(check, found)


def clock_finding(difference_seconds: float) -> Finding:
    """Return a warning if the clocks differ.

    Keys expire by this machine's clock, leases and heartbeats by the database's.
    """
    found = f"the database's clock differs by {difference_seconds:+.3f} s"
    if abs(difference_seconds) > CLOCK_DIFFERENCE_SECONDS_MAX:
        return warning("clock", found, "Synchronize both machines with the same time servers.")
    return ok("clock", found)


def snapshots_finding(snapshots: Snapshots, *, sees_all_sessions: bool) -> Finding:
    """Return a warning if an old snapshot keeps dead rows from being removed."""
    check = "snapshots"
    scope = "" if sees_all_sessions else " among the sessions that this role may see"
    found = (
        f"the oldest is {snapshots.seconds:.0f} s and {snapshots.transactions} transactions "
        f"old{scope}"
    )
    is_old = snapshots.seconds > SNAPSHOT_SECONDS_MAX
    if is_old or snapshots.transactions > SNAPSHOT_TRANSACTIONS_MAX:
        remedy = "It keeps every dead row since then, and tables grow. End it, or drop the slot."
        return warning(check, f"{found}: {snapshots.holder}", remedy)
    return ok(check, found)


def disk_finding(disk: DiskSpace | None, *, size_bytes: int) -> Finding:
    """Return how full the server's disk is, if its data directory can be read here."""
    check, size = "disk", f"the database has {size_bytes / GIGABYTE:.1f} GB"
    if disk is None:
        return ok(check, f"{size}; the server's free space is measured by its node exporter")
    free_percent = 100 * disk.free_bytes / disk.total_bytes
    found = f"{size}, {disk.free_bytes / GIGABYTE:.1f} GB ({free_percent:.0f} %) are free"
    if free_percent >= FREE_DISK_PERCENT_MIN:
        return ok(check, found)
    remedy = "Enlarge the disk, keep fewer days, or archive closed ones. A full disk stops all."
    if free_percent < FREE_DISK_PERCENT_LEAST:
        return failure(check, found, remedy)
    return warning(check, found, remedy)
