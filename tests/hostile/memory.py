"""How much memory a worker holds while something happens to it."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

ABOVE_BUDGET_MEGABYTES_MAX = 100.0
LEFT_BEHIND_MEGABYTES_MAX = 50.0
LOOK_EVERY_SECONDS = 0.02
GIVE_BACK_SECONDS_MAX = 10.0
MEGABYTE = 1024 * 1024


def resident_megabytes(pid: int) -> float:
    """Return the resident set of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE


class MemoryWatch:
    """The memory of one process: when the watch began, and its peak since."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.start_megabytes = self.peak_megabytes = round(resident_megabytes(pid), 1)

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Look at it again and again inside."""
        looking = asyncio.create_task(self._look())
        try:
            yield
        finally:
            looking.cancel()

    async def _look(self) -> None:
        while True:
            now_megabytes = round(resident_megabytes(self._pid), 1)
            self.peak_megabytes = max(self.peak_megabytes, now_megabytes)
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    def assert_bounded(self, budget_bytes: int) -> None:
        """The peak stayed within the budget and a fixed allowance."""
        grown = self.peak_megabytes - self.start_megabytes
        assert grown <= budget_bytes / MEGABYTE + ABOVE_BUDGET_MEGABYTES_MAX, (
            f"{grown:.0f} MB more than the {self.start_megabytes:.0f} MB at the start"
        )

    async def assert_given_back(self) -> None:
        """Soon the process is about as large as it was."""
        bound = self.start_megabytes + LEFT_BEHIND_MEGABYTES_MAX
        try:
            async with asyncio.timeout(GIVE_BACK_SECONDS_MAX):
                while resident_megabytes(self._pid) > bound:  # noqa: ASYNC110 - nothing announces it
                    await asyncio.sleep(LOOK_EVERY_SECONDS)
        except TimeoutError:
            left = resident_megabytes(self._pid) - self.start_megabytes
            message = f"{left:.0f} MB were not given back after {GIVE_BACK_SECONDS_MAX} s"
            raise AssertionError(message) from None
