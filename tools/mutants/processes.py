"""Processes that a run of tests has left behind."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

MARK: Final = "TOLLHOUSE_MUTANTS_TREE"


def kill_marked(value: str, *, spared: int | None) -> None:
    """Kill every process that inherited the mark with this value, but one."""
    mark = f"{MARK}={value}".encode()
    for process_id in _process_ids():
        with suppress(OSError):
            found = Path(f"/proc/{process_id}/environ").read_bytes().split(b"\0")
            if mark in found and process_id != spared:
                os.kill(process_id, signal.SIGKILL)


def _process_ids() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
