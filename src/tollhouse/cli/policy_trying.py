"""`tollhouse policy lint`, `test` and `backtest`: a draft on trial, before anybody feels it."""

import sys
from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import click
from msgspec import Struct
from rich.progress import Progress

from tollhouse.api import policy_trial_wire
from tollhouse.base.ids import OrganizationId, PolicyId, policy_id_text
from tollhouse.cli import output, progress, sample_texts, session
from tollhouse.cli.arguments import example, json_option, organization_option
from tollhouse.cli.authoring_judge import authoring_judge
from tollhouse.cli.policy_arguments import POLICY
from tollhouse.cli.session import Session
from tollhouse.contract.policy_trials import PolicyVerdictList
from tollhouse.judging.types import Decision
from tollhouse.policies import service
from tollhouse.policies.applying import Side, on_trial
from tollhouse.policies.lint import lint as lint_rule
from tollhouse.policies.types import AppliedPolicy, Policy

SHOWN_CHARACTERS: Final = 60
VERDICT_COLUMNS: Final = ("of", "outcome", "score_basis_points", "threshold_basis_points", "reason")
DISAGREEMENT_COLUMNS: Final = (
    "line",
    "draft_score",
    "draft",
    "published_score",
    "published",
    "text",
)
REMARK_COLUMNS: Final = ("weakness", "advice")
FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


class Disagreement(Struct, frozen=True, kw_only=True):
    """A text that draft and publication decide differently."""

    line: int
    draft: str
    draft_score: int | None
    published: str
    published_score: int | None
    text: str


class Backtest(Struct, frozen=True, kw_only=True):
    """What the draft would have done to the texts, beside what is published."""

    object: Literal["policy.backtest"] = "policy.backtest"
    policy_id: str
    texts: int
    draft_matches: int
    draft_failures: int
    published_matches: int | None
    published_failures: int | None
    disagreements: list[Disagreement]


@click.command(epilog=example('tollhouse policy lint --rule "Does the text name a person?"'))
@click.argument("policy", type=POLICY, required=False)
@organization_option
@click.option("--rule", help="A rule that is no policy yet.")
@json_option
@click.pass_obj
def lint(
    settings_path: Path,
    *,
    policy: PolicyId | None,
    organization: UUID | None,
    rule: str | None,
    as_json: bool,
) -> None:
    """Read a rule for what makes it hard to judge. Nobody is asked."""
    if (policy is None) == (rule is None):
        message = "Name either a policy or a --rule."
        raise click.UsageError(message)
    if policy is not None:
        rule = _found(settings_path, organization, policy).draft.rule
    remarks = policy_trial_wire.remarks(lint_rule(rule or ""))
    if remarks.data or as_json:
        output.show_list(remarks, REMARK_COLUMNS, as_json=as_json)
    else:
        output.say("Nothing to remark.", as_json=False)


@click.command(epilog=example('tollhouse policy test POLICY_ID --text "Call me on 555 0100."'))
@click.argument("policy", type=POLICY)
@organization_option
@click.option("--text", help="What to judge. When left out, standard input is read.")
@json_option
@click.pass_obj
def test(
    settings_path: Path,
    *,
    policy: PolicyId,
    organization: UUID | None,
    text: str | None,
    as_json: bool,
) -> None:
    """Judge a text by the draft, and by what is published."""
    judged = sys.stdin.read() if text is None else text

    async def work(operator: Session) -> PolicyVerdictList:
        owner = await operator.organization(organization)
        found = await retrieve(operator, owner.id, policy)
        sides = versions(operator, found)
        async with authoring_judge(operator, owner.id) as judge:
            decisions = await judge.decide(list(sides.values()), judged)
        return policy_trial_wire.verdicts(sides, decisions)

    verdicts = session.run(settings_path, work)
    output.show_list(verdicts, VERDICT_COLUMNS, as_json=as_json)


@click.command(epilog=example("tollhouse policy backtest POLICY_ID texts.jsonl"))
@click.argument("policy", type=POLICY)
@click.argument("file", type=FILE)
@organization_option
@json_option
@click.pass_obj
def backtest(
    settings_path: Path, *, policy: PolicyId, file: Path, organization: UUID | None, as_json: bool
) -> None:
    """Judge many texts by draft and publication, and list those that they disagree on.

    Every line of the file is a JSON object with a member `text`.
    """
    texts = [sample.text for sample in sample_texts.read(file)]
    with progress.bars(as_json=as_json) as bars:
        found = session.run(
            settings_path, lambda operator: _backtest(operator, organization, policy, texts, bars)
        )
    if as_json:
        output.show(found, as_json=True)
        return
    summary = {
        name: getattr(found, name) for name in found.__struct_fields__ if name != "disagreements"
    }
    output.show_rows([summary], [name for name in summary if name != "object"])
    if found.disagreements:
        output.say("", as_json=False)
        output.show_list(_Listed(data=found.disagreements), DISAGREEMENT_COLUMNS, as_json=False)


class _Listed(Struct, frozen=True, kw_only=True):
    data: list[Disagreement]


async def _backtest(
    operator: Session,
    organization: UUID | None,
    policy_id: PolicyId,
    texts: list[str],
    bars: Progress,
) -> Backtest:
    owner = await operator.organization(organization)
    policy = await retrieve(operator, owner.id, policy_id)
    sides = versions(operator, policy)
    async with authoring_judge(operator, owner.id) as judge:
        decided = await judge.decide_all(list(sides.values()), texts, bars)
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
            _disagreement(line, texts[line - 1], draft, other)
            for line, (draft, other) in enumerate(
                zip(drafts, published or drafts, strict=True), start=1
            )
            if draft.outcome is not other.outcome
        ],
    )


def _disagreement(line: int, text: str, draft: Decision, published: Decision) -> Disagreement:
    return Disagreement(
        line=line,
        draft=draft.outcome,
        draft_score=draft.score and draft.score.basis_points,
        published=published.outcome,
        published_score=published.score and published.score.basis_points,
        text=text[:SHOWN_CHARACTERS],
    )


async def retrieve(operator: Session, organization_id: OrganizationId, policy: PolicyId) -> Policy:
    """One policy of an organization."""
    async with operator.database.transaction() as tx:
        return await service.retrieve(tx, organization_id, policy)


def versions(operator: Session, policy: Policy) -> dict[Side, AppliedPolicy]:
    """What the draft would ask, and what is asked by the publication if there is one."""
    default = operator.settings.policies.default_threshold_basis_points
    return on_trial(policy, default_threshold_basis_points=default)


def _found(settings_path: Path, organization: UUID | None, policy: PolicyId) -> Policy:
    async def read(operator: Session) -> Policy:
        owner = await operator.organization(organization)
        return await retrieve(operator, owner.id, policy)

    return session.run(settings_path, read)


def _count(decisions: list[Decision], outcome: str) -> int:
    return sum(decision.outcome == outcome for decision in decisions)
