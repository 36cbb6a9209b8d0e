"""What `tollhouse policy calibrate` has found: one document for programs, a table for people."""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from tollhouse.cli import output
from tollhouse.cli.output import JsonValue
from tollhouse.judging.score import matches
from tollhouse.judging.types import Score

COLUMNS: Final = (
    *("what for", "threshold", "F1", "precision", "recall", "false positive rate", "undecided"),
)
PRESENT: Final = "as the draft is"
BEST_F1: Final = "best F1"
LEGEND: Final = (
    "Thresholds are in basis points. In brackets stands what a share may be with 95 % confidence. "
    "Undecided are texts whose bounds enclose the threshold: an enforcing policy refuses them."
)
NO_POSITIVES: Final = (
    "There is no threshold of the best F1: no text that should match was answered by the judge."
)
NOTHING_FOUND: Final = (
    "There is no threshold of the best F1: every text that should match has the score 0, which no "
    "threshold reaches. Ask in other words, or another judge."
)
TROUBLED: Final = (
    "There is no threshold with at most {share} false positives: among the texts with the highest "
    "score are more that should not match. Look at their labels, ask in other words, or allow more "
    "with --false-positive-rate-max."
)


class Share(Struct, frozen=True, kw_only=True):
    """With what it may be with 95 % confidence."""

    value: float
    lowest: float
    highest: float


class Threshold(Struct, frozen=True, kw_only=True):
    """What a threshold would have done to the labelled texts."""

    match_threshold_basis_points: int
    f1: float
    precision: Share
    recall: Share
    false_positive_rate: Share


class Calibration(Struct, frozen=True, kw_only=True):
    """Texts that the judge could not answer are left out of everything but `failures`."""

    object: Literal["policy.calibration"] = "policy.calibration"
    policy_id: str
    texts: int
    positives: int
    failures: int
    auc: Share
    present: Threshold
    best_f1: Threshold
    best_recall: Threshold | None
    warnings: list[str]


class _Heading(Struct, frozen=True, kw_only=True):
    policy_id: str
    texts: int
    positives: int
    failures: int
    auc: str


def show(found: Calibration, scores: Sequence[Score], *, false_positive_rate_max: float) -> None:
    """For people. From the scores follows how many texts a threshold could not decide."""
    heading = _Heading(
        policy_id=found.policy_id,
        texts=found.texts,
        positives=found.positives,
        failures=found.failures,
        auc=_share(found.auc),
    )
    output.show(heading, as_json=False)
    output.say("", as_json=False)
    allowed = f"{100 * false_positive_rate_max:g} %"
    purposes = {
        PRESENT: found.present,
        BEST_F1: found.best_f1 if found.best_f1.f1 else None,
        f"most recall, {allowed} false positives": found.best_recall,
    }
    rows = [
        _row(purpose, threshold, scores)
        for purpose, threshold in purposes.items()
        if threshold is not None
    ]
    output.show_rows(rows, COLUMNS)
    for sentence in ("", LEGEND, *_missing(found, allowed), *found.warnings, ""):
        output.say(sentence, as_json=False)


def _row(purpose: str, of: Threshold, scores: Sequence[Score]) -> dict[str, JsonValue]:
    threshold = of.match_threshold_basis_points
    undecided = sum(matches(score, threshold_basis_points=threshold) is None for score in scores)
    return {
        "what for": purpose,
        "threshold": threshold,
        "F1": f"{of.f1:.2f}",
        "precision": _share(of.precision),
        "recall": _share(of.recall),
        "false positive rate": _share(of.false_positive_rate),
        "undecided": undecided,
    }


def _missing(found: Calibration, allowed: str) -> list[str]:
    """Why a threshold is not in the table."""
    sentences: list[str] = []
    if not found.best_f1.f1:
        sentences.append(NOTHING_FOUND if found.positives else NO_POSITIVES)
    if found.best_recall is None:
        sentences.append(TROUBLED.format(share=allowed))
    return sentences


def _share(of: Share) -> str:
    return f"{of.value:.2f} ({of.lowest:.2f}..{of.highest:.2f})"
