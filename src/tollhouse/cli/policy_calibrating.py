"""`tollhouse policy calibrate`: labelled texts in, a threshold out, and how sure one can be."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

import click
from rich.progress import Progress

from tollhouse.base.ids import PolicyId, policy_id_text
from tollhouse.cli import charts, output, policy_reasons, progress, sample_texts, session
from tollhouse.cli import policy_calibration_views as views
from tollhouse.cli.arguments import example, json_option, organization_option
from tollhouse.cli.authoring_judge import authoring_judge
from tollhouse.cli.policy_arguments import POLICY
from tollhouse.cli.policy_calibration_views import Calibration, Share, Threshold
from tollhouse.cli.policy_trying import FILE, retrieve, versions
from tollhouse.cli.sample_texts import LabelledSample
from tollhouse.cli.session import Session
from tollhouse.judging import calibration
from tollhouse.judging.calibration import POSITIVES_MIN, Labelled, Point
from tollhouse.judging.score import matches
from tollhouse.judging.types import Decision, FailureReason, Score

FALSE_POSITIVES_DEFAULT: Final = 0.01


class NothingAnswered(click.ClickException):
    """There is nothing to calibrate by."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """What the judge said of the draft on labelled texts, and why it said nothing of others."""

    scores: list[Score]
    labelled: list[Labelled]
    threshold_basis_points: int
    failures: list[FailureReason]


def _writable(_: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Found out by opening it, before a judge is asked for nothing."""
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
    help="Of texts that should not match, the share that may.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_writable,
    help="Also draw the curve into this PNG file.",
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
    """Find thresholds for a draft from texts whose answer is known. Nothing is changed.

    Every line of the file is a JSON object with `text`, and `label`: whether it should match.
    """
    samples = sample_texts.read_labelled(file)
    with progress.bars(as_json=as_json) as bars:
        answers = session.run(
            settings_path, lambda operator: _asked(operator, organization, policy, samples, bars)
        )
    if not answers.labelled:
        reasons = policy_reasons.sentences(answers.failures)
        raise NothingAnswered("\n".join(["The judge answered for none of the texts.", *reasons]))
    points = calibration.curve(answers.labelled)
    result = _calibration(policy, answers, points, false_positive_rate_max)
    drawn = _drawn(points)
    if as_json:
        output.show(result, as_json=True)
    else:
        views.show(result, answers.scores, false_positive_rate_max=false_positive_rate_max)
        output.say(charts.in_terminal(drawn, across="false positives", up="recall"), as_json=False)
    if plot is not None:
        charts.write_png(plot, drawn)


async def _asked(
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
    samples: Sequence[LabelledSample], decisions: Sequence[Decision], threshold_basis_points: int
) -> Answers:
    """What only the draft's own threshold leaves undecided has a score like any other."""
    scores: list[Score] = []
    labelled: list[Labelled] = []
    failures: list[FailureReason] = []
    for sample, decision in zip(samples, decisions, strict=True):
        score = decision.score
        if score is not None and _tells(decision, score):
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


def _tells(decision: Decision, score: Score) -> bool:
    """Whether it is the score of the text, and not of a part that was answered before another."""
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
            f"Texts that should match: {positives}. With less than {POSITIVES_MIN} the intervals "
            "are so wide that another threshold may be as good."
        )
    if positives == len(found):
        warnings.append("There is no text that should not match, so false positives are unknown.")
    if failures:
        warnings.append(f"Texts for which the judge had no answer that counts: {len(failures)}.")
    return warnings + policy_reasons.sentences(failures)


def _drawn(points: list[Point]) -> list[charts.Point]:
    """From nothing found to everything found."""
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
