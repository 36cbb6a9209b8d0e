"""`python -m tools.killed_runs`: end runs of `.ci/run` at random moments, see what is left.

Some seconds after a run was ended by a signal, none of its processes, listening ports, databases,
folders and shared memory may be left.
"""

import argparse
import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import asyncpg

from tests.support.databases import SERVER_URL
from tools.mutants import targets

STAGES: Final = ("tests", "clock", "walk", "mutants", "simulation", "types", "docs", "console")
RUNS: Final = 10
MOMENT_SECONDS_MAX: Final = 60.0
GONE_WITHIN_SECONDS: Final = 10.0
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
_LISTENING: Final = re.compile(r"^ *\d+: \S+:([0-9A-F]{4}) \S+ 0A ", re.MULTILINE)


def main() -> int:
    """Try all runs. Returns 1 if one left anything behind."""
    parser = argparse.ArgumentParser(prog="python -m tools.killed_runs", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(targets.git("rev-parse", "HEAD")[:7], 16))
    generator = random.Random(parser.parse_args().seed)  # noqa: S311 - no secret
    failed = 0
    for number in range(RUNS):
        stage = STAGES[number % len(STAGES)]
        seconds, by = generator.uniform(1, MOMENT_SECONDS_MAX), generator.choice(SIGNALS)
        left = _left_by(stage, seconds, by)
        failed += bool(left)
        found = ", ".join(sorted(left)) or "nothing"
        print(f"{stage} after {seconds:.1f} s by {by.name}: left {found}", flush=True)
    print(f"{RUNS - failed} passed, {failed} failed")
    return 1 if failed else 0


def _left_by(stage: str, seconds: float, by: signal.Signals) -> set[str]:
    """Run a stage, end it, and return what is there since."""
    before = _present()
    command = ("bash", ".ci/run", stage)
    with subprocess.Popen(  # noqa: S603 - a command of our own
        command,
        cwd=targets.ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as run:
        with suppress(subprocess.TimeoutExpired):
            run.wait(seconds)
        with suppress(ProcessLookupError):
            os.kill(run.pid, by)
        deadline = time.monotonic() + GONE_WITHIN_SECONDS
        left = _present() - before
        while (run.poll() is None or left) and time.monotonic() < deadline:
            time.sleep(0.2)
            left = _present() - before
        if run.poll() is None:
            left.add("the run itself")
            run.kill()
    return left


def _present() -> set[str]:
    """Return the processes of runs, and all ports, databases, folders and shared memory."""
    found = {f"database {name}" for name in asyncio.run(_databases())}
    for path in Path("/proc").iterdir():
        with suppress(OSError):
            if path.name.isdigit() and b"TOLLHOUSE_RUN=" in (path / "environ").read_bytes():
                found.add(f"process {path.name}")
    for table in ("tcp", "tcp6"):
        ports = _LISTENING.findall(Path("/proc/net", table).read_text("ascii"))
        found |= {f"port {int(port, 16)}" for port in ports}
    for folder in {"/dev/shm", "/tmp", tempfile.gettempdir()}:  # noqa: S108 - only listed
        found |= {f"folder {path}" for path in Path(folder).iterdir()}
    shared = Path("/proc/sysvipc/shm").read_text("ascii").splitlines()[1:]
    return found | {f"shared memory {line.split()[1]}" for line in shared}


async def _databases() -> list[str]:
    connection = await asyncpg.connect(f"{SERVER_URL}/postgres")
    try:
        return [row["datname"] for row in await connection.fetch("SELECT datname FROM pg_database")]
    finally:
        await connection.close()


if __name__ == "__main__":
    sys.exit(main())
