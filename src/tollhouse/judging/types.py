"""Nouns of judging: what is judged, what is asked, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Literal

from tollhouse.policies.types import AppliedPolicy, Direction

JudgedDirection = Literal[Direction.REQUEST, Direction.RESPONSE]


@dataclass(frozen=True, slots=True)
class Part:
    """A text and where it stands. The label is the gateway's own words, never a caller's."""

    label: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """Everything of a request or an answer that a policy is asked about.

    The first `opening` parts stay as they are while a conversation grows.
    """

    direction: JudgedDirection
    parts: tuple[Part, ...]
    opening: int


ContentOf = Callable[[float], Content]
"""Puts together everything that is judged, unless it takes more bytes than it is given."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """An excerpt of a content, from one character to another, as the judge reads it."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Seal:
    """What is derived from the organization and the content under the gateway's secret."""

    fence: str
    digest: bytes
    affinity: bytes
    cache_salt: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One rule about one window."""

    rule: str
    window: Window
    seal: Seal


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """The probabilities of both sides, and how much of each may have gone unseen."""

    p_yes: float
    p_no: float
    unseen_yes_max: float = 0.0
    unseen_no_max: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """How much a judge is for "yes". The truth lies between `lowest` and `highest`."""

    basis_points: int
    lowest_basis_points: int
    highest_basis_points: int
    coverage_basis_points: int


class Order(StrEnum):
    """What a judge reads first. With content first, its prefix cache pays for it once."""

    CONTENT_FIRST = auto()
    QUESTION_FIRST = auto()


class Reading(StrEnum):
    """How token probabilities are got: the most likely ones, or exactly those of the answers."""

    TOP_LOGPROBS = auto()
    TOKEN_IDS = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """How a judge is asked.

    `bytes_per_token` is an estimate; a window that turns out too long is halved. Below the
    coverage floor the judge would rather have said something else, and has not answered.
    """

    model: str
    context_tokens: int
    question_tokens_max: int
    order: Order = Order.CONTENT_FIRST
    reading: Reading = Reading.TOP_LOGPROBS
    takes_cache_salt: bool = False
    bytes_per_token: int = 3
    coverage_floor_basis_points: int = 5_000


class FailureReason(StrEnum):
    """Why there is no answer. None of these is ever a "no"."""

    UNREACHABLE = auto()
    TIMED_OUT = auto()
    REJECTED = auto()
    GARBLED = auto()
    UNSEEN = auto()
    UNCOVERED = auto()
    UNDECIDED = auto()
    NOT_EVALUABLE = auto()
    OVER_BUDGET = auto()


class Outcome(StrEnum):
    """What is known of a policy after asking. What was skipped could not have changed anything."""

    MATCH = "match"
    NO_MATCH = "no_match"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """One policy on one content. The score is the highest of all windows that were asked."""

    policy: AppliedPolicy
    outcome: Outcome
    score: Score | None = None
    reason: FailureReason | None = None
    windows: int = 0
    is_cached: bool = False
