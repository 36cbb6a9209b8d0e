"""A process that archives and kills itself at the n-th turn of its event loop.

`python -m tests.archive.killed_run DATABASE_URL ARCHIVE_URL TURN` prints the turns that a run took,
if it comes to its end.
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


async def run(database_url: str, archive_url: str, loop: MortalLoop) -> int:
    """Archive all days, and return the turns from the first statement on."""
    database = await connect(settings_for(database_url))
    before = loop.turns
    await archive_all(database, ArchiveFiles(archive_url))
    after = loop.turns
    await database.close()
    return after - before


def main() -> None:
    """See above."""
    database_url, archive_url, turn = sys.argv[1:]
    loop = MortalLoop(int(turn))
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        sys.stdout.write(f"{runner.run(run(database_url, archive_url, loop))}\n")


if __name__ == "__main__":
    main()
