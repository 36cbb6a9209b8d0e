"""`python -m tests.endurance kills`: long runs, whose figures are kept in docs/evidence."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

import msgspec

from tests.endurance import kills
from tests.support import seeds

EVIDENCE = Path(__file__).parents[2] / "docs" / "evidence"


def main() -> int:
    """Run what the first word says; the last line is one JSON object. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.endurance", description=__doc__)
    parser.add_argument("what", choices=["kills"])
    parser.parse_args()
    rounds = asyncio.run(
        kills.run(
            EVIDENCE / "kills.jsonl",
            kills=int(os.environ["TOLLHOUSE_KILLS"]),
            chance=seeds.chance(),
        )
    )
    found = kills.summary(rounds)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    return 1 if found["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
