"""What the simulation has found, kept as plans of their own."""

from dataclasses import replace

import pytest

from tests.simulation import exhaustive
from tests.simulation.plan import (
    Answer,
    Backend,
    Ending,
    Organization,
    Plan,
    Policy,
    Reading,
    Record,
    Request,
    Trouble,
    Worker,
    draw,
)
from tests.simulation.simulation import Simulation, run
from tollhouse.ledger.types import OperatorPays, Resolution, ResolutionKind

ANSWER = Answer(records=(Record(delay=0.01, words=2),), open_delay=5.0)
REQUEST = Request(number=0, organization=0, worker=0, at=0.0, answer=ANSWER)
STALLED = Reading(stall_after=1, stall_seconds=100_000.0, trickles=True)


def _pause(at: float) -> tuple[Worker, ...]:
    return (Worker(troubles=(Trouble(kind="pause", at=at, seconds=900.0),)),)


def _ended(plan: Plan) -> tuple[Simulation, Resolution]:
    """Run the plan, which keeps every promise, and return how its only hold ended."""
    simulation = Simulation(plan)
    result = simulation.run()
    assert result.violation is None, result.text()
    (ended,) = simulation.ledger.ended.values()
    return simulation, ended.resolution


@pytest.mark.parametrize("clock_offset", [-300.0, 300.0])
def test_a_hold_outlives_its_stream_whatever_the_clock_of_its_worker_says(
    clock_offset: float,
) -> None:
    workers = (Worker(clock_offset=clock_offset),)
    request = replace(REQUEST, reading=STALLED)

    _, resolution = _ended(Plan(seed=1, workers=workers, requests=(request,)))

    assert resolution.kind is ResolutionKind.POST
    assert resolution.charge.output_tokens > 0


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_worker_that_stood_still_calls_no_backend_after_its_hold(*, is_stream: bool) -> None:
    """It is paused while its request is judged, which is after the hold and before the call."""
    policies = (Policy(number=0, direction="request", is_enforcing=True),)
    plan = Plan(
        seed=1,
        workers=_pause(at=0.0008),
        organizations=(Organization(policies=policies),),
        requests=(replace(REQUEST, is_stream=is_stream),),
    )

    simulation, resolution = _ended(plan)

    assert simulation.system.facts[0].backend_calls == 0
    assert resolution.operator_pays is OperatorPays.WORKER_LOST


def test_a_worker_that_stood_still_delivers_no_answer_after_its_hold() -> None:
    plan = Plan(seed=1, workers=_pause(at=3.0), requests=(replace(REQUEST, is_stream=False),))

    simulation, _ = _ended(plan)

    facts = simulation.system.facts[0]
    assert facts.backend_calls == 1
    assert not facts.read


def test_a_caller_who_does_not_read_that_its_answer_has_expired_is_cut_off() -> None:
    """The worker stands still until the deadline, so that it is not writing when that comes."""
    answer = replace(ANSWER, open_delay=0.01, end_delay=70.0)
    reading = replace(STALLED, stall_after=2)
    request = replace(REQUEST, answer=answer, reading=reading)
    plan = Plan(seed=1, in_order=True, workers=_pause(at=1.0), requests=(request,))

    simulation, _ = _ended(plan)

    assert simulation.system.facts[0].is_cut_off


def test_a_stream_that_is_cancelled_while_its_failed_call_closes_is_settled() -> None:
    answer = replace(ANSWER, ending=Ending.BREAKS)
    plan = Plan(seed=1, in_order=True, requests=(replace(REQUEST, answer=answer),))

    for interruption in exhaustive.interruptions(plan, ("cancel",)):
        result = exhaustive.run(plan, interruption)
        assert result.violation is None, f"{interruption}\n{result.text()}"


def test_an_answer_whose_reader_left_is_held_no_longer_than_its_hold() -> None:
    """The worker stands still until nobody waits for the answer; then its records come."""
    policies = (Policy(number=0, direction="response", is_enforcing=True),)
    answer = Answer(
        backend=Backend.RUNS_ON,
        open_delay=50.0,
        records=(Record(delay=0.01, words=2), Record(delay=40.0)),
    )
    plan = Plan(
        seed=1,
        in_order=True,
        workers=_pause(at=45.0),
        organizations=(Organization(policies=policies),),
        requests=(replace(REQUEST, answer=answer, reading=Reading(leave_at=20.0)),),
    )

    simulation, _ = _ended(plan)

    assert simulation.workers[0].buffers.used_bytes == 0


def test_a_call_that_may_be_billed_without_an_answer_is_not_one_whose_worker_was_lost() -> None:
    answer = Answer(backend=Backend.BILLS, ending=Ending.HANGS)

    _, resolution = _ended(Plan(seed=1, requests=(replace(REQUEST, answer=answer),)))

    assert resolution.kind is ResolutionKind.WRITE_OFF
    assert resolution.charge.total_pico_usd == 0
    assert resolution.operator_pays is None


@pytest.mark.parametrize(
    "ending", [Ending.UNREACHABLE, Ending.BUSY, Ending.REJECTED, Ending.FAILED]
)
def test_a_call_that_was_never_served_costs_nothing_also_after_its_caller_left(
    ending: Ending,
) -> None:
    answer = Answer(backend=Backend.BILLS, ending=ending, open_delay=20.0)
    request = replace(REQUEST, answer=answer, reading=Reading(leave_at=15.0))

    _, resolution = _ended(Plan(seed=1, requests=(request,)))

    assert resolution.kind is ResolutionKind.VOID


def test_a_request_is_asked_for_again_as_one_that_may_be_stored() -> None:
    """Its first statement is lost, refused when repeated, and then applied after all."""
    result = run(draw(528832))

    assert result.violation is None, result.text()
