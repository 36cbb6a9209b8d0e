"""Where a worker spends its time: samples of its stacks, by the part that is at work."""

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SAMPLES_PER_SECOND: Final = 400
OTHER: Final = "event loop: waiting, reading, timers"
PARTS: Final[Mapping[str, str]] = {
    "serving": "HTTP server: parsing and writing",
    "api": "edge: route, key, body, reply",
    "keys": "edge: route, key, body, reply",
    "contract": "options and rendering",
    "inference": "options and rendering",
    "limits": "limits over Redis",
    "ledger": "ledger and PostgreSQL",
    "backends": "backend: routing, client, decoding",
    "observability": "log, metrics, records of requests",
    "activity": "log, metrics, records of requests",
}
MAIN: Final = "serving/worker.py:"
"""Below every other frame: what only it contains is the event loop's."""


async def taken(process: int, folder: Path, *, seconds: float) -> Counter[str]:
    """Return the samples of each part; py-spy reads them from outside without stopping it."""
    output = folder / "samples.txt"
    program = Path(sys.executable).parent / "py-spy"
    profiler = await asyncio.create_subprocess_exec(
        *(str(program), "record", "--nonblocking", "--full-filenames"),
        *("--format", "raw", "--rate", str(SAMPLES_PER_SECOND), "--duration", str(round(seconds))),
        *("--output", str(output), "--pid", str(process)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert await profiler.wait() == 0, "py-spy could not read the worker"
    found = Counter[str]()
    for line in output.read_text(encoding="utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        found[part_of(stack.split(";"))] += int(count)
    return found


def part_of(frames: list[str]) -> str:
    """Return the part of the innermost frame that is of one, whatever library it calls."""
    for frame in reversed(frames):
        _, is_of_tollhouse, place = frame.rpartition("/tollhouse/")
        package = place.partition("/")[0]
        if is_of_tollhouse and package in PARTS and not place.startswith(MAIN):
            return PARTS[package]
    return OTHER
