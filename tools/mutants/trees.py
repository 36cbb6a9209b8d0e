"""Copies of the repository, in which mutants are applied and tests are run."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Final

import msgspec

from tools.mutants import targets
from tools.mutants.mutant import Mutant
from tools.mutants.processes import MARK, kill_marked

SECONDS_MIN: Final = 45.0
SECONDS_FACTOR: Final = 4.0
FLAGS: Final = (
    *(
        "-x",
        "-q",
        "--no-header",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "-p",
        "tools.mutants.outcome",
    ),
    *("-p", "no:schemathesis", "--hypothesis-seed=0", "-o", "faulthandler_timeout=0"),
    # The server has imported them before.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)


class Status(StrEnum):
    """What the tests said of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed_out"
    SURVIVED = "survived"
    UNTESTED = "untested"
    """No recorded test runs it."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one run of tests."""

    status: Status
    seconds: float
    killer: str | None = None


class Tree:
    """One copy. At most one mutant is applied in it at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._moments = count(1_000_000_000)
        self._server: subprocess.Popen[str] | None = None

    @contextmanager
    def applied(self, mutant: Mutant) -> Generator[None]:
        """Apply a mutant for a while. Each gets a time of its own, so no bytecode is stale."""
        path = self.folder / mutant.path
        text, times = path.read_bytes(), path.stat()
        path.write_bytes(mutant.apply(text))
        moment = next(self._moments)
        os.utime(path, (moment, moment))
        try:
            yield
        finally:
            path.write_bytes(text)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def run(self, tests: Sequence[str], seconds_max: float) -> Result:
        """Run tests until one fails. What takes longer than the given time is a failure too."""
        failed, running = self._notes()
        failed.unlink(missing_ok=True)
        running.unlink(missing_ok=True)
        chosen = self.folder / "chosen"
        chosen.write_text("\n".join(tests), encoding="utf-8")
        began = time.monotonic()
        code = self._answer([seconds_max, *FLAGS, f"@{chosen}"])
        seconds = round(time.monotonic() - began, 1)
        if code == 0:
            return Result(status=Status.SURVIVED, seconds=seconds)
        status = Status.KILLED if failed.exists() else Status.TIMED_OUT
        note = failed if failed.exists() else running
        if note.exists():
            killer = note.read_text(encoding="utf-8")
            return Result(status=status, seconds=seconds, killer=killer)
        # Nothing was run: the mutant cannot be imported, or takes all the time to be.
        return Result(status=Status.TIMED_OUT if code is None else Status.KILLED, seconds=seconds)

    def close(self) -> None:
        """End the server and all that was started by its tests."""
        kill_marked(str(self.folder), spared=None)
        if self._server is not None:
            self._server.wait()

    def _notes(self) -> tuple[Path, Path]:
        """Return the files in which the plugin writes the failed and the running test."""
        return self.folder / "failed", self.folder / "running"

    def _answer(self, request: list[float | str]) -> int | None:
        server = self._server = self._server or self._started()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(f"{json.dumps(request)}\n")
        server.stdin.flush()
        code = json.loads(server.stdout.readline())
        kill_marked(str(self.folder), spared=server.pid)
        return code

    def _started(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            (sys.executable, "-m", "tools.mutants.server"),
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _environment(self) -> dict[str, str]:
        failed, running = self._notes()
        return {
            **{name: value for name, value in os.environ.items() if name not in _LEFT_OUT},
            "PYTHONPATH": f"{self.folder / 'src'}:{self.folder}",
            "TOLLHOUSE_MUTANTS_FAILED": str(failed),
            "TOLLHOUSE_MUTANTS_RUNNING": str(running),
            MARK: str(self.folder),
        }


_LEFT_OUT: Final = frozenset({"PYTHONDONTWRITEBYTECODE"})


def seconds_for(tests_seconds: float) -> float:
    """Return how long tests may take that took `tests_seconds` when they were recorded."""
    return SECONDS_MIN + SECONDS_FACTOR * tests_seconds


@contextmanager
def copies(root: Path, count_of_trees: int) -> Generator[list[Tree]]:
    """Yield copies of what git tracks or would track."""
    with tempfile.TemporaryDirectory(prefix="tollhouse-mutants-") as name:
        trees = [_copy(root, Path(name) / str(number)) for number in range(count_of_trees)]
        try:
            yield trees
        finally:
            for tree in trees:
                tree.close()


def _copy(root: Path, folder: Path) -> Tree:
    listed = targets.git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name)
    (folder / ".venv").symlink_to(root / ".venv")
    return Tree(folder)
