"""`python -m tools.mutants`: change the source one place at a time and see which tests notice."""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from tools.mutants import evidence, generating, known, planted, record, reporting, targets, testing
from tools.mutants.coverage_map import CoverageMap
from tools.mutants.mutant import Mutant
from tools.mutants.testing import Tested
from tools.mutants.trees import Result, Status, Tree, copies, seconds_for

RECORD: Final = targets.ROOT / "build" / "mutants"
FIRST_FILES: Final = 4
MARKS: Final = "not clock and not nightly"
CONFIRM_SECONDS_MAX: Final = 1_800.0


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=1, help="the order in which mutants are drawn")
    add("--count", type=int, default=300, help="how many mutants to draw")
    add("--only", action="append", default=[], help="only mutants whose name contains this text")
    add("--survivors", action="store_true", help="only those that the record says survived")
    add("--new", action="store_true", help="leave out those of the sample that the record has")
    add("--known", action="store_true", help="only those that the record says are killed, quickly")
    add("--planted", action="store_true", help="only the bugs of tools/mutants/planted")
    add("--seconds", type=float, help="begin no mutant after this time")
    add("--test-seconds", type=float, default=90.0, help="recorded time of the tests of a mutant")
    add("--tests", nargs="*", default=[], help="tests to run first, for every mutant")
    add("--jobs", type=int, default=2, help="how many mutants to test at once")
    add("--record", nargs="*", help="record which lines tests run; by default, of all tests")
    add("--list", action="store_true", help="print the mutants and test none")
    add("--write", action="store_true", help="write the results into docs/evidence")
    add("--page", action="store_true", help="write docs/evidence/mutants.md from the record")
    add("--json", action="store_true", help="print the result as JSON in the last line")
    return parser.parse_args()


def main() -> int:
    """Do what the command line says. Returns 1 if a known mutant or a planted bug survives."""
    options = arguments()
    if options.record is not None:
        return _record(options.record)
    if options.page:
        evidence.write_page()
        return 0
    chosen = list(_chosen(options))
    if options.list:
        for mutant in chosen:
            print(mutant.place, mutant.identity)
        return 0
    print(f"seed {options.seed}; repeat with: python -m tools.mutants {shlex.join(sys.argv[1:])}")
    with copies(targets.ROOT, options.jobs) as trees:
        found = _tested(chosen, trees, _test(options), options)
        failing = testing.undecided(trees[0], found, CONFIRM_SECONDS_MAX)
    return reporting.report(options, found, failing)


def _record(paths: Sequence[str]) -> int:
    """Record all tests anew, or those at the given paths beside the others, and cache them."""
    if not paths:
        shutil.rmtree(RECORD, ignore_errors=True)
    RECORD.mkdir(parents=True, exist_ok=True)
    folders = [
        f"tests/{name}" for name in targets.TESTS if (targets.ROOT / "tests" / name).is_dir()
    ]
    command = (
        *(sys.executable, "-m", "pytest", "-p", "tools.mutants.recording", "-q", "-m", MARKS),
        *("--numprocesses", "2", "--dist", "worksteal", "-o", "faulthandler_timeout=0"),
        *(f"--ignore-glob={pattern}" for pattern in targets.NOT_RECORDED),
        *(paths or folders),
    )
    environment = os.environ | {"TOLLHOUSE_MUTANTS_RECORD": str(RECORD), "PYTHONPATH": "src:."}
    ended = subprocess.run(command, cwd=targets.ROOT, env=environment, check=False)  # noqa: S603 - a command of our own
    if any(RECORD.iterdir()):
        record.keep(RECORD, targets.git("rev-parse", "HEAD").strip())
    return ended.returncode


def _chosen(options: argparse.Namespace) -> Iterator[Mutant]:
    if options.planted:
        yield from planted.mutants()
        return
    found = generating.mutants(targets.ROOT)
    if options.known:
        # Else a group of which little is known would never have its turn.
        yield from known.changed_first(generating.sample(known.choose(found), options.seed))
        return
    drawn = generating.sample(found, options.seed)
    if options.survivors:
        recorded = evidence.entries()
        left = {name for name, entry in recorded.items() if entry.status in evidence.ALIVE}
        yield from (mutant for mutant in drawn if mutant.identity in left)
        return
    wanted = [
        mutant
        for mutant in drawn
        if not options.only
        or any(text in f"{mutant.place} {mutant.identity}" for text in options.only)
    ]
    tested = evidence.entries() if options.new else {}
    yield from (mutant for mutant in islice(wanted, options.count) if mutant.identity not in tested)


def _test(options: argparse.Namespace) -> Callable[[Tree, Mutant], Result]:
    if options.planted:
        return planted.test
    if options.known:
        return known.test
    covering = CoverageMap(RECORD, targets.ROOT)
    if not covering.seconds:
        sys.exit("No test is recorded yet; run `python -m tools.mutants --record` first.")

    def test(tree: Tree, mutant: Mutant) -> Result:
        chosen = covering.choose(mutant, options.test_seconds)
        tests = [*options.tests, *(name for name in chosen if name not in options.tests)]
        if not tests:
            return Result(status=Status.UNTESTED, seconds=0)
        taken = 0.0
        with tree.applied(mutant):
            for stage in _stages(tests):
                seconds = sum(covering.seconds.get(name, 0) for name in stage)
                result = tree.run(stage, seconds_for(seconds))
                if result.status is not Status.SURVIVED:
                    return _confirmed(tree, result)
                taken += result.seconds
        return Result(status=Status.SURVIVED, seconds=round(taken, 1))

    return test


def _confirmed(tree: Tree, result: Result) -> Result:
    """Run a test that failed once more, alone: it may have failed by chance."""
    if result.status is not Status.KILLED or result.killer is None or "::" not in result.killer:
        return result
    return tree.run([result.killer], seconds_for(result.seconds))


def _stages(tests: Sequence[str]) -> Iterator[list[str]]:
    """Yield tests of the first few files, then all others: to collect a file takes time too."""
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    for some in (files[:FIRST_FILES], files[FIRST_FILES:]):
        if stage := [test for test in tests if test.partition("::")[0] in some]:
            yield stage


def _tested(
    chosen: Sequence[Mutant], trees: Sequence[Tree], test: testing.Test, options: argparse.Namespace
) -> list[Tested]:
    found: list[Tested] = []
    for tested in testing.run(chosen, trees, test, options.seconds):
        found.append(tested)
        if options.write:
            evidence.note([tested.entry])
        result, mutant = tested.result, tested.mutant
        print(f"{len(found)}/{len(chosen)} {result.status} {result.seconds} s {mutant.place}")
        print(f"    - {mutant.before}\n    + {mutant.after}")
        print(f"    {result.killer or ''}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
