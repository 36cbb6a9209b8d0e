"""`python -m tests.simulation`: run seeds, replay one, or take the scenarios apart."""

import argparse
import sys

from tests.simulation import exhaustive, runs
from tests.simulation.scenarios import scenarios
from tools import long_runs

COMMAND = "python -m tests.simulation run"
EXHAUSTIVE_COMMAND = "python -m tests.simulation exhaust"
KINDS = ("cancel", "drop", "kill", "stop", "pause")


def main() -> int:
    """Run the command, and return its exit status."""
    arguments = _parser().parse_args()
    if arguments.verb == "run":
        return _run(arguments)
    if arguments.verb == "replay":
        print(runs.explain(arguments.seed, is_whole=arguments.whole))
        return 0
    return _exhaust(arguments)


def _run(arguments: argparse.Namespace) -> int:
    first = _next_seed() if arguments.first is None else arguments.first
    tally = runs.run_seeds(
        first, seeds=arguments.seeds, seconds=arguments.seconds, processes=arguments.processes
    )
    print(
        f"seeds {tally.first} to {tally.last}: {tally.steps} steps in {tally.seconds:.0f} s,"
        f" {len(tally.failed)} failed"
    )
    if arguments.record:
        long_runs.append(
            command=COMMAND,
            first_seed=tally.first,
            last_seed=tally.last,
            seconds=tally.seconds,
            cases=tally.seeds,
            findings=len(tally.failed),
        )
    if tally.failed:
        print(f"failed: {tally.failed}")
    for seed in tally.failed[:1]:
        print(runs.explain(seed))
    return 1 if tally.failed else 0


def _next_seed() -> int:
    """Go on behind the last range that was recorded."""
    return max((run.last_seed + 1 for run in long_runs.read() if run.command == COMMAND), default=0)


def _exhaust(arguments: argparse.Namespace) -> int:
    cases, kinds = 0, KINDS if "all" in arguments.kinds else tuple(arguments.kinds)
    for name, plan in scenarios().items():
        for interruption in exhaustive.interruptions(plan, kinds):
            cases += 1
            result = exhaustive.run(plan, interruption)
            if result.violation is not None:
                print(f"{name}, {interruption}: {result.violation}\n{result.text()}")
                return 1
    print(f"{len(scenarios())} scenarios, {cases} interruptions, none broke a promise")
    if arguments.record:
        long_runs.append(
            command=EXHAUSTIVE_COMMAND,
            first_seed=0,
            last_seed=0,
            seconds=0,
            cases=cases,
            findings=0,
        )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="run a range of seeds")
    run.add_argument("--first", type=int, help="default: behind the last recorded range")
    run.add_argument("--seeds", type=int, default=1_000)
    run.add_argument("--seconds", type=float, default=float("inf"))
    run.add_argument("--processes", type=int, default=1)
    run.add_argument("--record", action="store_true", help="append to docs/evidence")
    replay = verbs.add_parser("replay", help="shrink one failing seed and print its trace")
    replay.add_argument("seed", type=int)
    replay.add_argument("--whole", action="store_true", help="print the trace of the whole plan")
    exhaust = verbs.add_parser("exhaust", help="interrupt every scenario at every place")
    exhaust.add_argument("kinds", nargs="*", default="all", choices=("all", *KINDS))
    exhaust.add_argument("--record", action="store_true", help="append to docs/evidence")
    return parser


if __name__ == "__main__":
    sys.exit(main())
