"""`tollhouse policy backtest`: compare draft and published version on many texts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import click
import msgspec
from msgspec import Struct
from rich.progress import Progress

from tollhouse.base.ids import PolicyId, policy_id_text
from tollhouse.cli import output, session
from tollhouse.cli.arguments import POLICY, example, json_option, organization_option
from tollhouse.cli.authoring_judge import authoring_judge, failure_sentences
from tollhouse.cli.policy import sample_texts
from tollhouse.cli.policy.drafts import FILE, retrieve, versions
from tollhouse.cli.session import Session
from tollhouse.evaluation.types import EvaluationDecision

SHOWN_CHARACTERS: Final = 60
SUMMARY_COLUMNS: Final = (
    *("policy_id", "texts", "draft_matches", "draft_failures"),
    *("published_matches", "published_failures"),
)
DISAGREEMENT_COLUMNS: Final = (
    *("line", "draft_score", "draft", "published_score", "published", "text"),
)
NOTHING_PUBLISHED: Final = "The policy has no published version, so the draft was not compared."
ALL_AGREE: Final = "The draft and the published version decide every text alike."


class Disagreement(Struct, frozen=True, kw_only=True):
    """A text that the draft and the published version decide differently, with its line."""

    line: int
    draft: str
    draft_score: int | None
    published: str
    published_score: int | None
    text: str


class Backtest(Struct, frozen=True, kw_only=True):
    """The decisions of the draft and of the published version, counted."""

    object: Literal["policy.backtest"] = "policy.backtest"
    policy_id: str
    texts: int
    draft_matches: int
    draft_failures: int
    published_matches: int | None
    published_failures: int | None
    disagreements: list[Disagreement]
    warnings: list[str]


@click.command(epilog=example("tollhouse policy backtest POLICY_ID texts.jsonl"))
@click.argument("policy", type=POLICY)
@click.argument("file", type=FILE)
@organization_option
@json_option
@click.pass_obj
def backtest(
    settings_path: Path, *, policy: PolicyId, file: Path, organization: UUID | None, as_json: bool
) -> None:
    """Judge many texts by draft and published version, and list where they differ.

    Every line of the file is a JSON object with `text`.
    """
    texts = {line: sample.text for line, sample in sample_texts.read(file).items()}
    with output.progress_bars(as_json=as_json) as bars:
        found = session.run(
            settings_path, lambda operator: _backtest(operator, organization, policy, texts, bars)
        )
    if as_json:
        output.show(found, as_json=True)
    else:
        _show(found)


def _show(found: Backtest) -> None:
    tree = msgspec.to_builtins(found)
    output.show_rows([tree], SUMMARY_COLUMNS)
    output.say("", as_json=False)
    if found.disagreements:
        output.show_rows(tree["disagreements"], DISAGREEMENT_COLUMNS)
        output.say("", as_json=False)
    elif found.published_matches is not None:
        output.say(ALL_AGREE, as_json=False)
    for warning in found.warnings:
        output.say(warning, as_json=False)


async def _backtest(
    operator: Session,
    organization: UUID | None,
    policy_id: PolicyId,
    texts: Mapping[int, str],
    bars: Progress,
) -> Backtest:
    owner = await operator.organization(organization)
    policy = await retrieve(operator, owner.id, policy_id)
    sides = versions(operator, policy)
    async with authoring_judge(operator, owner.id) as judge:
        decided = await judge.decide_all(list(sides.values()), list(texts.values()), bars)
    drafts = [decisions[0] for decisions in decided]
    published = [decisions[1] for decisions in decided] if len(sides) > 1 else None
    return Backtest(
        policy_id=policy_id_text(policy_id),
        texts=len(texts),
        draft_matches=_count(drafts, "match"),
        draft_failures=_count(drafts, "failed"),
        published_matches=None if published is None else _count(published, "match"),
        published_failures=None if published is None else _count(published, "failed"),
        disagreements=[
            _disagreement(line, text, draft, other)
            for (line, text), draft, other in zip(
                texts.items(), drafts, published or drafts, strict=True
            )
            if draft.outcome is not other.outcome
        ],
        warnings=_warnings(drafts, published),
    )


def _warnings(
    drafts: Sequence[EvaluationDecision], published: Sequence[EvaluationDecision] | None
) -> list[str]:
    decided = [*drafts, *(published or ())]
    failures = failure_sentences(decision.reason for decision in decided)
    return failures if published is not None else [NOTHING_PUBLISHED, *failures]


def _disagreement(
    line: int, text: str, draft: EvaluationDecision, published: EvaluationDecision
) -> Disagreement:
    return Disagreement(
        line=line,
        draft=draft.outcome,
        draft_score=draft.score and draft.score.basis_points,
        published=published.outcome,
        published_score=published.score and published.score.basis_points,
        text=text[:SHOWN_CHARACTERS],
    )


def _count(decisions: Sequence[EvaluationDecision], outcome: str) -> int:
    return sum(decision.outcome == outcome for decision in decisions)
