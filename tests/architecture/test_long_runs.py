"""Records of long runs are appended by one tool and add up."""

import sys
from pathlib import Path

import pytest

from tools import long_runs


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return tmp_path / "evidence" / "runs.jsonl"


def added(records: Path, **changes: str) -> int:
    run = {
        "command": "pytest tests/simulation",
        "first-seed": "1",
        "last-seed": "50",
        "seconds": "5400",
        "cases": "2000",
        "findings": "0",
    }
    options = [f"--{name}={value}" for name, value in (run | changes).items()]
    return long_runs.main([f"--path={records}", "append", *options])


def test_an_appended_run_is_read_back_with_its_commit(records: Path) -> None:
    assert added(records) == 0

    (run,) = long_runs.read(records)
    assert run.command == "pytest tests/simulation"
    assert (run.first_seed, run.last_seed, run.seconds, run.cases) == (1, 50, 5400, 2000)
    assert run.commit == long_runs.current_commit()


def test_runs_add_up_by_command_and_in_all(
    records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    added(records)
    added(records, findings="1")
    added(records, command="pytest tests/faults")

    assert long_runs.main([f"--path={records}", "sum"]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "pytest tests/faults: 1 runs, 50 seeds, 2,000 cases, 1.5 hours, 0 findings",
        "pytest tests/simulation: 2 runs, 100 seeds, 4,000 cases, 3.0 hours, 1 findings",
        "all: 3 runs, 150 seeds, 6,000 cases, 4.5 hours, 1 findings",
    ]


@pytest.mark.parametrize(("status", "findings"), [(0, 0), (1, 1)])
def test_a_command_that_is_run_is_recorded_with_its_counts_and_its_failure(
    records: Path, status: int, findings: int
) -> None:
    script = (
        "import os, sys; "
        f"sys.exit({status} if os.environ['TOLLHOUSE_FAULTS'] == '40' else 'no count')"
    )
    words = ["TOLLHOUSE_STEPS=2", "TOLLHOUSE_FAULTS=40", sys.executable, "-c", script]

    assert long_runs.main([f"--path={records}", "run", *words]) == status

    (run,) = long_runs.read(records)
    assert (run.cases, run.findings) == (42, findings)
    assert run.first_seed == run.last_seed > 0


def test_the_committed_records_can_be_added_up() -> None:
    assert long_runs.totals(long_runs.read())[-1].startswith("all: ")
