"""A pytest plugin that records how long each test takes and which lines it runs.

`pytest -p tools.mutants.recording` writes one file per process into the folder that
`TOLLHOUSE_MUTANTS_RECORD` names. Lines that a child process of a test runs are not seen.
"""

import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import coverage
import msgspec
import pytest

from tools.mutants.record import Record, RecordedFile, digest

FOLDER = Path(os.environ["TOLLHOUSE_MUTANTS_RECORD"])
ROOT = Path(__file__).parents[2]


class Recorder:
    """Records the tests of one process."""

    def __init__(self) -> None:
        self._coverage = coverage.Coverage(
            data_file=None,
            config_file=False,
            source=[str(ROOT / "src" / "tollhouse")],
            messages=False,
        )
        self._coverage.config.disable_warnings = ["module-not-imported", "no-data-collected"]
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._failed: set[str] = set()
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Attribute the lines that run from here on to this test."""
        self._coverage.switch_context(item.nodeid)
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up setup, call and teardown."""
        self._seconds[report.nodeid] += report.duration
        if report.outcome != "passed":
            self._failed.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Write the tests that passed, and their lines, before a controller ends this process."""
        self._coverage.stop()
        data = self._coverage.get_data()
        passed = sorted(set(self._seconds) - self._failed)
        numbers = {name: number for number, name in enumerate(passed)}
        files = {
            Path(path).relative_to(ROOT).as_posix(): RecordedFile(
                digest=digest(Path(path)),
                lines={
                    line: found
                    for line, names in data.contexts_by_lineno(path).items()
                    if (found := sorted(numbers[name] for name in names if name in numbers))
                },
            )
            for path in sorted(data.measured_files())
        }
        seconds = [(name, round(self._seconds[name], 3)) for name in passed]
        record = Record(tests=seconds, files=files)
        (FOLDER / f"{os.getpid()}.json").write_bytes(msgspec.json.encode(record))


def pytest_configure(config: pytest.Config) -> None:
    """Record in every process that runs tests, which the controller of several does not."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", default=None):
        config.pluginmanager.register(Recorder())
