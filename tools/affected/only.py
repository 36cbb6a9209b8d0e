"""A pytest plugin that runs chosen tests of the given files.

A chosen test that is gone by now is no error. `TOLLHOUSE_AFFECTED` names a file with the names of
the tests, or of files of which all tests are chosen.
"""

import os
from pathlib import Path

import msgspec
import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what was not chosen."""
    chosen = msgspec.json.decode(
        Path(os.environ["TOLLHOUSE_AFFECTED"]).read_bytes(), type=frozenset[str]
    )
    kept = [item for item in items if {item.nodeid, item.nodeid.partition("::")[0]} & chosen]
    config.hook.pytest_deselected(items=list(set(items) - set(kept)))
    items[:] = kept


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Replace the names by the number of tests that were run."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    Path(os.environ["TOLLHOUSE_AFFECTED"]).write_text(str(len(reports)), encoding="utf-8")
