"""What happens in one simulation, drawn from its seed: plain data that can be printed and cut down.

Words stand for content. `q3p0` is the first word of request 3, `q3a1` the second of its answer; a
word `bad2` makes policy 2 match. A caller who tries again repeats the words of its request.
"""

from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random

WORKERS_MAX = 3
REQUESTS_MAX = 6
FIELDS = ("reasoning", "reasoning_content", "refusal", "arguments")
"""What an answer says beside its content."""
CAP_PERIODS = ("day", "week", "month", "lifetime")
BEGINNINGS = 3
CLOCK_OFFSETS = (0.0, 0.0, 0.0, -2.0, 2.0, -300.0, 300.0)


class Surface(Enum):
    """The operation that a caller uses."""

    CHAT = "chat"
    RESPONSES = "responses"
    MESSAGES = "messages"


class Backend(Enum):
    """How a backend bills; the catalog has one of each."""

    STOPS = "stops"
    """It stops billing when the connection closes."""
    RUNS_ON = "runs_on"
    """It generates and bills to the end, whoever listens."""
    BILLS = "bills"
    """It may bill a call without an answer."""


class Ending(Enum):
    """How a backend ends an answer."""

    COMPLETE = "complete"
    BREAKS = "breaks"
    HANGS = "hangs"
    BUSY = "busy"
    REJECTED = "rejected"
    UNREACHABLE = "unreachable"
    FAILED = "failed"


class Report(Enum):
    """What a backend says of its usage, at the end of its answer."""

    TRUE = "true"
    NONE = "none"
    LOW = "low"
    HIGH = "high"
    ABOVE_BOUND = "above_bound"


class Fate(Enum):
    """What becomes of a call to the database."""

    APPLIED = "applied"
    LOST = "lost"
    ANSWER_LOST = "answer_lost"
    LATE = "late"
    LOCK_TIMEOUT = "lock_timeout"
    SKIPPED = "skipped"
    CONSTRAINT = "constraint"


class Verdict(Enum):
    """What becomes of a question to the judge."""

    TRUE = "true"
    FAILS = "fails"
    HANGS = "hangs"
    GARBLED = "garbled"
    UNDECIDED = "undecided"
    REJECTED = "rejected"


@dataclass(frozen=True, kw_only=True)
class Record:
    """One record of an answer. Any record may carry the end of a choice, and a usage so far."""

    delay: float
    words: int = 1
    field: str = "content"
    choice: int = 0
    has_finish: bool = False
    has_usage: bool = False
    bad_policy: int | None = None
    filler: int = 0
    """Characters before the words, which make buffers full and early checks due."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a backend does with a request."""

    backend: Backend = Backend.STOPS
    open_delay: float = 0.01
    records: tuple[Record, ...] = ()
    ending: Ending = Ending.COMPLETE
    end_delay: float = 0.01
    report: Report = Report.TRUE


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a caller reads. After `leave_after` pieces, or at `leave_at` seconds, it has left.

    It reads no further after `stall_after` pieces for `stall_seconds`. One that `trickles` reads
    just enough not to be cut by the write deadline of its connection.
    """

    leave_after: int | None = None
    leave_at: float | None = None
    stall_after: int | None = None
    stall_seconds: float = 0.0
    trickles: bool = False
    retries: int = 0

    @property
    def leaves(self) -> bool:
        """Whether the caller may have left before its answer is there."""
        return self.leave_after is not None or self.leave_at is not None


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request of one caller."""

    number: int
    organization: int
    worker: int
    at: float
    is_stream: bool = True
    surface: Surface = Surface.CHAT
    choices: int = 1
    words: int = 2
    bad_policy: int | None = None
    output_tokens: int = 40
    shows_usage: bool = False
    answer: Answer = field(default_factory=Answer)
    sick: Answer | None = None
    """What another backend does before, for whose model the answer's is the fallback."""
    second: Answer | None = None
    """What the second replica of that backend does, if it is asked after the first."""
    reading: Reading = field(default_factory=Reading)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """One policy of an organization."""

    number: int
    direction: str
    is_enforcing: bool
    ends_early: bool = False


@dataclass(frozen=True, kw_only=True)
class Organization:
    """Whose requests they are. Amounts are in holds of a usual request."""

    credit: int = 100
    cap: int | None = None
    cap_period: str = "month"
    policies: tuple[Policy, ...] = ()
    concurrent_requests: int | None = None
    tokens_per_minute: int | None = None
    policies_change_at: float | None = None
    """When every policy gets another rule, and with it its second version."""


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """What happens to a worker at a time: `pause`, `kill` or `stop`."""

    kind: str
    at: float
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Worker:
    """One process of the gateway."""

    clock_offset: float = 0.0
    troubles: tuple[Trouble, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One simulation. `in_order`: callbacks run in the order in which they were added."""

    seed: int
    begin: int = 0
    """Which instant of `system.BEGINNINGS` the run begins at."""
    in_order: bool = False
    workers: tuple[Worker, ...] = (Worker(),)
    organizations: tuple[Organization, ...] = (Organization(),)
    requests: tuple[Request, ...] = ()
    fates: tuple[tuple[Fate, float], ...] = ()
    """The share of database calls with this fate; the others are applied."""
    outage: tuple[float, float] | None = None
    verdicts: tuple[tuple[Verdict, float], ...] = ()
    has_redis: bool = False
    redis_faults: float = 0.0

    def without_request(self, number: int) -> "Plan":
        """The same with one request less."""
        kept = tuple(request for request in self.requests if request.number != number)
        return replace(self, requests=kept)


def draw(seed: int) -> Plan:
    """Draw a plan. The same seed always gives the same plan."""
    random = Random(f"plan {seed}")
    workers = tuple(_worker(random) for _ in range(random.choice((1, 1, 2, WORKERS_MAX))))
    organizations = tuple(_organization(random) for _ in range(random.choice((1, 1, 2, 3))))
    spread = random.choice((0.0, 0.1, 3.0))
    requests = tuple(
        _request(random, number, len(organizations), len(workers), spread)
        for number in range(random.randint(1, REQUESTS_MAX))
    )
    # Drawn apart, so that the rest of a seed is what it was before there were fallbacks.
    sick = Random(f"sick {seed}")
    requests = tuple(
        replace(request, sick=_sick(sick, request.choices)) if sick.random() < 0.4 else request
        for request in requests
    )
    # And before they had several replicas.
    seconds = Random(f"second {seed}")
    requests = tuple(
        replace(request, second=_second(seconds, request.sick, request.choices))
        if request.sick is not None and seconds.random() < 0.5
        else request
        for request in requests
    )
    # And before caps had periods.
    windows = Random(f"windows {seed}")
    organizations = tuple(
        replace(organization, cap_period=windows.choice(CAP_PERIODS))
        for organization in organizations
    )
    return Plan(
        seed=seed,
        begin=windows.randrange(BEGINNINGS),
        in_order=random.random() < 0.3,
        workers=workers,
        organizations=organizations,
        requests=requests,
        fates=_fates(random),
        outage=(random.uniform(0, 20), random.uniform(1, 40)) if random.random() < 0.1 else None,
        verdicts=_verdicts(random),
        has_redis=random.random() < 0.5,
        redis_faults=random.choice((0.0, 0.0, 0.1)),
    )


def _worker(random: Random) -> Worker:
    troubles: list[Trouble] = []
    if random.random() < 0.25:
        kind = random.choice(("pause", "pause", "kill", "stop"))
        at = random.choice((random.uniform(0, 0.2), random.uniform(0, 5), random.uniform(0, 90)))
        seconds = random.choice((0.5, 5.0, 40.0, 900.0)) if kind == "pause" else 0.0
        troubles.append(Trouble(kind=kind, at=at, seconds=seconds))
    return Worker(clock_offset=random.choice(CLOCK_OFFSETS), troubles=tuple(troubles))


def _organization(random: Random) -> Organization:
    policies: list[Policy] = []
    if random.random() < 0.6:
        policies += [_policy(random, number) for number in range(random.randint(1, 3))]
    return Organization(
        credit=random.choice((1, 2, 3, 100, 100)),
        cap=random.choice((None, None, 1, 2, 50)),
        policies=tuple(policies),
        concurrent_requests=random.choice((None, None, 1, 2)),
        tokens_per_minute=random.choice((None, None, 500, 100_000)),
        policies_change_at=random.choice((None, None, random.uniform(0, 3), random.uniform(0, 60))),
    )


def _policy(random: Random, number: int) -> Policy:
    return Policy(
        number=number,
        direction=random.choice(("request", "response", "response", "both")),
        is_enforcing=random.random() < 0.7,
        ends_early=random.random() < 0.3,
    )


def _request(
    random: Random, number: int, organizations: int, workers: int, spread: float
) -> Request:
    surface = _surface(random)
    choices = 1 if surface is not Surface.CHAT or random.random() < 0.8 else 2
    bad_policy = random.randrange(3) if random.random() < 0.1 else None
    return Request(
        number=number,
        organization=random.randrange(organizations),
        worker=random.randrange(workers),
        at=random.uniform(0, spread),
        is_stream=random.random() < 0.75,
        surface=surface,
        choices=choices,
        words=random.randint(1, 4),
        bad_policy=bad_policy,
        output_tokens=random.choice((4, 40, 200, 4_000)),
        shows_usage=random.random() < 0.5,
        answer=_answer(random, choices),
        reading=_reading(random),
    )


def _surface(random: Random) -> Surface:
    chance = random.random()
    if chance < 0.2:
        return Surface.RESPONSES
    return Surface.MESSAGES if chance < 0.4 else Surface.CHAT


def _answer(random: Random, choices: int) -> Answer:
    records = tuple(_record(random, choices) for _ in range(random.choice((0, 1, 2, 3, 4, 6))))
    endings = [Ending.COMPLETE] * 6 + list(Ending)
    return Answer(
        backend=random.choice((Backend.STOPS, Backend.STOPS, Backend.RUNS_ON, Backend.BILLS)),
        open_delay=_delay(random),
        records=records,
        ending=random.choice(endings),
        end_delay=_delay(random),
        report=random.choice([Report.TRUE] * 3 + list(Report)),
    )


def _sick(random: Random, choices: int) -> Answer:
    """Draw an answer that fails, which some of its records may have come before."""
    endings = [ending for ending in Ending if ending is not Ending.COMPLETE]
    answer = _answer(random, choices)
    records = answer.records if random.random() < 0.5 else ()
    return replace(answer, ending=random.choice(endings), records=records)


def _second(random: Random, first: Answer, choices: int) -> Answer:
    """Draw what another replica of a backend that fails does: it fails as well, or it answers."""
    answer = _sick(random, choices) if random.random() < 0.4 else _answer(random, choices)
    return replace(answer, backend=first.backend)


def _record(random: Random, choices: int) -> Record:
    fields = ("content", "content", "content", *FIELDS, "nothing")
    return Record(
        delay=_delay(random),
        words=1_500 if random.random() < 0.08 else random.choice((1, 1, 2, 5)),
        field=random.choice(fields),
        choice=random.randrange(choices),
        has_finish=random.random() < 0.25,
        has_usage=random.random() < 0.25,
        bad_policy=random.randrange(3) if random.random() < 0.1 else None,
        filler=70_000 if random.random() < 0.02 else 0,
    )


def _delay(random: Random) -> float:
    return random.choice((0.0, 0.001, 0.01, 0.5, random.uniform(1, 55), random.uniform(0, 200)))


def _reading(random: Random) -> Reading:
    kind = random.choice(("reads", "reads", "reads", "leaves", "leaves_at", "stalls", "retries"))
    if kind == "leaves":
        return Reading(leave_after=random.randint(0, 5))
    if kind == "leaves_at":
        return Reading(leave_at=random.choice((0.0, random.uniform(0, 1), random.uniform(0, 60))))
    if kind == "stalls":
        return Reading(
            stall_after=random.randint(0, 4),
            stall_seconds=random.choice((1.0, 40.0, 100_000.0)),
            trickles=random.random() < 0.7,
        )
    return Reading(retries=2 if kind == "retries" else 0)


def _fates(random: Random) -> tuple[tuple[Fate, float], ...]:
    if random.random() < 0.4:
        return ()
    faults = [fate for fate in Fate if fate is not Fate.APPLIED and random.random() < 0.5]
    return tuple((fate, random.choice((0.05, 0.2))) for fate in faults)


def _verdicts(random: Random) -> tuple[tuple[Verdict, float], ...]:
    if random.random() < 0.6:
        return ()
    faults = [each for each in Verdict if each is not Verdict.TRUE and random.random() < 0.5]
    return tuple((each, random.choice((0.05, 0.2))) for each in faults)
