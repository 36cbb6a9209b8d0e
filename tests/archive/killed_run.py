"""A process that archives, and kills itself at the n-th turn of its event loop.

`python -m tests.archive.killed_run DATABASE_URL FILES_URL TURN`
"""

import asyncio
import os
import signal
import sys

from tests.archive.past_days import archive_all
from tests.support.gateway import settings_for
from tollhouse.archive.files import ArchiveFiles
from tollhouse.pools import connect


class MortalLoop(asyncio.SelectorEventLoop):
    """Dies at its n-th turn, without a word."""

    def __init__(self, last_turn: int) -> None:
        super().__init__()
        self._last_turn = last_turn
        self.turns = 0

    def _run_once(self) -> None:
        self.turns += 1
        if self.turns == self._last_turn:
            os.kill(os.getpid(), signal.SIGKILL)
        super()._run_once()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - of asyncio


async def run(database_url: str, files_url: str) -> None:
    """Archive all days."""
    database = await connect(settings_for(database_url))
    await archive_all(database, ArchiveFiles(files_url))
    await database.close()


async def run_and_die(database_url: str, files_url: str, turn: int) -> int:
    """Run in a process that kills itself at this turn; return its exit code."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, database_url, files_url, str(turn))
    )
    return await process.wait()


def main() -> None:
    """See above."""
    database_url, files_url, turn = sys.argv[1:]
    loop = MortalLoop(int(turn))
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(run(database_url, files_url))


if __name__ == "__main__":
    main()
