"""The scenarios that the exhaustive mode interrupts: each is short, and takes a path of its own."""

from dataclasses import replace
from itertools import product

from tests.simulation.plan import (
    Answer,
    Backend,
    Ending,
    Fate,
    Organization,
    Plan,
    Policy,
    Reading,
    Record,
    Report,
    Request,
    Surface,
    Trouble,
    Verdict,
    Worker,
)

_RECORDS = (
    Record(delay=0.01, words=2),
    Record(delay=0.01, words=1, has_finish=True, has_usage=True),
)
_POLICIES = {
    "without policies": (),
    "enforced request": (Policy(number=0, direction="request", is_enforcing=True),),
    "enforced answer": (Policy(number=0, direction="response", is_enforcing=True),),
    "monitored": (Policy(number=0, direction="both", is_enforcing=False),),
}
_ENDINGS = {
    "complete": Answer(records=_RECORDS),
    "breaks": Answer(records=_RECORDS, ending=Ending.BREAKS),
}


def scenarios() -> dict[str, Plan]:
    """All of them, by name."""
    found: dict[str, Plan] = {}
    for policies, ending, is_stream in product(_POLICIES, _ENDINGS, (True, False)):
        form = "stream" if is_stream else "whole"
        found[f"{form}, {policies}, {ending}"] = _plan(
            _request(is_stream=is_stream, answer=_ENDINGS[ending]),
            policies=_POLICIES[policies],
        )
    found |= _surfaces() | _backends() | _fallbacks()
    return found | _callers() | _databases() | _judges() | _money()


def _plan(*requests: Request, policies: tuple[Policy, ...] = (), **changes: object) -> Plan:
    organization = Organization(policies=policies)
    plan = Plan(seed=0, in_order=True, organizations=(organization,), requests=requests)
    return replace(plan, **changes)  # pyright: ignore[reportArgumentType]


def _request(**changes: object) -> Request:
    request = Request(number=0, organization=0, worker=0, at=0.0, answer=_ENDINGS["complete"])
    return replace(request, **changes)  # pyright: ignore[reportArgumentType]


def _surfaces() -> dict[str, Plan]:
    return {
        f"{surface.value}, {name}": _plan(_request(surface=surface), policies=_POLICIES[name])
        for surface, name in product((Surface.RESPONSES, Surface.MESSAGES), _POLICIES)
    }


def _backends() -> dict[str, Plan]:
    found: dict[str, Plan] = {}
    for backend, ending in product((Backend.BILLS, Backend.RUNS_ON), (Ending.BREAKS, Ending.HANGS)):
        answer = Answer(backend=backend, records=_RECORDS, ending=ending)
        found[f"{backend.value} {ending.value}"] = _plan(_request(answer=answer))
    for ending in (Ending.BUSY, Ending.REJECTED, Ending.UNREACHABLE):
        found[f"backend {ending.value}"] = _plan(_request(answer=Answer(ending=ending)))
    silent = Answer(open_delay=30.0, records=_RECORDS, report=Report.NONE)
    return found | {"slow backend without usage": _plan(_request(answer=silent))}


def _fallbacks() -> dict[str, Plan]:
    """A sick backend before: without a word, or after words that a policy withholds."""
    found = {
        f"fallback after {ending.value}": _plan(_request(sick=Answer(ending=ending)))
        for ending in (Ending.FAILED, Ending.BREAKS, Ending.HANGS)
    }
    for records, is_stream in product(((), _RECORDS[:1]), (True, False)):
        words = "words that are withheld" if records else "nothing"
        found[f"fallback after {words}, {'stream' if is_stream else 'whole'}"] = _plan(
            _request(is_stream=is_stream, sick=Answer(records=records, ending=Ending.BREAKS)),
            policies=_POLICIES["enforced answer"],
        )
    bills = Answer(backend=Backend.BILLS, ending=Ending.HANGS)
    return found | {"no fallback from what may bill": _plan(_request(sick=bills))}


def _callers() -> dict[str, Plan]:
    return {
        "caller leaves at once": _plan(_request(reading=Reading(leave_at=0.0))),
        "caller leaves amid the answer": _plan(_request(reading=Reading(leave_after=2))),
        "caller leaves a backend that bills": _plan(
            _request(
                answer=Answer(backend=Backend.BILLS, records=_RECORDS),
                reading=Reading(leave_after=2),
            )
        ),
        "caller stalls": _plan(
            _request(reading=Reading(stall_after=1, stall_seconds=100_000.0, trickles=True))
        ),
        "caller retries a refusal": _plan(
            _request(answer=Answer(ending=Ending.BUSY), reading=Reading(retries=1))
        ),
    }


def _databases() -> dict[str, Plan]:
    found = {
        f"database call {fate.value}": _plan(_request(), fates=((fate, 0.5),))
        for fate in (Fate.LOST, Fate.ANSWER_LOST, Fate.LATE, Fate.SKIPPED, Fate.LOCK_TIMEOUT)
    }
    two = (_request(), _request(number=1))
    return found | {
        "two requests in one batch": _plan(*two, fates=((Fate.ANSWER_LOST, 0.3),)),
        "database is away": _plan(_request(), outage=(0.001, 4.0)),
    }


def _judges() -> dict[str, Plan]:
    policies = (Policy(number=0, direction="both", is_enforcing=True),)
    return {
        "judge fails": _plan(_request(), policies=policies, verdicts=((Verdict.FAILS, 1.0),)),
        "judge hangs": _plan(_request(), policies=policies, verdicts=((Verdict.HANGS, 1.0),)),
        "backend that bills is judged": _plan(
            _request(answer=Answer(backend=Backend.BILLS, records=_RECORDS)), policies=policies
        ),
        "request matches": _plan(_request(bad_policy=0), policies=policies),
        "answer matches": _plan(
            _request(answer=Answer(records=(Record(delay=0.01, bad_policy=0),))), policies=policies
        ),
    }


def _money() -> dict[str, Plan]:
    poor = Organization(credit=0)
    limited = Organization(concurrent_requests=1, tokens_per_minute=1_000)
    two = (_request(), _request(number=1))
    return {
        "no credit": replace(_plan(_request()), organizations=(poor,)),
        "limits": replace(_plan(*two), organizations=(limited,)),
        "limits in Redis": replace(_plan(*two), organizations=(limited,), has_redis=True),
        "clock is slow": _plan(
            _request(reading=Reading(stall_after=1, stall_seconds=100_000.0, trickles=True)),
            workers=(Worker(clock_offset=-300.0),),
        ),
        "worker stood still": _plan(
            _request(is_stream=False),
            workers=(Worker(troubles=(Trouble(kind="pause", at=0.001, seconds=900.0),)),),
        ),
    }
