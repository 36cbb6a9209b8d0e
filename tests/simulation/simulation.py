"""One simulation from its plan to rest, and what it found."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.simulation import at_rest
from tests.simulation import loop as loops
from tests.simulation.connection import Connection
from tests.simulation.ledger_server import DEAD_SECONDS, REAP_SECONDS, LedgerServer
from tests.simulation.plan import Plan, Request, Trouble
from tests.simulation.redis_server import RedisServer
from tests.simulation.system import RETRY_STEP, Facts, SimulatedSystem, Violation
from tests.simulation.worker import BatcherOf, Worker, real_batcher

LONGEST_SECONDS = 7_200.0
"""Every request of a plan is over long before."""
RESTING_SECONDS_MAX = 40 * 3_600.0
"""Every hold is decided long before."""
TENDED_SECONDS = 20.0
"""By then the last renewal of leases is over, also with a Redis that does not answer."""
SETTLED_SECONDS = 200.0
"""What the last request left behind is written by then, whatever the database does."""


@dataclass
class Result:
    """What a simulation found: nothing, or the first broken promise."""

    plan: Plan
    violation: Violation | None
    trace: list[tuple[float, str, str]]
    steps: int

    def text(self) -> str:
        """The trace, for a person."""
        return "\n".join(f"{at:12.4f}  {who:12}  {what}" for at, who, what in self.trace)


class Simulation:
    """One per plan. `on_start` may hook into the run before it begins."""

    def __init__(
        self,
        plan: Plan,
        *,
        batcher_of: BatcherOf = real_batcher,
        on_start: Callable[["Simulation"], None] | None = None,
    ) -> None:
        self.plan = plan
        order = None if plan.in_order else Random(f"order {plan.seed}")
        self.loop = loops.SimulationLoop(order, after_step=self._after_step)
        self.system = SimulatedSystem(plan, self.loop)
        self.ledger = LedgerServer(self.system)
        self.redis = RedisServer(self.system)
        self._batcher_of = batcher_of
        self.workers = [
            Worker(
                self.system,
                self.ledger,
                self.redis,
                number,
                self.loop.machine(f"worker {number}"),
            )
            for number in range(len(plan.workers))
        ]
        self._is_busy = True
        self.busy_steps = 0
        """How many steps the run took until no worker did anything any more."""
        self.on_step: Callable[[], None] | None = None
        if on_start is not None:
            on_start(self)

    def run(self) -> Result:
        """Run to the end, or to the first broken promise."""
        logger = logging.getLogger("tollhouse")
        level, logger.level = logger.level, logging.CRITICAL + 1
        try:
            self.loop.run(self._main(), is_over=lambda: bool(self.system.violations))
        except loops.LoopStuck as failure:
            self.system.violate("ends", str(failure))
        finally:
            self.system.is_closing = True
            self.loop.finish()
            logger.setLevel(level)
        violations = self.system.violations
        return Result(
            self.plan, violations[0] if violations else None, self.system.trace, self.loop.steps
        )

    def _after_step(self) -> None:
        if self.loop.failures:
            self.system.violate("no failure is lost", self.loop.failures[0])
        if self.on_step is not None:
            self.on_step()

    async def _main(self) -> None:
        outside = self.system.outside.context
        for worker in self.workers:
            worker.machine.context.run(worker.start, self._batcher_of)
            if self.plan.has_redis:
                self.loop.create_task(worker.renew_leases(), context=worker.machine.context.copy())
            for trouble in self.plan.workers[worker.number].troubles:
                self.loop.call_at(trouble.at, self.trouble, worker, trouble, context=outside)
        self.loop.call_later(REAP_SECONDS, self._reap, context=outside)
        callers = [
            self.loop.create_task(self._call(request), context=outside.copy())
            for request in self.plan.requests
        ]
        if callers:
            _, late = await asyncio.wait(callers, timeout=LONGEST_SECONDS)
            self.system.check(not late, "requests end", f"{len(late)} callers still wait")
        await self._come_to_rest()

    def trouble(self, worker: Worker, trouble: Trouble) -> None:
        """Let something happen to a worker now."""
        machine, outside = worker.machine, self.system.outside.context
        if machine.state is not loops.State.RUNNING:
            return
        machine.was_troubled = True
        if trouble.kind == "kill":
            worker.kill()
        elif trouble.kind == "pause":
            self.system.note(machine.name, f"is paused for {trouble.seconds} s")
            machine.state = loops.State.PAUSED
            is_long = trouble.seconds > DEAD_SECONDS
            worker.stood_still = worker.stood_still or is_long
            worker.may_lose = worker.may_lose or is_long
            worker.may_break_off = worker.may_break_off or is_long
            self.loop.call_later(trouble.seconds, self._go_on, worker, context=outside)
        elif not worker.is_stopping:
            self.loop.create_task(worker.stop(), context=machine.context.copy())

    def _go_on(self, worker: Worker) -> None:
        self.system.note(worker.machine.name, "goes on")
        self.loop.resume(worker.machine)

    def _reap(self) -> None:
        self.ledger.reap()
        wait = REAP_SECONDS if self._is_busy else self._until_due()
        self.loop.call_later(wait, self._reap, context=self.system.outside.context)

    def _until_due(self) -> float:
        """How long until the reaper can find anything, once no worker does anything."""
        due = [
            self.ledger.decide_at.get(held.hold.reservation_id) for held in self.ledger.unresolved()
        ]
        if not due or None in due:
            return REAP_SECONDS
        first = min(instant for instant in due if instant is not None)
        return max(REAP_SECONDS, (first - self.system.now()).total_seconds())

    # Callers

    async def _call(self, request: Request) -> None:
        await asyncio.sleep(request.at)
        for attempt in range(request.reading.retries + 1):
            facts = await self._attempt(request, attempt)
            if facts is None or facts.status == 200:
                return

    async def _attempt(self, request: Request, attempt: int) -> Facts | None:
        worker = self.workers[request.worker]
        if worker.is_stopping or worker.machine.state is loops.State.DEAD:
            return None
        number = request.number + attempt * RETRY_STEP
        facts = self.system.add(number, request, worker.machine)
        connection = Connection(self.system, self.ledger, facts)
        self.system.event(facts, f"sent to {worker.machine.name}")
        worker.accept(facts, connection)
        if request.reading.leave_at is not None:
            self.loop.call_later(
                request.reading.leave_at, connection.cut, context=self.system.outside.context
            )
        reading = self.loop.create_task(connection.read())
        await connection.ended()
        if request.reading.stall_after is None:
            await reading
        return facts

    # Rest

    async def _come_to_rest(self) -> None:
        """Wait until nothing can happen any more, then look at everything."""
        for worker in self.workers:
            await self._quiet(worker)
            worker.machine_is_done = True
        if self.plan.has_redis:
            await asyncio.sleep(TENDED_SECONDS)
        self._is_busy = False
        self.busy_steps = self.loop.steps
        while self.ledger.unresolved() and self.loop.time() < RESTING_SECONDS_MAX:
            await asyncio.sleep(self._until_due() + REAP_SECONDS)
        at_rest.check(self.system, self.ledger, self.workers)
        at_rest.check_redis(self.system, self.redis, self.workers)

    async def _quiet(self, worker: Worker) -> None:
        """Wait until a worker has nothing to do, and callbacks of its last task have run."""
        until = self.loop.time() + LONGEST_SECONDS
        while self.loop.time() < until:
            if worker.machine.state is loops.State.DEAD:
                return
            if worker.machine.state is loops.State.RUNNING and at_rest.is_quiet(worker):
                await asyncio.sleep(1)
                if worker.machine.state is loops.State.RUNNING:
                    return
            await asyncio.sleep(SETTLED_SECONDS)


def run(plan: Plan) -> Result:
    """Run one plan with the real parts."""
    return Simulation(plan).run()
