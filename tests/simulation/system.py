"""What everybody in a simulation shares: time, the trace, what is known of each request, checks."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random
from uuid import UUID

from tests.simulation.loop import Machine, SimulationLoop
from tests.simulation.plan import Answer, Plan, Policy, Request
from tollhouse.base.ids import OrganizationId, PolicyId, ProjectId, ProjectKeyId, RequestId
from tollhouse.limits.limiter import Permit

BEGINNINGS = (
    datetime(2027, 3, 31, 23, 59, 30, tzinfo=UTC),
    datetime(2027, 3, 7, 23, 59, 58, 500_000, tzinfo=UTC),
    datetime(2027, 1, 31, 23, 59, 59, 900_000, tzinfo=UTC),
)
"""Before a month begins; before a Monday; before a Monday on which a month begins."""
WORDS_SHOWN = 12
"""Of a long record, in the trace."""
RETRY_STEP = 1_000
"""By how much the number of a request grows with every retry of its caller."""


@dataclass
class Violation:
    """A broken promise: which one, and what broke it."""

    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.text}"


@dataclass
class Facts:
    """One request as it is seen from outside the gateway."""

    number: int
    request: Request
    request_id: RequestId
    machine: Machine
    last_event: float = 0.0
    policy_version: int = 1
    """The version of its policies by which a word must be judged at least."""
    permit: Permit | None = None
    """What its worker counts it by, against its limits."""
    called: list[Answer] = field(default_factory=list[Answer])
    """What each backend that was called does, in their order."""
    has_sent_byte: bool = False
    status: int | None = None
    is_over: bool = False
    is_broken_off: bool = False
    """The backend failed. What the judge says of the answer from now on decides nothing."""
    is_refused_by_fault: bool = False
    is_applied_late: bool = False
    """A call of the database that its worker took for lost took effect after all."""
    generated: dict[str, int] = field(default_factory=dict[str, int])
    """The choice of every word that the gateway got from the backend."""
    sent: dict[str, None] = field(default_factory=dict[str, None])
    """Every word of the answer that left the gateway, whether or not anybody reads it."""
    read: dict[str, None] = field(default_factory=dict[str, None])
    """Every word of the answer that the caller has."""
    is_cut_off: bool = False
    left_at: float | None = None
    """When the connection of its caller ended, whoever ended it."""
    got_record: bool = False
    got_end: bool = False
    got_usage: bool = False
    told_output: int | None = None
    """The output tokens of the report that closes an answer, once the gateway has it."""

    @property
    def backend_calls(self) -> int:
        """How many backends were called."""
        return len(self.called)

    @property
    def answer(self) -> Answer:
        """What the backend does that was called last, or would be called first."""
        return self.called[-1] if self.called else self.request.sick or self.request.answer

    @property
    def is_fallback(self) -> bool:
        """Whether that is the fallback, which costs more."""
        return self.request.sick is None or all(
            self.answer is not each for each in (self.request.sick, self.request.second)
        )

    @property
    def is_inside(self) -> bool:
        """Whether its worker counts it against its limits now."""
        return self.permit is not None and self.permit.is_held


class SimulatedSystem:
    """One per simulation."""

    def __init__(self, plan: Plan, loop: SimulationLoop) -> None:
        self.plan = plan
        self.loop = loop
        self.violations: list[Violation] = []
        self.trace: list[tuple[float, str, str]] = []
        self.facts: dict[int, Facts] = {}
        self.by_id: dict[UUID, Facts] = {}
        self.judged: defaultdict[str, set[str]] = defaultdict(set)
        """For every rule the words that the judge has found no match in."""
        self.outside = loop.machine("outside")
        self.is_closing = False

    def random(self, purpose: str) -> Random:
        """A source of its own for each purpose, so that one more draw changes no other."""
        return Random(f"{self.plan.seed} {purpose}")

    def note(self, who: str, text: str) -> None:
        """Write down what happened."""
        self.trace.append((self.loop.time(), who, text))

    def check(self, is_kept: bool, check: str, text: str) -> None:
        """Write down a promise that is not kept; the simulation ends with the first."""
        if not is_kept:
            self.violate(check, text)

    def violate(self, check: str, text: str) -> None:
        """Write down a broken promise."""
        if not self.is_closing:
            self.note("CHECK", f"{check}: {text}")
            self.violations.append(Violation(check, text))

    def now(self) -> datetime:
        """The true time, which is the database's."""
        return BEGINNINGS[self.plan.begin] + timedelta(seconds=self.loop.time())

    def event(self, facts: Facts, text: str) -> None:
        """Something reached the gateway from outside that may decide the request."""
        facts.last_event = self.loop.time()
        self.note(f"request {facts.number}", text)

    def add(self, number: int, request: Request, machine: Machine) -> Facts:
        """A request is about to be sent."""
        request_id = RequestId(UUID(int=(0xA << 60) + number))
        facts = Facts(number, request, request_id, machine)
        facts.policy_version = self.policy_version(request.organization)
        self.facts[number] = self.by_id[request_id] = facts
        return facts

    def enforced(self, facts: Facts, direction: str) -> list[Policy]:
        """The policies that must find no match before content goes on in this direction."""
        policies = self.plan.organizations[facts.request.organization].policies
        return [
            policy
            for policy in policies
            if policy.is_enforcing and policy.direction in {direction, "both"}
        ]

    def policy_version(self, organization: int) -> int:
        """The version of every policy of an organization, now."""
        at = self.plan.organizations[organization].policies_change_at
        return 1 if at is None or self.loop.time() < at else 2

    def judged_by(self, facts: Facts, policy: Policy) -> set[str]:
        """The words in which a version of the policy that applies to a request found no match."""
        number = facts.request.organization
        versions = range(facts.policy_version, self.policy_version(number) + 1)
        found = (self.judged[rule_of(number, policy.number, version)] for version in versions)
        return set[str]().union(*found)

    def attempt_with(self, word: str) -> Facts:
        """Return the request that got a word from its backend, or the last that has sent it.

        Retries send the same words again; a word of an answer belongs to one attempt.
        """
        digits = word[1:].partition("p")[0].partition("a")[0]
        if word.startswith(f"q{digits}a"):
            return self.facts[int(digits)]
        number = int(digits) % RETRY_STEP
        return max(
            (each for each in self.facts.values() if each.request.number == number),
            key=lambda each: each.number,
        )

    def check_judged(self, facts: Facts, direction: str, words: list[str]) -> None:
        """No word goes on before every enforcing policy found no match in it."""
        for policy in self.enforced(facts, direction):
            judged = self.judged_by(facts, policy)
            unjudged = [word for word in words if word not in judged]
            self.check(
                not unjudged,
                "verdict before delivery",
                f"request {facts.number}: {direction} went on with {unjudged} unjudged"
                f" by policy {policy.number}",
            )


def organization_id(number: int) -> OrganizationId:
    """The ID of an organization of the plan."""
    return OrganizationId(UUID(int=(0xB << 60) + number))


def project_id(number: int) -> ProjectId:
    """Every organization has one project."""
    return ProjectId(UUID(int=(0xC << 60) + number))


def key_id(number: int) -> ProjectKeyId:
    """Every organization has one key."""
    return ProjectKeyId(UUID(int=(0xD << 60) + number))


def policy_id(organization: int, number: int) -> PolicyId:
    """The ID of a policy of an organization."""
    return PolicyId(UUID(int=(0xE << 60) + organization * 100 + number))


def rule_of(organization: int, policy: int, version: int) -> str:
    """The words of a version of a policy."""
    return f"Does the text break rule {policy} of organization {organization}, version {version}?"


def shortened(words: Iterable[str]) -> str:
    """Words as a trace shows them."""
    first = list(islice(words, WORDS_SHOWN + 1))
    return " ".join(first if len(first) <= WORDS_SHOWN else [*first[:WORDS_SHOWN], "..."])


def prompt_words(facts: Facts) -> list[str]:
    """The words that a caller sends."""
    number, bad = facts.request.number, facts.request.bad_policy
    words = [f"q{number}p{place}" for place in range(facts.request.words)]
    return words if bad is None else [*words, f"q{number}pbad{bad}"]
