"""Metrics of policy evaluation."""

from enum import StrEnum
from functools import cache
from typing import Final

from tollhouse.base.policies import Direction, EvaluationOutcome, Mode
from tollhouse.observability.buffered_metrics import BufferedCounter, BufferedHistogram
from tollhouse.observability.registry import registry

_policy_decisions = BufferedCounter(
    "tollhouse_policy_decisions_total",
    "Decisions of policies, by direction, mode and outcome; failed and not evaluable are outcomes.",
    ["direction", "mode", "outcome"],
    registry=registry,
)
_policy_decisions_dropped = BufferedCounter(
    "tollhouse_policy_decisions_dropped_total",
    "Decisions of policies that were not made or not recorded, by reason.",
    ["reason"],
    registry=registry,
)
_judging_seconds = BufferedHistogram(
    "tollhouse_judging_seconds",
    "Time that all questions about one content took.",
    ["direction", "mode"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    registry=registry,
)


class DecisionLoss(StrEnum):
    """Why a decision was not made or not recorded.

    No judge is configured, too many waited, the organization's judge tokens were used up, the judge
    failed, the database refused, or the worker ended.
    """

    NO_JUDGE = "no_judge"
    NO_ROOM = "no_room"
    NO_TOKENS = "no_tokens"
    FAILED = "failed"
    REFUSED = "refused"
    STOPPED = "stopped"


_policy_decisions.show_zeros(
    (Direction.REQUEST, Direction.RESPONSE), Mode, (EvaluationOutcome.FAILED,)
)
_policy_decisions_dropped.show_zeros(DecisionLoss)
# Finding a child by its labels costs as much as counting, so the few children are cached.
_decisions_of: Final = cache(_policy_decisions.labels)


def policy_decided(direction: str, mode: str, outcome: str) -> None:
    """Count the decision of one policy."""
    _decisions_of(direction, mode, outcome).add()


def decisions_dropped(count: int, loss: DecisionLoss) -> None:
    """Add decisions that were not made or not recorded."""
    _policy_decisions_dropped.labels(loss).add(count)


def judged(direction: str, mode: str, *, seconds: float) -> None:
    """Record the time of all questions about one content."""
    _judging_seconds.labels(direction, mode).record(seconds)
