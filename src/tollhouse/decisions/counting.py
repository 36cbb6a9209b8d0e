"""What the process counts of examinations."""

from tollhouse.decisions.types import Examination
from tollhouse.observability import metrics

_MS = 1000.0


def count(examination: Examination) -> None:
    """Every policy of it, and how long all of them took together."""
    for decision in examination.decisions:
        metrics.policy_decided(examination.direction, examination.mode, decision.outcome)
    seconds = examination.judging_ms / _MS
    metrics.judged(examination.direction, examination.mode, seconds=seconds)
