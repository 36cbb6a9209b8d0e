"""`python -m tests.fuzz [TARGET ...] [--seconds N] [--keep] [--json]`: look for inputs that break.

With `--keep`, the inputs that reach new code are stored for later runs, and each run is recorded in
docs/evidence/long-runs.jsonl. The last line is one JSON object; the status is 1 if anything was
found.
"""

import argparse
import json
import sys
from dataclasses import asdict

from tests.fuzz import corpus
from tests.fuzz.running import FuzzResult, fuzz
from tools import long_runs


def main() -> int:
    """Run the targets one after the other."""
    parser = argparse.ArgumentParser(prog="tests.fuzz")
    parser.add_argument("targets", nargs="*", default=corpus.TARGETS, metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=900, help="for each target")
    parser.add_argument("--keep", action="store_true", help="store inputs that reach new code")
    parser.add_argument("--json", action="store_true", help="print only the last line")
    asked = parser.parse_args()
    results: list[FuzzResult] = []
    for target in asked.targets:
        result = fuzz(target, seconds=asked.seconds, is_kept=asked.keep)
        results.append(result)
        if asked.keep:
            long_runs.append(
                command=f"python -m tests.fuzz {target}",
                first_seed=0,
                last_seed=0,
                seconds=result.seconds,
                cases=result.executions,
                findings=len(result.findings),
            )
        if not asked.json:
            sys.stdout.write(f"{result}\n")
    sys.stdout.write(json.dumps({"targets": [asdict(result) for result in results]}) + "\n")
    return int(any(result.findings for result in results))


if __name__ == "__main__":
    sys.exit(main())
