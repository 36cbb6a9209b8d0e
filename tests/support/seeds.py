"""One seed for all random tests of a run: TOLLHOUSE_SEED, or else a number of the commit.

So every commit is tried with other cases, and the same commit with the same ones. A test takes its
generator from `chance`, or its seed from `seed`, inside the test: its failure then comes with the
command that repeats it.
"""

import os
import random
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAME = "TOLLHOUSE_SEED"
WITHOUT_COMMIT = 1
"""The seed where there is no repository, such as in an unpacked archive."""
_DIGITS = 8
_NOT_REPEATED = {NAME, "TOLLHOUSE_TEST_POSTGRES"}

_used: set[str] = set()


def of_run() -> int:
    """Return the seed without noting that a test used it."""
    given = os.environ.get(NAME)
    return int(given) if given else _of_commit()


def seed() -> int:
    """Return the seed for the running test, whose failure will tell it."""
    _used.add(_running_test())
    return of_run()


def chance(*parts: object) -> random.Random:
    """Return a generator for the running test; other `parts` make another one of the same seed."""
    return random.Random(" ".join(map(str, (seed(), *parts))))  # noqa: S311 - no secret


def partly_nightly(cases: Iterable[object], *, at_landings: int) -> list[object]:
    """Return all as parameters; the commit draws which are not nightly."""
    known = list(cases)
    drawn = random.Random(of_run()).sample(known, at_landings)  # noqa: S311 - no secret
    return [
        each if each in drawn else pytest.param(each, marks=pytest.mark.nightly) for each in known
    ]


def is_used_by(node_id: str) -> bool:
    """Whether a test took the seed."""
    return node_id in _used


def repeating(node_id: str) -> str:
    """Return the command that runs a test again with the same seed and the same counts."""
    counts = {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith("TOLLHOUSE_") and name not in _NOT_REPEATED
    }
    settings = [f"{name}={shlex.quote(value)}" for name, value in counts.items()]
    words = [f"{NAME}={of_run()}", *settings, ".venv/bin/pytest", shlex.quote(node_id)]
    return " ".join(words)


def _running_test() -> str:
    """The node that pytest runs, as it says itself; the stage in brackets is not part of it."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]


@cache
def _of_commit() -> int:
    git = shutil.which("git")
    if git is None:
        return WITHOUT_COMMIT
    head = subprocess.run(
        [git, "rev-parse", "HEAD"], cwd=ROOT, check=False, capture_output=True, text=True
    ).stdout.strip()
    return int(head[:_DIGITS], 16) if head else WITHOUT_COMMIT
