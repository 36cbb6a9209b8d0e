"""The loop itself: time that nobody waits for, an order that a seed chooses, machines that stop."""

import asyncio
from random import Random

from tests.simulation.loop import SimulationLoop, State


def _loop(seed: int | None = None) -> SimulationLoop:
    return SimulationLoop(None if seed is None else Random(seed), after_step=lambda: None)


def test_time_moves_to_the_next_timer_without_waiting() -> None:
    loop = _loop()

    async def work() -> float:
        await asyncio.sleep(86_400)
        return loop.time()

    assert loop.run(work(), is_over=lambda: False) == 86_400


def test_the_order_of_ready_callbacks_depends_on_the_seed_alone() -> None:
    def order(seed: int | None) -> list[int]:
        loop, ran = _loop(seed), list[int]()

        async def work() -> None:
            for number in range(10):
                loop.call_soon(ran.append, number)
            await asyncio.sleep(1)

        loop.run(work(), is_over=lambda: False)
        return ran

    assert order(None) == list(range(10))
    assert order(1) == order(1)
    assert order(1) != order(2)


def test_a_paused_machine_keeps_its_callbacks_and_a_dead_one_runs_none() -> None:
    loop, ran = _loop(), list[str]()
    machine = loop.machine("worker")

    async def work() -> None:
        machine.state = State.PAUSED
        loop.call_later(1, ran.append, "paused", context=machine.context)
        await asyncio.sleep(5)
        assert not ran
        loop.resume(machine)
        await asyncio.sleep(1)
        assert ran == ["paused"]
        machine.state = State.DEAD
        loop.call_soon(ran.append, "dead", context=machine.context)
        await asyncio.sleep(1)

    loop.run(work(), is_over=lambda: False)
    assert ran == ["paused"]


def test_a_failure_that_nobody_catches_is_kept() -> None:
    loop = _loop()

    async def work() -> None:
        loop.call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    loop.run(work(), is_over=lambda: False)
    assert "ZeroDivisionError" in loop.failures[0]
