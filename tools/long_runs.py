"""`python -m tools.long_runs`: the record of long test runs in docs/evidence/long-runs.jsonl.

`append` adds one line, `sum` adds all lines up, and `run` runs a test command and appends its line.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tollhouse.base.clock import SystemClock

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "evidence" / "long-runs.jsonl"
COUNT = re.compile(r"TOLLHOUSE_[A-Z_]+=(\d+)")


class LongRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run: `cases` were tried with the seeds from `first_seed` to `last_seed`."""

    date: str
    commit: str
    command: str
    first_seed: int
    last_seed: int
    seconds: int
    cases: int
    findings: int


def append(
    *,
    command: str,
    first_seed: int,
    last_seed: int,
    seconds: float,
    cases: int,
    findings: int,
    path: Path = RECORDS,
) -> LongRun:
    """Add one run of the current commit to the records, and return it."""
    run = LongRun(
        date=SystemClock().now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        commit=current_commit(),
        command=command,
        first_seed=first_seed,
        last_seed=last_seed,
        seconds=round(seconds),
        cases=cases,
        findings=findings,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as records:
        records.write(msgspec.json.encode(run) + b"\n")
    return run


def read(path: Path = RECORDS) -> list[LongRun]:
    """Return all recorded runs, the oldest first."""
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=LongRun) for line in path.read_bytes().splitlines()]


def totals(runs: Sequence[LongRun]) -> list[str]:
    """Return a line with the sums of each command, and one with the sums of all."""
    commands = sorted({run.command for run in runs})
    lines = [_total(name, [run for run in runs if run.command == name]) for name in commands]
    return [*lines, _total("all", runs)]


def run_and_append(words: Sequence[str], path: Path = RECORDS) -> int:
    """Run a test command, append its record, and return its exit status.

    Words of the form TOLLHOUSE_X=<count> before the command become its environment; their sum is
    the number of cases. A failed command counts as one finding.
    """
    seed = int(os.environ.get("TOLLHOUSE_SEED") or SystemClock().now().timestamp())
    counts = [int(found[1]) for word in words if (found := COUNT.fullmatch(word))]
    begun = time.monotonic()
    seeded = ["/usr/bin/env", f"TOLLHOUSE_SEED={seed}", *words]
    status = subprocess.run(seeded, check=False).returncode  # noqa: S603 - the developer's own command
    append(
        command=" ".join(words),
        first_seed=seed,
        last_seed=seed,
        seconds=time.monotonic() - begun,
        cases=sum(counts),
        findings=int(status != 0),
        path=path,
    )
    return status


def current_commit() -> str:
    """Return the first 12 digits of HEAD, with `-dirty` if other files than a run's own changed."""
    head = git("rev-parse", "--short=12", "HEAD")
    others = (".", ":!docs/evidence", ":!tests/fuzz/inputs")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", *others)
    return (head or "unknown") + ("-dirty" if changed else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the action of the command line and return the exit status."""
    asked = _parser().parse_args(arguments)
    match asked.action:
        case "run":
            return run_and_append(asked.words, asked.path)
        case "sum":
            print("\n".join(totals(read(asked.path))))
        case _:
            fields = set(LongRun.__struct_fields__) - {"date", "commit"}
            append(path=asked.path, **{field: getattr(asked, field) for field in fields})
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.long_runs", description=__doc__)
    parser.add_argument("--path", type=Path, default=RECORDS)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("sum", help="add all recorded runs up")
    ran = actions.add_parser("run", help="run a test command and append its record")
    ran.add_argument("words", nargs=argparse.REMAINDER, help="TOLLHOUSE_X=<count> ... command")
    added = actions.add_parser("append", help="add one run of the current commit")
    added.add_argument("--command", required=True)
    added.add_argument("--seconds", type=float, required=True)
    for name in ("first-seed", "last-seed", "cases", "findings"):
        added.add_argument(f"--{name}", type=int, required=True)
    return parser


def _total(name: str, runs: Sequence[LongRun]) -> str:
    seeds = sum(run.last_seed - run.first_seed + 1 for run in runs)
    cases = sum(run.cases for run in runs)
    hours = sum(run.seconds for run in runs) / 3600
    findings = sum(run.findings for run in runs)
    return (
        f"{name}: {len(runs)} runs, {seeds} seeds, {cases:,} cases,"
        f" {hours:.1f} hours, {findings} findings"
    )


def git(*words: str) -> str:
    """Return what git prints, or nothing without git or a repository."""
    if (git := shutil.which("git")) is None:
        return ""
    return subprocess.run(  # noqa: S603 - only the words above
        [git, *words], cwd=ROOT, check=False, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
