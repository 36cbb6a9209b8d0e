"""`tollhouse export`, and the commands of its guide."""

import csv
import os
from datetime import timedelta
from pathlib import Path

from tests.activity.records import days_ago
from tests.cli.commands import Operator
from tests.cli.documents import read, scripts
from tests.cli.test_archive import with_usage
from tollhouse.cli.session import Session

GUIDE = "docs/guides/exports.md"


def test_the_commands_of_the_guide_write_files(patient: Operator, tmp_path: Path) -> None:
    focus, _by_api, run = scripts(read(GUIDE))
    with_usage(patient)
    patient.environment["TOLLHOUSE_EXPORTS__URL"] = (tmp_path / "exports").as_uri()
    day = days_ago(40).date().isoformat()

    patient.bash(focus.replace("costs.csv", str(tmp_path / "costs.csv")))
    moved = patient.bash(run.replace("2026-08-01", day).replace("2026-08-31", day)).stdout

    assert (tmp_path / "costs.csv").read_text().startswith("BilledCost,")
    rows = [line.split() for line in moved.splitlines()]
    assert ["costs", day, "1", "12.5"] in [row[:4] for row in rows]
    assert ["requests", day, "1"] in [row[:3] for row in rows]
    assert (tmp_path / "exports" / "costs" / f"day={day}" / "manifest.json").exists()
    assert "No day has to be exported." in patient.run("export", "run").stdout


def test_a_focus_file_has_the_costs_of_its_range(patient: Operator, tmp_path: Path) -> None:
    with_usage(patient)
    file = tmp_path / "costs.csv"
    day = days_ago(40).date().isoformat()

    written = patient.json("export", "focus", os.fspath(file), "--from", day)

    (row,) = csv.DictReader(file.read_text().splitlines())
    assert (written["rows"], written["unsettled_requests"]) == (1, 0)
    assert (row["BilledCost"], row["ChargePeriodStart"]) == ("12.5", f"{day}T00:00:00Z")
    printed = patient.run("export", "focus", "-", "--from", day).stdout
    assert printed.splitlines() == file.read_text().splitlines()


def test_an_export_that_fails_on_the_way_keeps_the_file_before_it(
    patient: Operator, tmp_path: Path
) -> None:
    with_usage(patient)
    file = tmp_path / "costs.csv"
    file.write_text("of last month")
    day = days_ago(40).date()
    # A whole day is read from one table, and a part of the next one from another.
    patient.do(_without_hours)

    failed = patient.run(
        *("export", "focus", os.fspath(file), "--from", day.isoformat()),
        *("--to", f"{day + timedelta(days=1)}T12:00:00"),
        exit_code=1,
    )

    assert "UndefinedTable" in failed.stderr
    assert [each.read_text() for each in tmp_path.glob("costs.csv*")] == ["of last month"]


async def _without_hours(session: Session) -> None:
    async with session.database.transaction() as tx:
        await tx.execute("ALTER TABLE cost_hourly RENAME TO lost")


def test_an_export_without_an_address_says_what_to_set(patient: Operator) -> None:
    failed = patient.run("export", "run", exit_code=1)

    assert "Set exports.url" in failed.stderr
