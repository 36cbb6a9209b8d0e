"""Findings about a database server, from what is known about it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tollhouse.base.findings import FindingOutcome
from tollhouse.storage.partitions import DailyTable
from tollhouse.storage.server_checks import (
    clock_finding,
    disk_finding,
    durability_finding,
    role_finding,
    snapshots_finding,
    standbys_finding,
)
from tollhouse.storage.server_health import (
    DiskSpace,
    ServerHealth,
    Snapshots,
    Standby,
    clock_difference,
    required_standbys,
)

ALONE = ServerHealth(
    is_standby=False,
    is_read_only=False,
    standbys=(),
    synchronous_standby_names="",
    synchronous_commit="on",
    fsync="on",
    clock_difference=timedelta(),
    size_bytes=10**9,
    disk=None,
    snapshots=Snapshots(seconds=0.0, transactions=0, holder=None),
    sees_all_sessions=True,
    missing_settings=(),
    days_ahead=dict.fromkeys(DailyTable, 7),
)


def standbys(*states: str) -> tuple[Standby, ...]:
    return tuple(Standby(name="s", state="streaming", sync_state=state) for state in states)


@pytest.mark.parametrize(
    ("names", "required"),
    [
        ("", 0),
        ("*", 1),
        ("one, two", 1),
        ("FIRST 2 (one, two, three)", 2),
        ("any 1 (one, two)", 1),
        ("3 (a,b,c)", 3),
    ],
)
def test_a_commit_waits_for_as_many_standbys_as_are_named(names: str, required: int) -> None:
    assert required_standbys(names) == required


@pytest.mark.parametrize(
    ("names", "connected", "outcome"),
    [
        ("", standbys(), FindingOutcome.OK),
        ("", standbys("async"), FindingOutcome.WARNING),
        ("*", standbys(), FindingOutcome.FAILURE),
        ("*", standbys("async"), FindingOutcome.FAILURE),
        ("*", standbys("sync"), FindingOutcome.WARNING),
        ("*", standbys("sync", "potential"), FindingOutcome.OK),
        ("ANY 2 (a,b,c)", standbys("quorum", "quorum"), FindingOutcome.WARNING),
        ("ANY 2 (a,b,c)", standbys("quorum", "quorum", "quorum"), FindingOutcome.OK),
        ("ANY 2 (a,b,c)", standbys("quorum", "async"), FindingOutcome.FAILURE),
        (
            "*",
            (Standby(name="s", state="catchup", sync_state="sync"),),
            FindingOutcome.FAILURE,
        ),
    ],
)
def test_commits_need_their_standbys_and_one_to_spare(
    names: str, connected: tuple[Standby, ...], outcome: FindingOutcome
) -> None:
    health = replace(ALONE, synchronous_standby_names=names, standbys=connected)

    assert standbys_finding(health).outcome is outcome


@pytest.mark.parametrize(
    ("fsync", "synchronous_commit", "names", "outcome"),
    [
        ("on", "on", "", FindingOutcome.OK),
        ("on", "remote_apply", "*", FindingOutcome.OK),
        ("on", "local", "", FindingOutcome.OK),
        ("on", "local", "*", FindingOutcome.WARNING),
        ("on", "off", "", FindingOutcome.WARNING),
        ("off", "on", "", FindingOutcome.FAILURE),
    ],
)
def test_what_a_crash_or_a_failover_can_undo_is_said(
    fsync: str, synchronous_commit: str, names: str, outcome: FindingOutcome
) -> None:
    health = replace(
        ALONE,
        fsync=fsync,
        synchronous_commit=synchronous_commit,
        synchronous_standby_names=names,
    )

    assert durability_finding(health).outcome is outcome


@pytest.mark.parametrize(
    ("difference_seconds", "outcome"),
    [
        (0.0, FindingOutcome.OK),
        (0.9, FindingOutcome.OK),
        (1.1, FindingOutcome.WARNING),
        (-1.1, FindingOutcome.WARNING),
    ],
)
def test_clocks_may_differ_by_a_second(difference_seconds: float, outcome: FindingOutcome) -> None:
    before = datetime(2026, 1, 1, tzinfo=UTC)
    after = before + timedelta(seconds=4)
    theirs = before + timedelta(seconds=2 + difference_seconds)

    found = clock_difference(before, theirs, after).total_seconds()

    assert clock_finding(found).outcome is outcome


@pytest.mark.parametrize(
    ("seconds", "transactions", "outcome"),
    [
        (3599, 0, FindingOutcome.OK),
        (3601, 0, FindingOutcome.WARNING),
        (0, 50_000_000, FindingOutcome.OK),
        (0, 50_000_001, FindingOutcome.WARNING),
    ],
)
def test_an_old_snapshot_is_named(seconds: int, transactions: int, outcome: FindingOutcome) -> None:
    snapshots = Snapshots(seconds=seconds, transactions=transactions, holder="process 7 (psql)")

    finding = snapshots_finding(snapshots, sees_all_sessions=True)

    assert finding.outcome is outcome
    assert ("process 7 (psql)" in finding.found) is (outcome is FindingOutcome.WARNING)


@pytest.mark.parametrize(
    ("free_bytes", "outcome"),
    [
        (15, FindingOutcome.OK),
        (14, FindingOutcome.WARNING),
        (5, FindingOutcome.WARNING),
        (4, FindingOutcome.FAILURE),
    ],
)
def test_a_disk_that_fills_is_told_early(free_bytes: int, outcome: FindingOutcome) -> None:
    disk = DiskSpace(free_bytes=free_bytes, total_bytes=100)

    assert disk_finding(disk, size_bytes=50).outcome is outcome


def test_an_unknown_disk_is_left_to_the_exporter() -> None:
    finding = disk_finding(None, size_bytes=2_500_000_000)

    assert finding.outcome is FindingOutcome.OK
    assert finding.found == (
        "the database has 2.5 GB; the server's free space is measured by its node exporter"
    )


def test_a_standby_is_a_failure() -> None:
    writable = role_finding(is_standby=False, is_read_only=False)
    assert writable.outcome is FindingOutcome.OK
    assert role_finding(is_standby=True, is_read_only=False).outcome is FindingOutcome.FAILURE
    assert role_finding(is_standby=False, is_read_only=True).outcome is FindingOutcome.FAILURE
