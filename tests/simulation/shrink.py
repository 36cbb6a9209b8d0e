"""A failing plan made smaller: whatever can go without the failure going is left out."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from tests.simulation.plan import (
    Answer,
    Organization,
    Plan,
    Reading,
    Report,
    Request,
    Surface,
    Worker,
)

T = TypeVar("T")

TRIES_MAX = 600
Fails = Callable[[Plan], bool]


def shrink(plan: Plan, fails: Fails) -> Plan:
    """Return the smallest plan found that still fails."""
    tries = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _smaller(plan):
            tries += 1
            if tries > TRIES_MAX:
                return plan
            if fails(candidate):
                plan, is_smaller = candidate, True
                break
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Every plan with one thing less, the large things first."""
    candidates = [
        *(plan.without_request(request.number) for request in plan.requests),
        *_without_faults(plan),
        *_simpler_workers(plan),
        *_simpler_organizations(plan),
        *(
            replace(plan, requests=_replaced(plan.requests, place, simpler))
            for place, request in enumerate(plan.requests)
            for simpler in _simpler_requests(request)
        ),
    ]
    return (candidate for candidate in candidates if candidate != plan)


def _without_faults(plan: Plan) -> Iterator[Plan]:
    yield replace(plan, in_order=True)
    yield replace(plan, outage=None)
    yield replace(plan, has_redis=False)
    yield replace(plan, redis_faults=0.0)
    for place in range(len(plan.fates)):
        yield replace(plan, fates=plan.fates[:place] + plan.fates[place + 1 :])
    for place in range(len(plan.verdicts)):
        yield replace(plan, verdicts=plan.verdicts[:place] + plan.verdicts[place + 1 :])


def _simpler_workers(plan: Plan) -> Iterator[Plan]:
    for place, worker in enumerate(plan.workers):
        for simpler in (
            replace(worker, troubles=()),
            replace(worker, clock_offset=Worker().clock_offset),
        ):
            yield replace(plan, workers=_replaced(plan.workers, place, simpler))


def _simpler_organizations(plan: Plan) -> Iterator[Plan]:
    for place, organization in enumerate(plan.organizations):
        fewer = [
            replace(organization, policies=_without(organization.policies, index))
            for index in range(len(organization.policies))
        ]
        for simpler in (
            *fewer,
            replace(organization, credit=Organization().credit),
            replace(organization, cap=None),
            replace(organization, cap_period="month"),
            replace(organization, concurrent_requests=None),
            replace(organization, tokens_per_minute=None),
        ):
            yield replace(plan, organizations=_replaced(plan.organizations, place, simpler))


def _simpler_requests(request: Request) -> Iterator[Request]:
    answer = request.answer
    if request.sick is not None:
        yield replace(request, sick=None, second=None)
        yield replace(request, second=None)
        yield replace(request, sick=replace(request.sick, records=request.sick.records[:-1]))
        yield replace(request, sick=replace(request.sick, open_delay=0.01, end_delay=0.01))
    yield replace(request, reading=Reading())
    yield replace(request, surface=Surface.CHAT)
    yield replace(request, bad_policy=None)
    yield replace(request, words=1, shows_usage=False, at=0.0)
    yield replace(request, answer=replace(answer, report=Report.TRUE))
    yield replace(request, answer=replace(answer, ending=Answer().ending))
    yield replace(request, answer=replace(answer, backend=Answer().backend))
    yield replace(request, answer=replace(answer, open_delay=0.01, end_delay=0.01))
    for place, record in enumerate(answer.records):
        yield replace(request, answer=replace(answer, records=_without(answer.records, place)))
        for simpler in (
            replace(record, delay=0.01),
            replace(record, words=1, field="content", bad_policy=None),
            replace(record, filler=0),
            replace(record, has_finish=False),
            replace(record, has_usage=False),
        ):
            records = _replaced(answer.records, place, simpler)
            yield replace(request, answer=replace(answer, records=records))


def _replaced(items: tuple[T, ...], place: int, item: T) -> tuple[T, ...]:
    return (*items[:place], item, *items[place + 1 :])


def _without(items: tuple[T, ...], place: int) -> tuple[T, ...]:
    return items[:place] + items[place + 1 :]
