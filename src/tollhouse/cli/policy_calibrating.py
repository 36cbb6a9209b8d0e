"""`tollhouse policy calibrate`: labelled texts in, a threshold out, and how sure one can be."""

from dataclasses import asdict
from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import click
from msgspec import Struct
from rich.progress import Progress

from tollhouse.base.ids import PolicyId, policy_id_text
from tollhouse.cli import charts, output, progress, sample_texts, session
from tollhouse.cli.arguments import example, json_option, organization_option
from tollhouse.cli.authoring_judge import authoring_judge
from tollhouse.cli.policy_arguments import POLICY
from tollhouse.cli.policy_trying import FILE, retrieve, versions
from tollhouse.cli.sample_texts import LabelledSample
from tollhouse.cli.session import Session
from tollhouse.judging import calibration
from tollhouse.judging.calibration import POSITIVES_MIN, Labelled, Point
from tollhouse.judging.types import Decision

FALSE_POSITIVES_DEFAULT: Final = 0.01


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


class NothingAnswered(click.ClickException):
    """There is nothing to calibrate by."""


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
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
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
        found, threshold, failures = session.run(
            settings_path, lambda operator: _scores(operator, organization, policy, samples, bars)
        )
    if not found:
        raise NothingAnswered("The judge answered for none of the texts.")
    points = calibration.curve(found)
    result = Calibration(
        policy_id=policy_id_text(policy),
        texts=len(samples),
        positives=sum(one.is_positive for one in found),
        failures=failures,
        auc=_share(calibration.auc(found)),
        present=_threshold(calibration.at(found, threshold)),
        best_f1=_threshold(calibration.best_f1(points)),
        best_recall=_optional(
            calibration.best_recall(points, false_positive_rate_max=false_positive_rate_max)
        ),
        warnings=_warnings(found, failures),
    )
    output.show(result, as_json=as_json)
    drawn = _drawn(points)
    output.say(charts.in_terminal(drawn, across="false positives", up="recall"), as_json=as_json)
    if plot is not None:
        charts.write_png(plot, drawn)


async def _scores(
    operator: Session,
    organization: UUID | None,
    policy_id: PolicyId,
    samples: list[LabelledSample],
    bars: Progress,
) -> tuple[list[Labelled], int, int]:
    """Scores of what was answered, the draft's threshold, and how much was not answered."""
    owner = await operator.organization(organization)
    policy = await retrieve(operator, owner.id, policy_id)
    draft = versions(operator, policy)["draft"]
    async with authoring_judge(operator, owner.id) as judge:
        decided = await judge.decide_all([draft], [sample.text for sample in samples], bars)
    found = [
        Labelled(decision.score.basis_points, sample.label)
        for sample, (decision,) in zip(samples, decided, strict=True)
        if _is_answered(decision) and decision.score is not None
    ]
    return found, draft.match_threshold_basis_points, len(samples) - len(found)


def _is_answered(decision: Decision) -> bool:
    return decision.reason is None


def _warnings(found: list[Labelled], failures: int) -> list[str]:
    positives = sum(one.is_positive for one in found)
    warnings: list[str] = []
    if positives < POSITIVES_MIN:
        warnings.append(
            f"There are {positives} texts that should match. With less than {POSITIVES_MIN} the "
            "intervals are so wide that another threshold may be as good."
        )
    if positives == len(found):
        warnings.append("There is no text that should not match, so false positives are unknown.")
    if failures:
        warnings.append(f"For {failures} texts the judge had no answer that counts.")
    return warnings


def _drawn(points: list[Point]) -> list[charts.Point]:
    """From nothing found to everything found."""
    along = [(point.false_positive_rate.value, point.recall.value) for point in reversed(points)]
    return [(0.0, 0.0), *along]


def _optional(point: Point | None) -> Threshold | None:
    return None if point is None else _threshold(point)


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
