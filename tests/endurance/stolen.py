"""The processor time that the host of a virtual machine gave to others."""

from pathlib import Path
from typing import Final, NamedTuple

STAT: Final = Path("/proc/stat")
TIMES: Final = 8
"""The first line has so many times, the stolen one last; those after it are parts of others."""


class Ticks(NamedTuple):
    """The ticks of all processors since the machine started."""

    all: int
    stolen: int


def parsed(stat: str) -> Ticks:
    """Return the ticks that the text of `/proc/stat` has."""
    times = [int(word) for word in stat.splitlines()[0].split()[1 : TIMES + 1]]
    return Ticks(all=sum(times), stolen=times[-1])


def ticks() -> Ticks:
    """Return the ticks of this machine."""
    return parsed(STAT.read_text("ascii"))


def stolen_share(before: Ticks, after: Ticks) -> float:
    """Return the stolen share of the ticks between two moments, from 0 to 1."""
    passed = after.all - before.all
    return round((after.stolen - before.stolen) / passed, 4) if passed else 0.0
