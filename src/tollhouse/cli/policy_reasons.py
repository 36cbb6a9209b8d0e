"""Why a judge's answer decides nothing, in sentences for those who write policies."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from tollhouse.judging.types import FailureReason

SENTENCES: Final[Mapping[FailureReason, str]] = {
    FailureReason.UNREACHABLE: "the judge could not be reached, or failed; see `tollhouse doctor`",
    FailureReason.TIMED_OUT: "the judge took longer than its `deadline_seconds`",
    FailureReason.REJECTED: "the judge refused the question as invalid; see `tollhouse doctor`",
    FailureReason.GARBLED: "the judge answered in no form that is known; see `tollhouse doctor`",
    FailureReason.UNSEEN: "neither yes nor no is among the tokens that the judge shows",
    FailureReason.UNCOVERED: "the judge would rather have said something else than yes or no",
    FailureReason.UNDECIDED: "the threshold lies between the bounds of the score; the judge does "
    "not show enough of its tokens to tell",
    FailureReason.NOT_EVALUABLE: "the text cannot be shown to a judge",
    FailureReason.OVER_BUDGET: "the rule or the text is longer than the judge may be given",
}


def sentences(reasons: Iterable[str | None]) -> list[str]:
    """One for each reason that there is, the most frequent first."""
    counted = Counter(FailureReason(reason) for reason in reasons if reason is not None)
    return [
        f"{reason.value}{f' ({count} times)' if count > 1 else ''}: {SENTENCES[reason]}."
        for reason, count in counted.most_common()
    ]
