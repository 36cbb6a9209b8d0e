"""Mutants that were killed before, which have to be killed again: by the same test, or another."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tools.mutants import evidence, targets
from tools.mutants.evidence import Entry
from tools.mutants.mutant import Mutant
from tools.mutants.trees import Result, Status, Tree, seconds_for

KILLED_WITHIN_SECONDS: Final = 12.0
"""Slower ones are left to `make mutants`."""
NIGHTS: Final = "docs/evidence/nightly.jsonl"
FOLDERS_SECONDS_MAX: Final = 300.0


def choose(mutants: Iterable[Mutant]) -> list[Mutant]:
    """Return those of all mutants that a test was quick to kill."""
    recorded = evidence.entries()
    return [one for one in mutants if _is_quickly_killed(recorded.get(one.identity))]


def changed_first(drawn: Iterable[Mutant]) -> list[Mutant]:
    """Return mutants with those first whose package has changed since the last recorded night."""
    changed = _changed_packages()
    return sorted(drawn, key=lambda one: _package(one.path) not in changed)


def _is_quickly_killed(entry: Entry | None) -> bool:
    return (
        entry is not None
        and entry.status is Status.KILLED
        and entry.killer is not None
        and entry.seconds <= KILLED_WITHIN_SECONDS
    )


def _changed_packages() -> set[str]:
    night = targets.git("log", "-1", "--format=%H", "--", NIGHTS).strip()
    changed = targets.git("diff", "--name-only", night, "--", targets.PACKAGE) if night else ""
    return {_package(path) for path in changed.splitlines()}


def _package(path: str) -> str:
    return path.removeprefix(f"{targets.PACKAGE}/").partition("/")[0]


def test(tree: Tree, mutant: Mutant) -> Result:
    """Run the test that killed a mutant; where it is gone or passes, the folders of tests."""
    entry = evidence.entries()[mutant.identity]
    killer = entry.killer
    assert killer is not None
    with tree.applied(mutant):
        if exists(tree.folder, killer):
            result = tree.run([killer], seconds_for(entry.seconds))
            if result.status is not Status.SURVIVED:
                return result
        folders = [name for name in targets.folders(mutant.path) if (tree.folder / name).is_dir()]
        return tree.run(folders, FOLDERS_SECONDS_MAX)


def exists(folder: Path, test_name: str) -> bool:
    """Return whether a test is still there, by the name that pytest gives it."""
    path, _, name = test_name.partition("[")[0].partition("::")
    function = name.rpartition("::")[2]
    file = folder / path
    return file.is_file() and f"def {function}(" in file.read_text(encoding="utf-8")
