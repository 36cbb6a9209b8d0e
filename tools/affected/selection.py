"""Which tests a change is given to."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from tools.affected import changes
from tools.affected.changes import Changes, Hunk
from tools.affected.imports import Imports, is_test
from tools.mutants import record, targets
from tools.mutants.coverage_map import CoverageMap

TESTS_SECONDS_MAX: Final = 100.0
LEFT_OUT_MARKS: Final = ("clock", "nightly")


@dataclass(kw_only=True, slots=True)
class Selection:
    """What to run of the tests, and files of which tests are left out."""

    changed: set[str] = field(default_factory=set[str])
    """Files that run whole."""
    files: set[str] = field(default_factory=set[str])
    """Files that run but for tests that are marked for the clock or the night."""
    tests: set[str] = field(default_factory=set[str])
    marked: set[str] = field(default_factory=set[str])
    """Files that are long, or may have such tests."""
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    """How many tests of each file the time does not suffice for."""


def recorded_commit() -> str | None:
    """Return the newest ancestor of the present state that the cache has records of."""
    ancestors = targets.git("rev-list", "HEAD").split()
    return next((commit for commit in ancestors if (record.CACHE / commit).is_dir()), None)


def select(changed: Changes, imports: Imports, commit: str | None) -> Selection:
    """Choose tests that run changed lines, or else those of the package and its importers."""
    selection = Selection()
    found: list[tuple[set[str], set[str]]] = []
    with tempfile.TemporaryDirectory(prefix="tollhouse-affected-") as name:
        folder = Path(name)
        since_record = _restore(folder, commit, changed) if commit else {}
        covering = CoverageMap(record.CACHE / (commit or "none"), folder)
        known = {test.partition("::")[0] for test in covering.seconds}
        for path, hunks in changed.items():
            about = imports.tests_about(path)
            if is_test(path):
                selection.changed |= about
                continue
            selection.marked |= {test for test in about if _is_left_out(test, imports.text(test))}
            selection.files |= {test for test in about - known if not _is_long(test)}
            running = _running(covering, folder, path, hunks, since_record.get(path, []))
            running = running or {test for test in covering.seconds if _file(test) in about}
            found.append((running, about))
    _share(selection, found, covering)
    return selection


def _restore(folder: Path, commit: str, changed: Changes) -> Changes:
    """Write the recorded text of changed files; return what changed since."""
    listed = targets.git("ls-tree", "-r", "-z", "--name-only", commit, targets.PACKAGE)
    for path in set(listed.split("\0")) & changed.keys():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(targets.git("show", f"{commit}:{path}").encode())
    return changes.since(commit)


def _running(
    covering: CoverageMap, folder: Path, path: str, hunks: Sequence[Hunk], since: Sequence[Hunk]
) -> set[str]:
    """Return the tests that run changed lines, or where these run at import the file."""
    recorded, present = folder / path, targets.ROOT / path
    if not (recorded.is_file() and present.is_file() and path.endswith(".py")):
        return covering.running_file(path)
    old = changes.old_lines(since, hunks)
    new = {line for hunk in hunks for line in hunk.new}
    if old & changes.run_at_import(recorded.read_text("utf-8")):
        return covering.running_file(path)
    if new & changes.run_at_import(present.read_text("utf-8")):
        return covering.running_file(path)
    return covering.running_lines(path, old)


def _share(
    selection: Selection, found: list[tuple[set[str], set[str]]], covering: CoverageMap
) -> None:
    """Share the time among the changed files: what one leaves over goes to the next."""
    seconds, left = covering.seconds, TESTS_SECONDS_MAX
    found.sort(key=lambda one: sum(seconds[test] for test in one[0]))
    for number, (tests, own) in enumerate(found):
        share = left / (len(found) - number)
        chosen = set(covering.fastest(tests - selection.tests, tuple(own), share))
        left -= sum(seconds[test] for test in chosen)
        selection.tests |= chosen
    every = set[str]().union(*(tests for tests, _ in found)) - selection.tests
    selection.left_out |= Counter(map(_file, every)).most_common()


def _file(test: str) -> str:
    return test.partition("::")[0]


def _is_long(path: str) -> bool:
    return any(PurePosixPath(path).match(pattern) for pattern in targets.NOT_RECORDED)


def _is_left_out(path: str, text: str) -> bool:
    return _is_long(path) or any(f"mark.{mark}" in text for mark in LEFT_OUT_MARKS)
