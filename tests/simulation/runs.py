"""Many seeds, and what to print of one that failed."""

import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pprint import pformat

from tests.simulation import simulation
from tests.simulation.plan import Plan, draw
from tests.simulation.shrink import shrink
from tests.simulation.simulation import Result

SEEDS_AT_ONCE = 50


@dataclass
class Tally:
    """What a range of seeds found."""

    first: int
    seeds: int = 0
    steps: int = 0
    seconds: float = 0.0
    failed: list[int] = field(default_factory=list[int])

    @property
    def last(self) -> int:
        """The last seed of the range."""
        return self.first + self.seeds - 1


def run_seeds(first: int, *, seeds: int, seconds: float, processes: int) -> Tally:
    """Run seeds from `first` on, until so many are done or so much time has passed."""
    tally, began = Tally(first), time.monotonic()
    parts = (
        (start, min(SEEDS_AT_ONCE, first + seeds - start))
        for start in range(first, first + seeds, SEEDS_AT_ONCE)
    )
    for part in _in_time(_done(parts, processes), began + seconds):
        tally.seeds += part.seeds
        tally.steps += part.steps
        tally.failed += part.failed
    tally.seconds = time.monotonic() - began
    return tally


def _in_time(parts: Iterator[Tally], until: float) -> Iterator[Tally]:
    for part in parts:
        yield part
        if time.monotonic() >= until:
            return


def _done(parts: Iterable[tuple[int, int]], processes: int) -> Iterator[Tally]:
    if processes == 1:
        yield from map(_run_part, parts)
        return
    with ProcessPoolExecutor(processes) as pool:
        waiting = iter(parts)
        running = deque(pool.submit(_run_part, part) for part in islice(waiting, 2 * processes))
        try:
            while running:
                yield running.popleft().result()
                running.extend(pool.submit(_run_part, part) for part in islice(waiting, 1))
        finally:
            for each in running:
                each.cancel()


def _run_part(part: tuple[int, int]) -> Tally:
    first, seeds = part
    tally = Tally(first)
    for seed in range(first, first + seeds):
        result = simulation.run(draw(seed))
        tally.seeds += 1
        tally.steps += result.steps
        if result.violation is not None:
            tally.failed.append(seed)
    return tally


def explain(seed: int, *, is_whole: bool = False) -> str:
    """What went wrong with a seed, in the smallest plan that shows it."""
    result = simulation.run(draw(seed))
    if result.violation is None:
        return f"seed {seed} holds\n{result.text()}" if is_whole else f"seed {seed} holds"
    check = result.violation.check
    if not is_whole:
        result = simulation.run(shrink(draw(seed), lambda plan: _fails(plan, check)))
    return _text(seed, result)


def _fails(plan: Plan, check: str) -> bool:
    found = simulation.run(plan).violation
    return found is not None and found.check == check


def _text(seed: int, result: Result) -> str:
    return "\n".join(
        [
            f"seed {seed} broke a promise: {result.violation}",
            pformat(result.plan, width=120),
            result.text(),
            f"repeat: .venv/bin/python -m tests.simulation replay {seed}",
        ]
    )
