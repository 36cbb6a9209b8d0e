"""`python -m tests.endurance`: long runs, with figures kept in docs/evidence, and their plots."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from tests.endurance import kills, plots, soak
from tests.endurance.plots import EVIDENCE
from tests.endurance.stage import running_stage
from tests.support import seeds


async def run_kills() -> Mapping[str, object]:
    """Run what is left of the kills, and return the figures of all rounds.

    SIGTERM and SIGINT end the round, and the servers that it started.
    """
    running = asyncio.current_task()
    assert running is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    count = int(os.environ["TOLLHOUSE_KILLS"])
    rounds = await kills.run(EVIDENCE / "kills.jsonl", kills=count, chance=seeds.chance())
    return kills.summary(rounds)


async def run_soak() -> Mapping[str, object]:
    """Run the mixed traffic, and return its figures."""
    seconds = 60 * int(os.environ["TOLLHOUSE_SOAK_MINUTES"])
    with TemporaryDirectory(prefix="tollhouse-soak-") as folder:
        async with running_stage(Path(folder), **soak.SERVICE) as stage:
            result = await soak.soak(
                stage,
                Path(folder),
                seeds.chance(),
                seconds=seconds,
                saturate_seconds=soak.SATURATE_SECONDS,
                restart_seconds=soak.RESTART_SECONDS,
            )
    with (EVIDENCE / "soak.jsonl").open("ab") as kept:
        kept.write(msgspec.json.encode(result) + b"\n")
    return soak.summary(result)


def main() -> int:
    """Run what the first word says; a run's last line is one JSON object. Returns the status."""
    parser = argparse.ArgumentParser(prog="python -m tests.endurance", description=__doc__)
    runs = {"kills": run_kills, "soak": run_soak}
    parser.add_argument("what", choices=[*sorted(runs), "plots"])
    what = parser.parse_args().what
    if what == "plots":
        plots.write()
        return 0
    found = asyncio.run(runs[what]())
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    return 1 if found["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
