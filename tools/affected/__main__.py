"""`python -m tools.affected`: run what a change may have broken, within a minute."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from tools.affected import changes, selection
from tools.affected.imports import Imports
from tools.affected.selection import Selection
from tools.mutants import targets

_PROGRAMS: Final = Path(sys.executable).parent
_UNTYPED: Final = ("bench/", "tests/clients/drivers/")
_LEFT_OUT: Final = "PYTHONDONTWRITEBYTECODE"
_ENVIRONMENT: Final = {name: os.environ[name] for name in os.environ if name != _LEFT_OUT}
_NO_TESTS: Final = 5
"""What pytest returns where all tests are left out."""


def main() -> int:
    """Run checks and tests side by side. Returns 1 if any fails."""
    parser = argparse.ArgumentParser(prog="python -m tools.affected", description=__doc__)
    parser.add_argument("--since", help="a commit; origin/main or HEAD~1 by default")
    began = time.monotonic()
    since = parser.parse_args().since or _default()
    changed = changes.since(since)
    commit = targets.git("log", "-1", "--format=%h (%s)", since).strip()
    print(f"{len(changed)} files changed since {commit}", flush=True)
    with ThreadPoolExecutor() as pool:
        checks = [pool.submit(_check, command) for command in _commands(changed)]
        count, failed = _test(_selected(changed))
        failures = ", ".join(filter(None, (failed, *(check.result() for check in checks))))
    outcome = f"FAILED: {failures}" if failures else "passed"
    print(f"{time.monotonic() - began:.0f} s, {count} tests, {outcome}")
    return 1 if failures else 0


def _default() -> str:
    if targets.git("branch", "--remotes", "--list", "origin/main"):
        return targets.git("merge-base", "HEAD", "origin/main").strip()
    return "HEAD~1"


def _commands(changed: Collection[str]) -> Iterator[tuple[str, ...]]:
    python = [name for name in changed if name.endswith(".py") and (targets.ROOT / name).is_file()]
    if python:
        yield "ruff", "check", *python
        yield "ruff", "format", "--check", *python
    if typed := [name for name in python if not name.startswith(_UNTYPED)]:
        yield "pyright", *typed
    yield "lint-imports", "--no-logo"
    yield "python", "-m", "tools.checks"


def _check(command: tuple[str, ...]) -> str:
    """Run a command, and show it if it fails. Returns the name of one that failed."""
    ended = subprocess.run(  # noqa: S603 - a command of our own
        (_PROGRAMS / command[0], *command[1:]),
        cwd=targets.ROOT,
        env=_ENVIRONMENT,
        check=False,
        capture_output=True,
        text=True,
    )
    if ended.returncode == 0:
        return ""
    print(f"{ended.stdout}{ended.stderr}", flush=True)
    return command[0]


def _selected(changed: changes.Changes) -> Selection:
    recorded = selection.recorded_commit()
    if recorded is None:
        print("no record of which tests run which lines: taking the tests of the packages and of")
        print("    what imports them, which may take longer than a minute")
    else:
        print(f"taking the tests by the lines that they ran at {recorded[:7]}")
    found = selection.select(changed, Imports(targets.ROOT), recorded)
    _print_left_out("marked or long tests of", sorted(found.marked))
    some = [f"{file} ({count})" for file, count in found.left_out.items()]
    _print_left_out(f"{sum(found.left_out.values())} tests that there is no time for:", some)
    return found


def _print_left_out(what: str, files: Iterable[str]) -> None:
    if names := ", ".join(files):
        print(textwrap.fill(f"left out: {what} {names}", 100, subsequent_indent="    "), flush=True)


def _test(found: Selection) -> tuple[int, str]:
    """Run the selected tests. Returns their number, and what failed."""
    files = {test.partition("::")[0] for test in found.tests} | found.files | found.changed
    if not files:
        return 0, ""
    with tempfile.TemporaryDirectory(prefix="tollhouse-affected-") as folder:
        selected, results = Path(folder) / "selected.json", Path(folder) / "results.xml"
        selected.write_bytes(msgspec.json.encode(found))
        results.touch()
        command = (
            *(sys.executable, "-m", "pytest", "-p", "tools.affected.only", "-q"),
            *("--numprocesses", "2", "--dist", "worksteal", f"--junitxml={results}"),
            *sorted(files),
        )
        environment = _ENVIRONMENT | {"AFFECTED_SELECTION": str(selected), "PYTHONPATH": "src:."}
        ended = subprocess.run(command, cwd=targets.ROOT, env=environment, check=False)  # noqa: S603 - a command of our own
        count = re.search(r' tests="(\d+)"', results.read_text("utf-8"))
    return int(count[1]) if count else 0, "" if ended.returncode in {0, _NO_TESTS} else "tests"


if __name__ == "__main__":
    sys.exit(main())
