"""The committed record: what was tested, with which result, and why a survivor is accepted."""

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from tools.mutants import targets
from tools.mutants.trees import Status

FOLDER: Final = targets.ROOT / "docs" / "evidence"
RESULTS: Final = FOLDER / "mutants.jsonl"
RUNS: Final = FOLDER / "mutants-runs.jsonl"
ACCEPTED: Final = FOLDER / "mutants-accepted.toml"
PAGE: Final = FOLDER / "mutants.md"

HEAD: Final = """\
# Mutation testing

> A mutant is the source with one small change; a test has to fail because of it.

`make mutants` changes one place on a request's path, of administration or of the command line at \
a time and runs the tests that run this place. [0016](../decisions/0016-mutants.md) says how. \
`mutants.jsonl` has a line for each mutant with the test that killed it; CI checks a sample of \
these again. `mutants-accepted.toml` says why a survivor is accepted. \
`python -m tools.mutants --page` writes this page.
"""


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One mutant of the record."""

    mutant: str
    status: Status
    seconds: float
    killer: str | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run that was recorded."""

    date: str
    commit: str
    command: str
    mutants: int
    killed: int
    timed_out: int
    survived: int
    untested: int


def entries() -> dict[str, Entry]:
    """Return the record, by the identity of each mutant."""
    read = _lines(RESULTS)
    found = (msgspec.json.decode(line, type=Entry) for line in read)
    return {entry.mutant: entry for entry in found}


def accepted() -> dict[str, str]:
    """Return the reasons, by the identity of each mutant."""
    if not ACCEPTED.exists():
        return {}
    tables = tomllib.loads(ACCEPTED.read_text(encoding="utf-8"))["accepted"]
    return {table["mutant"]: table["reason"] for table in tables}


def note(found: Iterable[Entry]) -> None:
    """Write results over those that the record has of the same mutants."""
    FOLDER.mkdir(exist_ok=True)
    kept = entries() | {entry.mutant: entry for entry in found}
    _write(RESULTS, [kept[name] for name in sorted(kept)])


def add(run: Run) -> None:
    """List a run."""
    _write(RUNS, [*_runs(), run])


def counted(found: Iterable[Entry]) -> Counter[Status]:
    """Return how many mutants have each status."""
    return Counter(entry.status for entry in found)


def write_page() -> None:
    """Write the page from the record."""
    found = entries()
    left = {name: entry for name, entry in found.items() if entry.status in ALIVE}
    PAGE.write_text(_page(found, left, accepted()), encoding="utf-8")


ALIVE: Final = frozenset({Status.SURVIVED, Status.UNTESTED})


def _page(found: Mapping[str, Entry], left: Mapping[str, Entry], reasons: Mapping[str, str]) -> str:
    counts = counted(found.values())
    dead = len(found) - len(left)
    rows = "".join(
        f"| {run.date} | `{run.commit[:10]}` | `{run.command}` | {run.mutants} | {run.killed} |"
        f" {run.timed_out} | {run.survived + run.untested} |\n"
        for run in _runs()
    )
    survivors = "".join(
        f"- `{name}`: {reasons.get(name, 'no reason is given yet')}\n" for name in sorted(left)
    )
    return (
        f"{HEAD}\n## Score\n\n{dead} of {len(found)} mutants are killed, "
        f"{counts[Status.TIMED_OUT]} of them because the tests did not end.\n\n"
        "## Runs\n\n| date | commit | command | mutants | killed | timed out | survived |\n"
        f"|---|---|---|---|---|---|---|\n{rows}\n## Survivors\n\n{survivors}"
    )


def _runs() -> list[Run]:
    return [msgspec.json.decode(line, type=Run) for line in _lines(RUNS)]


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _write(path: Path, items: Iterable[Entry | Run]) -> None:
    lines = [msgspec.json.encode(item).decode() for item in items]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
