"""A pytest plugin that says which test ended a run.

It writes the first test that failed to the file in `TOLLHOUSE_MUTANTS_FAILED`, and each test that
begins to the file in `TOLLHOUSE_MUTANTS_RUNNING`. A test that does not end is ended with pytest.
"""

import faulthandler
import os
from pathlib import Path
from typing import Final

import pytest

FAILED: Final = Path(os.environ["TOLLHOUSE_MUTANTS_FAILED"])
RUNNING: Final = Path(os.environ["TOLLHOUSE_MUTANTS_RUNNING"])
TEST_SECONDS_MAX: Final = 60.0


def pytest_runtest_logstart(nodeid: str) -> None:
    """Give a test its time."""
    RUNNING.write_text(nodeid, encoding="utf-8")
    faulthandler.dump_traceback_later(TEST_SECONDS_MAX, exit=True, file=2)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write the name of a test that failed."""
    if report.failed:
        _write(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Write the name of a file that could not be imported."""
    if report.failed:
        _write(report.nodeid)


def _write(name: str) -> None:
    if not FAILED.exists():
        FAILED.write_text(name, encoding="utf-8")
