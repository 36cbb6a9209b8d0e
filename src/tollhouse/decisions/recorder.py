"""Evaluations of policies, counted in metrics at once and written in the background."""

from collections.abc import Sequence
from typing import Final

from tollhouse.decisions import store
from tollhouse.decisions.types import EvaluationRecord, PolicyDecision
from tollhouse.observability import model_metrics, policy_metrics
from tollhouse.observability.policy_metrics import DecisionLoss
from tollhouse.storage.buffered_writer import BufferedWriter, RecordLoss
from tollhouse.storage.database import Database

DECISIONS_MAX: Final = 5_000
"""The most decisions in one statement; one content can have a thousand."""
NOT_EVALUABLE_REASONS: Final = frozenset({"not_evaluable", "over_budget"})
"""Reasons that depend on the content alone: every judge would have failed."""
_NOT_EVALUABLE: Final = "not_evaluable"
_MS_PER_SECOND: Final = 1000.0


class DecisionRecorder(BufferedWriter[EvaluationRecord]):
    """Writes evaluations in the background. One per worker; sizes are numbers of decisions."""

    def __init__(self, database: Database, *, waiting_decisions_max: int) -> None:
        super().__init__(
            "decisions", buffer_size=waiting_decisions_max, batch_size_max=DECISIONS_MAX
        )
        self._database = database
        model_metrics.read_queue_length("decisions", lambda: self.waiting_size)

    def record(self, record: EvaluationRecord) -> None:
        """Count an evaluation, and buffer it until it is written. Never waits and never fails."""
        for decision in record.decisions:
            policy_metrics.policy_decided(record.direction, record.mode, _outcome(decision))
        seconds = record.judging_ms / _MS_PER_SECOND
        policy_metrics.judged(record.direction, record.mode, seconds=seconds)
        self.add(record, size=len(record.decisions))

    async def insert(self, records: Sequence[EvaluationRecord]) -> None:
        """Write evaluations with their decisions, and add these to the sums of their days."""
        await store.insert(self._database, records)

    def dropped(self, records: Sequence[EvaluationRecord], loss: RecordLoss) -> None:
        """Count decisions that were not written."""
        size = sum(len(record.decisions) for record in records)
        policy_metrics.decisions_dropped(size, DecisionLoss(loss))


def _outcome(decision: PolicyDecision) -> str:
    """Return the outcome; content that cannot be evaluated is no failure of the judge."""
    is_content = decision.reason in NOT_EVALUABLE_REASONS
    return _NOT_EVALUABLE if is_content else decision.outcome
