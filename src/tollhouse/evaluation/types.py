"""Types of policy evaluation: contents, questions to the judge, scores and decisions."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum, auto

from tollhouse.base.dialects import CHAT_PATH
from tollhouse.base.policies import EvaluationOutcome, JudgedDirection
from tollhouse.policies.types import AppliedPolicy


@dataclass(frozen=True, slots=True)
class ContentPart:
    """A text and its label. The gateway writes the label; no caller's words are in it."""

    label: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """The texts of a request or an answer that policies are evaluated on.

    The first `opening` parts do not change while a conversation grows.
    """

    direction: JudgedDirection
    parts: tuple[ContentPart, ...]
    opening: int


RenderContent = Callable[[float], Content]
"""Returns the content, or raises `TooLongToJudge` if it takes more than the given bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """An excerpt of a content by its character positions, and its text for the judge."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeRequestKeys:
    """Keys of one content, derived from it and from its organization with the gateway's secret."""

    delimiter: str
    digest: bytes
    affinity: bytes
    cache_salt: str


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeQuestion:
    """One rule about one window."""

    rule: str
    window: Window
    request_keys: JudgeRequestKeys


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerProbabilities:
    """The probabilities of "yes" and "no", with upper bounds for tokens the engine left out."""

    p_yes: float
    p_no: float
    unseen_yes_max: float = 0.0
    unseen_no_max: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """The share of "yes" in basis points. The exact value is between `lowest` and `highest`."""

    basis_points: int
    lowest_basis_points: int
    highest_basis_points: int
    coverage_basis_points: int


class PromptOrder(StrEnum):
    """Whether content or question comes first. With content first, prefix caching works."""

    CONTENT_FIRST = auto()
    QUESTION_FIRST = auto()


class LogprobSource(StrEnum):
    """How token probabilities are read: from the most likely tokens, or by token ID."""

    TOP_LOGPROBS = auto()
    TOKEN_IDS = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeProfile:
    """The judge model and the form of its prompts.

    `bytes_per_token` is an estimate: a window that turns out to be too long is halved. An answer
    whose "yes" and "no" together have less than the coverage floor counts as no answer.
    """

    model: str
    context_tokens: int
    question_tokens_max: int
    order: PromptOrder = PromptOrder.CONTENT_FIRST
    reading: LogprobSource = LogprobSource.TOP_LOGPROBS
    takes_cache_salt: bool = False
    path: str = CHAT_PATH
    bytes_per_token: int = 3
    coverage_floor_basis_points: int = 5_000


class FailureReason(StrEnum):
    """Why a policy has no answer. None of these counts as "no"."""

    UNREACHABLE = auto()
    TIMED_OUT = auto()
    REJECTED = auto()
    GARBLED = auto()
    UNSEEN = auto()
    UNCOVERED = auto()
    UNDECIDED = auto()
    NOT_EVALUABLE = auto()
    OVER_BUDGET = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationDecision:
    """The outcome of one policy on one content, with the highest score of its windows."""

    policy: AppliedPolicy
    outcome: EvaluationOutcome
    score: Score | None = None
    reason: FailureReason | None = None
    windows: int = 0
    is_cached: bool = False
