"""`python -m tests.corpus compare` replays all cases, `record` those that are not recorded yet.

Never record others again to get rid of a difference: `allowed.toml` has those that are meant.
"""

import argparse
import asyncio
import logging
import sys

from tests.corpus import recording
from tests.corpus.cases import CASES
from tests.corpus.replay import observe
from tests.support import databases
from tollhouse.storage import migrate


def main() -> int:
    """Run the command, and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("verb", choices=("record", "compare"))
    parser.add_argument("text", nargs="?", default="", help="only cases whose names have this")
    arguments = parser.parse_args()
    # The gateway warns of every fault.
    logging.getLogger("tollhouse").setLevel(logging.ERROR)
    recorded = recording.read()
    named = [name for name in CASES if arguments.text in name]
    if arguments.verb == "record":
        found = asyncio.run(_observed([name for name in named if name not in recorded]))
        recording.write(
            {name: parts for name, parts in (recorded | found).items() if name in CASES}
        )
        return 0
    rules, found = recording.allowed(), asyncio.run(_observed(named))
    told = recording.differences(found, recorded, rules)
    if not arguments.text:
        told += [f"no case any more: {name}\n" for name in recorded.keys() - CASES.keys()]
        told += [f"allowed, and does not occur: {rule.reason}\n" for rule in rules if not rule.uses]
    sys.stdout.write("".join(told) + f"{len(found)} cases, {len(told)} kinds of differences\n")
    return 1 if told else 0


async def _observed(names: list[str]) -> recording.Texts:
    async with databases.temporary() as url:
        await migrate.migrate(url)
        return await observe(url, names)


if __name__ == "__main__":
    sys.exit(main())
