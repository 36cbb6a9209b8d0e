"""`python -m tools.nightly [PART ...]`: run the parts of the nightly check, and record each.

A part that is green on this commit is not run again, so that an interrupted night goes on where it
was. `status` says for each part when it was last green and what has changed since.
"""

import argparse
import os
import re
import subprocess
import sys
import threading
import time
import tomllib
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tests.support import calendar_dates
from tollhouse.base.clock import SystemClock
from tools import long_runs
from tools.mutants.processes import MARK, kill_marked

PARTS = Path(__file__).with_suffix(".toml")
EVIDENCE = long_runs.ROOT / "docs" / "evidence" / "nightly.jsonl"
PART_SECONDS_MAX = 45 * 60
LINES_READ = 20
"""The end of what a command printed, in which figures are looked for."""
_FIGURES = re.compile(r"(\d+) (passed|failed|skipped|errors?|survived|killed)")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Commands for the shell that cover these paths."""

    paths: list[str]
    commands: list[str]


class PartRun(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the evidence."""

    part: str
    commit: str
    date: str
    seconds: int
    outcome: str
    figures: dict[str, int]


def parts() -> dict[str, Part]:
    """Return all parts, among them one for each date of the calendar."""
    listed = msgspec.convert(tomllib.loads(PARTS.read_text(encoding="utf-8")), dict[str, Part])
    for name in (*calendar_dates.DATES, *calendar_dates.CHANGES):
        command = f"TOLLHOUSE_DATE={name} bash .ci/run tests"
        listed[f"calendar {name}"] = Part(paths=["src/tollhouse", "tests"], commands=[command])
    return listed


def runs() -> list[PartRun]:
    """Return all recorded runs, the oldest first."""
    if not EVIDENCE.exists():
        return []
    return [msgspec.json.decode(line, type=PartRun) for line in EVIDENCE.read_bytes().splitlines()]


def run(name: str, part: Part) -> bool:
    """Run one part, append its line, and return whether it is green."""
    print(f"== {name}", flush=True)
    began, outcome, figures = time.monotonic(), "green", dict[str, int]()
    for command in part.commands:
        code, printed = _shell(command, PART_SECONDS_MAX - (time.monotonic() - began))
        figures |= {word: int(count) for count, word in _FIGURES.findall(printed)}
        if code != 0:
            outcome = "out of time" if code is None else "red"
            break
    line = PartRun(
        part=name,
        commit=long_runs.current_commit(),
        date=SystemClock().now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=round(time.monotonic() - began),
        outcome=outcome,
        figures=figures,
    )
    with EVIDENCE.open("ab") as evidence:
        evidence.write(msgspec.json.encode(line) + b"\n")
    print(f"== {name}: {outcome} in {line.seconds} s, {figures}", flush=True)
    return outcome == "green"


def _shell(command: str, seconds_max: float) -> tuple[int | None, str]:
    """Return the status of a command, None if it took too long, and the end of what it printed."""
    environment = os.environ | {MARK: command}
    with subprocess.Popen(  # noqa: S602 - a command of our own
        command,
        shell=True,
        cwd=long_runs.ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        timer = threading.Timer(max(seconds_max, 1), kill_marked, (command,), {"spared": None})
        timer.start()
        assert process.stdout is not None
        last = deque[str](maxlen=LINES_READ)
        for line in process.stdout:
            print(line, end="", flush=True)
            last.append(line)
    is_late = not timer.is_alive()
    timer.cancel()
    return None if is_late else process.returncode, "".join(last)


def status() -> Iterator[str]:
    """Yield a line for each part: when it was last green, and what changed since in its paths."""
    recorded = runs()
    for name, part in parts().items():
        green = [one for one in recorded if one.part == name and one.outcome == "green"]
        if not green:
            yield f"{name:24} never green"
            continue
        commit = green[-1].commit.removesuffix("-dirty")
        behind = long_runs.git("rev-list", "--count", f"{commit}..HEAD")
        changed = long_runs.git("diff", "--name-only", commit, "--", *part.paths).splitlines()
        yield (
            f"{name:24} green at {commit} ({green[-1].date[:10]}, {green[-1].seconds} s),"
            f" {behind or 'unknown'} commits ago, {len(changed)} files changed in its paths"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named parts, or all; return 1 if one is not green."""
    asked = argparse.ArgumentParser(prog="python -m tools.nightly", description=__doc__)
    asked.add_argument("part", nargs="*", help="parts by name or first word, or `status`")
    wanted = asked.parse_args(arguments).part
    if wanted == ["status"]:
        print("\n".join(status()))
        return 0
    listed = {
        name: part
        for name, part in parts().items()
        if not wanted or name in wanted or name.partition(" ")[0] in wanted
    }
    if not listed:
        print(f"no such part; there are: {', '.join(parts())}", file=sys.stderr)
        return 2
    commit = long_runs.current_commit()
    done = {one.part for one in runs() if one.commit == commit and one.outcome == "green"}
    outcomes = [run(name, part) for name, part in listed.items() if name not in done]
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
