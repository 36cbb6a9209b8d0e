"""One scenario again and again, with something else going wrong each time.

A request is cancelled at each of its suspensions, and after each step of the whole run its worker
is killed, stopped or paused, or drops its requests: also one whose answer is there already.
"""

from collections.abc import Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from typing import Any

from tests.simulation.plan import Plan, Trouble
from tests.simulation.simulation import Result, Simulation
from tests.simulation.system import Facts

PAUSES = (40.0, 900.0)
"""Longer than a heartbeat may be late, and longer than any hold lives."""


@dataclass(frozen=True)
class Interruption:
    """What goes wrong: `cancel` at a suspension, `drop` or a trouble of the worker after a step."""

    kind: str
    place: int
    seconds: float = 0.0


def interruptions(plan: Plan, kinds: tuple[str, ...]) -> Iterator[Interruption]:
    """Everything that can go wrong in a plan, counted in one undisturbed run."""
    undisturbed = Counted(plan, None)
    assert undisturbed.result.violation is None, undisturbed.result.violation
    if "cancel" in kinds:
        for place in range(1, undisturbed.suspensions + 1):
            yield Interruption("cancel", place)
    for kind in kinds:
        for seconds in PAUSES if kind == "pause" else (0.0,) if kind != "cancel" else ():
            for place in range(1, undisturbed.steps + 1):
                yield Interruption(kind, place, seconds)


class Counted:
    """One run of a plan, with the interruption in its place."""

    def __init__(self, plan: Plan, interruption: Interruption | None) -> None:
        self._interruption = interruption
        self.suspensions = 0
        self._begun: set[int] = set()
        self._simulation = Simulation(plan, on_start=self._hook)
        self.result: Result = self._simulation.run()
        self.steps = self._simulation.busy_steps

    def _hook(self, simulation: Simulation) -> None:
        self._simulation = simulation
        worker = simulation.workers[0]
        worker.watched = self._watched
        if self._interruption is not None and self._interruption.kind != "cancel":
            simulation.on_step = self._after_step
        if self._interruption is not None and self._interruption.kind in {"cancel", "drop"}:
            worker.may_break_off = True

    def _after_step(self) -> None:
        interruption = self._interruption
        assert interruption is not None, "there is a step to wait for"
        if self._simulation.loop.steps != interruption.place:
            return
        if interruption.kind == "drop":
            self._drop()
        else:
            trouble = Trouble(kind=interruption.kind, at=0.0, seconds=interruption.seconds)
            self._simulation.trouble(self._simulation.workers[0], trouble)

    def _drop(self) -> None:
        """Cancel all requests that have begun, wherever they are."""
        for serving in self._simulation.workers[0].serving:
            is_begun = serving.facts.number in self._begun
            if is_begun and serving.task is not None and not serving.task.done():
                self._simulation.system.note(f"request {serving.facts.number}", "is dropped")
                serving.task.cancel()

    async def _watched(self, facts: Facts, serving: Coroutine[Any, Any, None]) -> None:
        await _Suspensions(serving, lambda: self._suspended(facts))

    def _suspended(self, facts: Facts) -> None:
        self.suspensions += 1
        self._begun.add(facts.number)
        interruption = self._interruption
        if interruption is None or interruption.kind != "cancel":
            return
        if interruption.place == self.suspensions:
            system = self._simulation.system
            system.note(f"request {facts.number}", "is cancelled")
            for serving in self._simulation.workers[0].serving:
                if serving.facts is facts and serving.task is not None:
                    serving.task.cancel()


class _Suspensions:
    """Passes on everything between a coroutine and its task, and tells how often it waits."""

    def __init__(self, work: Coroutine[Any, Any, None], suspended: Callable[[], None]) -> None:
        self._work = work
        self._suspended = suspended

    def __await__(self) -> Generator[Any, Any, None]:
        answer: Any = None
        failure: BaseException | None = None
        while True:
            try:
                work = self._work
                waits_for = work.send(answer) if failure is None else work.throw(failure)
            except StopIteration:
                return
            self._suspended()
            try:
                answer, failure = (yield waits_for), None
            except BaseException as raised:  # noqa: BLE001 - all of it is the request's
                failure = raised


def run(plan: Plan, interruption: Interruption | None) -> Result:
    """Run the plan once with this interruption."""
    return Counted(plan, interruption).result
