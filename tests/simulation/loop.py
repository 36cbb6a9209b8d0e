"""An event loop with virtual time, whose next callback is chosen by a seed.

Nothing waits: when no callback is ready, time moves to the next timer. Every callback belongs to a
machine. A machine that is paused keeps its callbacks until it goes on, one that is dead runs none.
"""

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from enum import Enum, auto
from itertools import count
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

STEPS_MAX = 200_000
"""Of one simulation; the longest take some thousand."""


class State(Enum):
    """What a machine does."""

    RUNNING = auto()
    PAUSED = auto()
    DEAD = auto()


class Machine:
    """One process with its callbacks. `last_alive` is when it last ran, in virtual seconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = State.RUNNING
        self.last_alive = 0.0
        self.was_troubled = False
        self.kept: list[Step] = []
        self.context = copy_context()
        self.context.run(_machine.set, self)


_machine: ContextVar[Machine | None] = ContextVar("machine", default=None)


class Step(asyncio.TimerHandle):
    """A callback that the loop will run, at its time or as soon as it is chosen."""

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        arguments: tuple[object, ...],
        loop: "SimulationLoop",
        context: Context,
    ) -> None:
        super().__init__(when, callback, arguments, loop, context)
        self.machine = context.get(_machine)

    def run(self) -> None:
        """Run it in its own context; a failure goes to the loop's exception handler."""
        self._run()


class _Numbered:
    """Sets of tasks and futures are walked in the order of their numbers, not of addresses."""

    number: int

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return self is other


class SimulatedFuture(_Numbered, asyncio.Future[Any]):
    """A future with a number."""


class SimulatedTask(_Numbered, asyncio.Task[Any]):
    """A task with a number."""


class LoopStuck(Exception):
    """The simulation needs more steps than any sound one does, or waits for nothing."""


class SimulationLoop(asyncio.AbstractEventLoop):
    """Runs one simulation. Without `order` callbacks run in the order in which they were added."""

    def __init__(self, order: Random | None, *, after_step: Callable[[], None]) -> None:
        self._order = order
        self._after_step = after_step
        self._now = 0.0
        self._ready: list[Step] = []
        self._timers: list[tuple[float, int, Step]] = []
        self._numbers = count()
        self._is_closed = False
        self._is_stopping = False
        self._machines: list[Machine] = []
        self.steps = 0
        self.tasks: list[SimulatedTask] = []
        self.failures: list[str] = []

    def run(self, work: Coroutine[Any, Any, T], *, is_over: Callable[[], bool]) -> T | None:
        """Run until the work is done, or `is_over` says so before."""
        asyncio._set_running_loop(self)  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue]
        try:
            main = self.create_task(work)
            while not main.done() and not is_over():
                self._run_one()
            return main.result() if main.done() else None
        finally:
            asyncio._set_running_loop(None)  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue]

    def finish(self) -> None:
        """Cancel everything, so that nothing is left to be collected half run."""
        asyncio._set_running_loop(self)  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue]
        self._order = None
        try:
            for machine in self._machines:
                machine.state = State.PAUSED
                self.resume(machine)
            for _ in range(STEPS_MAX):
                left = [task for task in self.tasks if not task.done()]
                if not left:
                    break
                if not self._ready:
                    for task in left:
                        task.cancel()
                self._run_one(is_checked=False)
        finally:
            self._is_closed = True
            asyncio._set_running_loop(None)  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue]

    def machine(self, name: str) -> Machine:
        """Add a machine; tasks that are created in its context are its own."""
        added = Machine(name)
        self._machines.append(added)
        return added

    def resume(self, machine: Machine) -> None:
        """Let a paused machine go on with what it kept."""
        if machine.state is State.PAUSED:
            machine.state = State.RUNNING
            machine.last_alive = self._now
            self._ready += machine.kept
            machine.kept = []

    def _run_one(self, *, is_checked: bool = True) -> None:
        self._make_due_ready()
        while not self._ready:
            if not self._timers:
                message = "nothing is ready and no timer is set"
                raise LoopStuck(message)
            self._now = max(self._now, self._timers[0][0])
            self._make_due_ready()
        place = self._order.randrange(len(self._ready)) if self._order else 0
        step = self._ready.pop(place)
        if step.cancelled() or self._is_kept(step):
            return
        self.steps += 1
        if self.steps > STEPS_MAX and is_checked:
            message = "the simulation does not end"
            raise LoopStuck(message)
        step.run()
        if is_checked:
            self._after_step()

    def _is_kept(self, step: Step) -> bool:
        machine = step.machine
        if machine is None:
            return False
        if machine.state is State.RUNNING:
            machine.last_alive = self._now
            return False
        machine.kept.append(step)
        return True

    def _make_due_ready(self) -> None:
        while self._timers and self._timers[0][0] <= self._now:
            step = heapq.heappop(self._timers)[2]
            if not step.cancelled():
                self._ready.append(step)

    # What asyncio asks of a loop

    def time(self) -> float:
        return self._now

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Step:
        step = Step(self._now, callback, args, self, context or copy_context())
        self._ready.append(step)
        return step

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Step:
        step = Step(when, callback, args, self, context or copy_context())
        heapq.heappush(self._timers, (when, next(self._numbers), step))
        return step

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Step:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer is skipped when its time comes."""

    def create_future(self) -> SimulatedFuture:
        future = SimulatedFuture(loop=self)
        future.number = next(self._numbers)
        return future

    def create_task(
        self,
        coro: Any,
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> SimulatedTask:
        task = _task(coro, self, name, context, next(self._numbers))
        self.tasks.append(task)
        return task

    def run_in_executor(
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """A thread that is done at once, and heard of later."""
        done = self.create_future()
        result = func(*args)
        self.call_soon(lambda: done.cancelled() or done.set_result(result))
        return done

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        failure = context.get("exception")
        self.failures.append(f"{context.get('message')}: {failure!r}")

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self._is_closed

    def is_closed(self) -> bool:
        return self._is_closed


def _task(
    coro: Any, loop: SimulationLoop, name: str | None, context: Context | None, number: int
) -> SimulatedTask:
    # The number must be there before the constructor puts the task into a set.
    task = SimulatedTask.__new__(SimulatedTask)
    task.number = number
    task.__init__(coro, loop=loop, name=name, context=context)
    return task
