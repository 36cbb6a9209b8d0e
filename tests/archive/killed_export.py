"""A process that exports and kills itself at the n-th turn of its event loop.

`python -m tests.archive.killed_export DATABASE_URL EXPORT_URL TURN`
"""

import asyncio
import sys

from tests.archive.exported_days import export, settings_with
from tests.archive.killed_run import MortalLoop
from tollhouse.pools import connect


async def run(database_url: str, url: str) -> None:
    settings = settings_with(database_url, url)
    database = await connect(settings)
    await export(database, settings)
    await database.close()


def main() -> None:
    """See above."""
    database_url, url, turn = sys.argv[1:]
    loop = MortalLoop(int(turn))
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(run(database_url, url))


if __name__ == "__main__":
    main()
