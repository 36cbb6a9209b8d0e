"""Runs the tests of many mutants, some at a time."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue

from tools.mutants.evidence import Entry
from tools.mutants.mutant import Mutant
from tools.mutants.trees import Result, Status, Tree

Test = Callable[[Tree, Mutant], Result]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tested:
    """A mutant and what the tests said of it."""

    mutant: Mutant
    result: Result

    @property
    def entry(self) -> Entry:
        """Return the line for the record."""
        return Entry(
            mutant=self.mutant.identity,
            status=self.result.status,
            seconds=self.result.seconds,
            killer=self.result.killer,
        )


def run(
    mutants: Iterable[Mutant], trees: Sequence[Tree], test: Test, seconds_max: float | None
) -> Iterator[Tested]:
    """Yield each mutant with its result, as they come. After `seconds_max` none is begun."""
    waiting: SimpleQueue[Mutant] = SimpleQueue()
    for mutant in mutants:
        waiting.put(mutant)
    done: SimpleQueue[Tested | None] = SimpleQueue()
    deadline = None if seconds_max is None else time.monotonic() + seconds_max

    def work(tree: Tree) -> None:
        try:
            while not waiting.empty() and (deadline is None or time.monotonic() < deadline):
                mutant = waiting.get_nowait()
                done.put(Tested(mutant=mutant, result=test(tree, mutant)))
        finally:
            done.put(None)

    with ThreadPoolExecutor(len(trees)) as pool:
        workers = [pool.submit(work, tree) for tree in trees]
        left = len(trees)
        while left:
            tested = done.get()
            if tested is None:
                left -= 1
            else:
                yield tested
        for worker in workers:
            worker.result()


def undecided(tree: Tree, tested: Iterable[Tested], seconds_max: float) -> set[str]:
    """Return the tests that killed a mutant and fail without one too."""
    killers = {
        one.result.killer
        for one in tested
        if one.result.status is Status.KILLED and one.result.killer and "::" in one.result.killer
    }
    failing: set[str] = set()
    while killers:
        result = tree.run(sorted(killers), seconds_max)
        if result.killer is None:
            break
        failing.add(result.killer)
        killers.discard(result.killer)
    return failing
