"""Processor time, memory and place of processes, as the kernel counts them."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_PARENT, _USER_TICKS, _SYSTEM_TICKS = 1, 11, 12
_RESIDENT_PAGES: Final = 1


def cores() -> tuple[set[int], set[int]]:
    """Where the measured process runs, and where all others do: the same core if it is alone."""
    first, *others = sorted(os.sched_getaffinity(0))
    return {first}, set(others) or {first}


def pin(process: int, where: set[int]) -> None:
    """Every thread that a process has now; what they start later follows them."""
    for thread in Path(f"/proc/{process}/task").iterdir():
        os.sched_setaffinity(int(thread.name), where)


def children(process: int) -> list[int]:
    """Of its first thread, which is the one that starts others here."""
    return [int(child) for child in _read(process, f"task/{process}/children").split()]


def parent(process: int) -> int:
    """Return the process that started it."""
    return int(_fields(process)[_PARENT])


def tree(process: int) -> list[int]:
    """Return a process and all that it has started, directly or not; none if it has ended."""
    found: list[int] = []
    # A thread may end between being listed and being read.
    with suppress(FileNotFoundError, ProcessLookupError):
        threads = list(Path(f"/proc/{process}/task").iterdir())
        found.append(process)
        for thread in threads:
            with suppress(FileNotFoundError, ProcessLookupError):
                started = _read(process, f"task/{thread.name}/children").split()
                found.extend(each for child in started for each in tree(int(child)))
    return found


def cpu_seconds(process: int) -> float:
    """Used since it started, by user and system; a process that has ended has used none."""
    try:
        fields = _fields(process)
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])) / TICKS_PER_SECOND


def cpu_seconds_by_process(processes: Iterable[int]) -> dict[int, float]:
    """Of each, so that those which come and go between two readings can be told."""
    return {process: cpu_seconds(process) for process in processes}


def memory_mb(process: int) -> float:
    """Resident."""
    return int(_read(process, "statm").split()[_RESIDENT_PAGES]) * PAGE_BYTES / 1e6


def _fields(process: int) -> list[str]:
    # The name, in brackets, may hold spaces.
    return _read(process, "stat").rpartition(")")[2].split()


def _read(process: int, name: str) -> str:
    return Path(f"/proc/{process}/{name}").read_text(encoding="utf-8")
