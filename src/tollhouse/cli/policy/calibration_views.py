"""Output of `tollhouse policy calibrate`: a JSON document, or a table."""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from tollhouse.cli import output
from tollhouse.cli.output import JsonValue
from tollhouse.evaluation.judge.score import matches
from tollhouse.evaluation.types import Score

COLUMNS: Final = (
    *("purpose", "threshold", "F1", "precision", "recall", "false positive rate", "undecided"),
)
PRESENT: Final = "the draft's threshold"
BEST_F1: Final = "best F1"
LEGEND: Final = (
    "Thresholds are in basis points. Brackets show the 95 % confidence interval of a share. A text "
    "is undecided if its score's bounds enclose the threshold: an enforcing policy refuses it."
)
NO_POSITIVES: Final = (
    "No threshold has a best F1: the judge answered for no text that should match."
)
NOTHING_FOUND: Final = (
    "No threshold has a best F1: every text that should match has the score 0, which no threshold "
    "reaches. Reword the rule, or use another judge."
)
TOO_MANY_FALSE_POSITIVES: Final = (
    "No threshold has at most {share} false positives: more of the texts with the highest score "
    "should not match. Check their labels, reword the rule, or allow more with "
    "--false-positive-rate-max."
)


class Share(Struct, frozen=True, kw_only=True):
    """A share with its 95 % confidence interval."""

    value: float
    lowest: float
    highest: float


class Threshold(Struct, frozen=True, kw_only=True):
    """A threshold and its results on the labelled texts."""

    match_threshold_basis_points: int
    f1: float
    precision: Share
    recall: Share
    false_positive_rate: Share


class Calibration(Struct, frozen=True, kw_only=True):
    """Thresholds for a draft. Texts without a usable answer count only in `failures`."""

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
    """Print the calibration. `scores` give the number of texts that a threshold cannot decide."""
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


def _row(purpose: str, result: Threshold, scores: Sequence[Score]) -> dict[str, JsonValue]:
    threshold = result.match_threshold_basis_points
    undecided = sum(matches(score, threshold_basis_points=threshold) is None for score in scores)
    return {
        "purpose": purpose,
        "threshold": threshold,
        "F1": f"{result.f1:.2f}",
        "precision": _share(result.precision),
        "recall": _share(result.recall),
        "false positive rate": _share(result.false_positive_rate),
        "undecided": undecided,
    }


def _missing(found: Calibration, allowed: str) -> list[str]:
    """Return why a threshold is not in the table."""
    sentences: list[str] = []
    if not found.best_f1.f1:
        sentences.append(NOTHING_FOUND if found.positives else NO_POSITIVES)
    if found.best_recall is None:
        sentences.append(TOO_MANY_FALSE_POSITIVES.format(share=allowed))
    return sentences


def _share(share: Share) -> str:
    return f"{share.value:.2f} ({share.lowest:.2f}..{share.highest:.2f})"
