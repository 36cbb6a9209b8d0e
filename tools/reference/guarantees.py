"""The page of guarantees, from the marks `pytest.mark.guarantee` in the tests.

A size is a count that the marked test reads from the environment: its default is the size in CI,
its value in `make test-long` the full one.
"""

import ast
import re
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from tools import long_runs
from tools.long_runs import LongRun
from tools.reference.tables import code, table

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PROMISES = Path(__file__).with_suffix(".toml")
MARK = "pytest.mark.guarantee"
DEFAULT = re.compile(r'int\(os\.environ\.get\("(TOLLHOUSE_\w+)", "(\d+)"\)\)')
FULL = re.compile(r"(TOLLHOUSE_\w+)=(\d+)")
IMPORTED = re.compile(r"^from (tests[\w.]*) import (\w+)", re.MULTILINE)
OWN_COMMANDS: dict[str, tuple[str, Literal["seconds", "cases"]]] = {
    "TOLLHOUSE_FUZZ_SECONDS": ("python -m tests.fuzz", "seconds"),
    "TOLLHOUSE_SIMULATION_EVERY": ("python -m tests.simulation run", "cases"),
    "TOLLHOUSE_SIMULATION_SEEDS": ("python -m tests.simulation run", "cases"),
}
"""Counts whose long runs have a command of their own, and what is its size."""
HEAD = """\
# Guarantees and their tests

What Tollhouse promises, and the files of the tests that prove it: those marked with, say,
`guarantee("T1")`. CI runs them all. A size is the count in CI → the full one of tests that take it
from the environment. `TOLLHOUSE_KILLS=1000 .venv/bin/pytest tests/faults/test_many_kills.py` runs
one in full, `make test-long` all; `docs/evidence/long-runs.jsonl` records such runs. *No run* means
that it has none of this size without a finding.
"""


class Promise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row: `also` proves it beside tests, `gap` says what is not proven and why."""

    promise: str
    also: str = ""
    gap: str = ""


def page() -> str:
    """Return the page. Raises ValueError if a promise is unproven or a mark names none."""
    groups = msgspec.convert(
        tomllib.loads(PROMISES.read_text("utf-8")), dict[str, dict[str, Promise]]
    )
    tests = marked(TESTS)
    promises = {name: each for group in groups.values() for name, each in group.items()}
    if found := problems(promises, tests):
        raise ValueError("\n".join(found))
    return HEAD + "".join(
        f"\n## {title}\n\n"
        + table(
            ("", "promise", "proven by", "size"),
            (_row(name, each, tests.get(name, [])) for name, each in group.items()),
        )
        for title, group in groups.items()
    )


def marked(folder: Path) -> dict[str, list[tuple[Path, str]]]:
    """Return the files and names of the tests that are marked with each promise."""
    found = defaultdict[str, list[tuple[Path, str]]](list)
    for path in sorted(folder.rglob("test_*.py")):
        if MARK in (text := path.read_text("utf-8")):
            for name, promise in _marks(ast.parse(text)):
                found[promise].append((path, name))
    return found


def problems(promises: Mapping[str, Promise], tests: Collection[str]) -> list[str]:
    """Return what is wrong: marks without a promise, and promises without test or reason."""
    unknown = sorted(set(tests) - set(promises))
    unproven = [
        name
        for name, each in promises.items()
        if name not in tests and not each.also and not each.gap
    ]
    return [
        *(f"a test is marked with {name}, which {PROMISES.name} does not have" for name in unknown),
        *(
            f"{name} has no marked test: mark one, or say the reason in {PROMISES.name}"
            for name in unproven
        ),
    ]


def _marks(module: ast.Module) -> Iterator[tuple[str, str]]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for each in node.decorator_list:
                if isinstance(each, ast.Call) and ast.unparse(each.func) == MARK:
                    yield from ((node.name, ast.literal_eval(argument)) for argument in each.args)


def _row(name: str, promise: Promise, tests: Iterable[tuple[Path, str]]) -> tuple[str, ...]:
    files = sorted({path for path, _ in tests})
    proofs = [code(path.relative_to(TESTS).as_posix()) for path in files]
    sizes = {size for path in files for size in _sizes(path)}
    gap = f" **Not proven:** {promise.gap}" if promise.gap else ""
    return (
        name,
        promise.promise + gap,
        ", ".join([*proofs, *filter(None, [promise.also])]),
        "; ".join(sorted(sizes)),
    )


def _sizes(path: Path) -> Iterator[str]:
    """Yield the counts that a file of tests, or a module that it imports, reads."""
    text = path.read_text("utf-8")
    folders = [(ROOT / module.replace(".", "/"), name) for module, name in IMPORTED.findall(text)]
    modules = {each for folder, name in folders for each in (folder, folder / name)}
    texts = [_text(module.with_suffix(".py")) for module in modules]
    for name, default in DEFAULT.findall("".join([text, *texts])):
        if (full := _full_size(path, name)) is not None:
            lacking = "" if is_recorded(path, name, full, long_runs.read()) else " (no run)"
            yield f"{code(name)} {int(default):,} → {full:,}{lacking}"


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def _full_size(path: Path, name: str) -> int | None:
    """Return a count of a file in `make test-long`, or None if it does not run the file with it."""
    return next(
        (size for command in _long_commands() if (size := _size_in(command, path, name))), None
    )


def is_recorded(path: Path, name: str, size: int, runs: Iterable[LongRun]) -> bool:
    """Whether a run of the file with a count of this size, or more, found nothing."""
    return any(_size_of(run, path, name) >= size for run in runs if not run.findings)


def _size_of(run: LongRun, path: Path, name: str) -> int:
    command, measure = OWN_COMMANDS.get(name, (None, "cases"))
    if command is not None and run.command.startswith(command):
        return getattr(run, measure)
    return _size_in(run.command, path, name) or 0


def _size_in(command: str, path: Path, name: str) -> int | None:
    """Return a count that a command runs a file of tests with, or None."""
    targets = [ROOT / word for word in command.split() if word.startswith("tests/")]
    sizes = dict(FULL.findall(command))
    if name in sizes and any(path.is_relative_to(target) for target in targets):
        return int(sizes[name])
    return None


@cache
def _long_commands() -> tuple[str, ...]:
    printed = subprocess.run(
        ["make", "--dry-run", "test-long"],  # noqa: S607 - the one that a contributor has
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return tuple(printed.replace("\\\n", " ").splitlines())
