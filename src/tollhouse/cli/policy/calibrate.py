"""`tollhouse policy calibrate`: find thresholds for a draft from labelled texts."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

import click
from rich.progress import Progress

from tollhouse.base.ids import PolicyId, policy_id_text
from tollhouse.cli import output, session
from tollhouse.cli.arguments import POLICY, example, json_option, organization_option
from tollhouse.cli.authoring_judge import authoring_judge, failure_sentences
from tollhouse.cli.policy import calibration_views as views
from tollhouse.cli.policy import charts, sample_texts
from tollhouse.cli.policy.calibration_views import Calibration, Share, Threshold
from tollhouse.cli.policy.drafts import FILE, retrieve, versions
from tollhouse.cli.policy.sample_texts import LabelledSample
from tollhouse.cli.session import Session
from tollhouse.evaluation.judge import calibration
from tollhouse.evaluation.judge.calibration import POSITIVES_MIN, Labelled, Point
from tollhouse.evaluation.judge.score import matches
from tollhouse.evaluation.types import EvaluationDecision, FailureReason, Score

FALSE_POSITIVES_DEFAULT: Final = 0.01


class NothingAnswered(click.ClickException):
    """The judge answered for none of the texts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """The judge's scores of the labelled texts, and the reasons of texts without a score."""

    scores: list[Score]
    labelled: list[Labelled]
    threshold_basis_points: int
    failures: list[FailureReason]


def _writable(_: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Return the path if it can be written. Checked before the judge is asked."""
    if path is None:
        return None
    is_new = not path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}."
        raise click.BadParameter(message, param=option) from None
    if is_new:
        path.unlink()
    return path


@click.command(epilog=example("tollhouse policy calibrate POLICY_ID labelled.jsonl"))
@click.argument("policy", type=POLICY)
@click.argument("file", type=FILE)
@organization_option
@click.option(
    "--false-positive-rate-max",
    type=click.FloatRange(0, 1),
    default=FALSE_POSITIVES_DEFAULT,
    help="The share of texts that may match although they should not.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_writable,
    help="Also write the curve to this PNG file.",
)
@json_option
@click.pass_obj
def calibrate(
    settings_path: Path,
    *,
    policy: PolicyId,
    file: Path,
    organization: UUID | None,
    false_positive_rate_max: float,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Find thresholds for a draft from labelled texts. Nothing is changed.

    Every line of the file is a JSON object with `text`, and `label`: whether it should match.
    """
    samples = sample_texts.read_labelled(file)
    with output.progress_bars(as_json=as_json) as bars:
        answers = session.run(
            settings_path,
            lambda operator: _collect_answers(operator, organization, policy, samples, bars),
        )
    if not answers.labelled:
        sentences = [
            "The judge answered for none of the texts.",
            *failure_sentences(answers.failures),
        ]
        raise NothingAnswered("\n".join(sentences))
    points = calibration.curve(answers.labelled)
    result = _calibration(policy, answers, points, false_positive_rate_max)
    curve = _curve_points(points)
    if as_json:
        output.show(result, as_json=True)
    else:
        views.show(result, answers.scores, false_positive_rate_max=false_positive_rate_max)
        output.say(charts.in_terminal(curve, across="false positives", up="recall"), as_json=False)
    if plot is not None:
        charts.write_png(plot, curve)


async def _collect_answers(
    operator: Session,
    organization: UUID | None,
    policy_id: PolicyId,
    samples: list[LabelledSample],
    bars: Progress,
) -> Answers:
    owner = await operator.organization(organization)
    policy = await retrieve(operator, owner.id, policy_id)
    draft = versions(operator, policy)["draft"]
    async with authoring_judge(operator, owner.id) as judge:
        decided = await judge.decide_all([draft], [sample.text for sample in samples], bars)
    decisions = [decision for (decision,) in decided]
    return answered(samples, decisions, draft.match_threshold_basis_points)


def answered(
    samples: Sequence[LabelledSample],
    decisions: Sequence[EvaluationDecision],
    threshold_basis_points: int,
) -> Answers:
    """Separate scores from failures.

    A text that only the draft's threshold leaves undecided has a score.
    """
    scores: list[Score] = []
    labelled: list[Labelled] = []
    failures: list[FailureReason] = []
    for sample, decision in zip(samples, decisions, strict=True):
        score = decision.score
        if score is not None and _is_complete(decision, score):
            scores.append(score)
            labelled.append(Labelled(score.basis_points, sample.label))
        elif decision.reason is not None:
            failures.append(decision.reason)
    return Answers(
        scores=scores,
        labelled=labelled,
        threshold_basis_points=threshold_basis_points,
        failures=failures,
    )


def _is_complete(decision: EvaluationDecision, score: Score) -> bool:
    """Return whether the score is of the whole text, not of a part of it."""
    if decision.reason is FailureReason.UNDECIDED:
        threshold = decision.policy.match_threshold_basis_points
        return matches(score, threshold_basis_points=threshold) is None
    return decision.reason is None


def _calibration(
    policy: PolicyId, answers: Answers, points: list[Point], false_positive_rate_max: float
) -> Calibration:
    found = answers.labelled
    best_recall = calibration.best_recall(points, false_positive_rate_max=false_positive_rate_max)
    return Calibration(
        policy_id=policy_id_text(policy),
        texts=len(found) + len(answers.failures),
        positives=sum(one.is_positive for one in found),
        failures=len(answers.failures),
        auc=_share(calibration.auc(found)),
        present=_threshold(calibration.at(found, answers.threshold_basis_points)),
        best_f1=_threshold(calibration.best_f1(points)),
        best_recall=None if best_recall is None else _threshold(best_recall),
        warnings=_warnings(found, answers.failures),
    )


def _warnings(found: list[Labelled], failures: list[FailureReason]) -> list[str]:
    positives = sum(one.is_positive for one in found)
    warnings: list[str] = []
    if positives < POSITIVES_MIN:
        warnings.append(
            f"Texts that should match: {positives}. With fewer than {POSITIVES_MIN} the intervals "
            "are so wide that another threshold may be as good."
        )
    if positives == len(found):
        warnings.append("Every text should match, so the rate of false positives is unknown.")
    if failures:
        warnings.append(f"Texts for which the judge gave no usable answer: {len(failures)}.")
    return warnings + failure_sentences(failures)


def _curve_points(points: list[Point]) -> list[charts.Point]:
    """Return the points of the curve, from no text found to every text found."""
    along = [(point.false_positive_rate.value, point.recall.value) for point in reversed(points)]
    return [(0.0, 0.0), *along]


def _threshold(point: Point) -> Threshold:
    return Threshold(
        match_threshold_basis_points=point.threshold_basis_points,
        f1=round(point.f1, 4),
        precision=_share(point.precision),
        recall=_share(point.recall),
        false_positive_rate=_share(point.false_positive_rate),
    )


def _share(interval: calibration.Interval) -> Share:
    return Share(**{name: round(value, 4) for name, value in asdict(interval).items()})
