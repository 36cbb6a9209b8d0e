"""`tollhouse policy lint` and `test`: checks of a draft before it is published."""

import sys
from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.api.wire import policy_trials as policy_trial_wire
from tollhouse.base.ids import OrganizationId, PolicyId
from tollhouse.base.policies import Direction
from tollhouse.cli import output, session
from tollhouse.cli.arguments import example, json_option, organization_option
from tollhouse.cli.output import JsonValue
from tollhouse.cli.policy.arguments import POLICY
from tollhouse.cli.policy.authoring_judge import authoring_judge, failure_sentences
from tollhouse.cli.session import Session
from tollhouse.contract.policy_trials import PolicyVerdict, PolicyVerdictList
from tollhouse.policies import service
from tollhouse.policies.applying import Side, on_trial, rule_on_trial
from tollhouse.policies.lint import lint as lint_rule
from tollhouse.policies.types import AppliedPolicy, Policy

VERDICT_COLUMNS: Final = (
    *("of", "outcome", "score", "lowest..highest", "coverage", "threshold", "reason"),
)
REMARK_COLUMNS: Final = ("weakness", "advice")
FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(epilog=example('tollhouse policy lint --rule "Does the text name a person?"'))
@click.argument("policy", type=POLICY, required=False)
@organization_option
@click.option("--rule", help="A rule that is not part of a policy.")
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
    """Check a rule for wording that is hard to judge. The judge is not asked."""
    _require_one(policy, rule)
    if policy is not None:
        rule = retrieved(settings_path, organization, policy).draft.rule
    remarks = policy_trial_wire.remarks(lint_rule(rule or ""))
    if remarks.data or as_json:
        output.show_list(remarks, REMARK_COLUMNS, as_json=as_json)
    else:
        output.say("Nothing found that makes the rule hard to judge.", as_json=False)


@click.command(epilog=example('tollhouse policy test POLICY_ID --text "Call me on 555 0100."'))
@click.argument("policy", type=POLICY, required=False)
@organization_option
@click.option("--rule", help="A rule that is not part of a policy.")
@click.option("--text", help="The text to judge. When left out, standard input is read.")
@json_option
@click.pass_obj
def test(
    settings_path: Path,
    *,
    policy: PolicyId | None,
    organization: UUID | None,
    rule: str | None,
    text: str | None,
    as_json: bool,
) -> None:
    """Judge a text by the draft and by the published version, or by a rule."""
    _require_one(policy, rule)
    judged = sys.stdin.read() if text is None else text

    async def work(operator: Session) -> tuple[PolicyVerdictList, bool]:
        owner = await operator.organization(organization)
        if policy is None:
            sides = unsaved(operator, rule or "")
        else:
            sides = versions(operator, await retrieve(operator, owner.id, policy))
        async with authoring_judge(operator, owner.id) as judge:
            decisions = await judge.decide(list(sides.values()), judged)
        return policy_trial_wire.verdicts(sides, decisions), judge.is_demonstration

    verdicts, is_demonstration = session.run(settings_path, work)
    if as_json:
        output.show(verdicts, as_json=True)
    else:
        show_verdicts(verdicts, is_demonstration=is_demonstration)


def _require_one(policy: PolicyId | None, rule: str | None) -> None:
    if (policy is None) == (rule is None):
        message = "Give either a policy's ID or --rule."
        raise click.UsageError(message)


def show_verdicts(verdicts: PolicyVerdictList, *, is_demonstration: bool) -> None:
    """Print the verdicts, and for each one that failed the reason."""
    output.show_rows([_row(verdict) for verdict in verdicts.data], VERDICT_COLUMNS)
    output.say("\nScores, coverage and thresholds are in basis points.", as_json=False)
    reasons = [verdict.reason for verdict in verdicts.data]
    for sentence in failure_sentences(reasons, is_demonstration=is_demonstration):
        output.say(sentence, as_json=False)


def _row(verdict: PolicyVerdict) -> dict[str, JsonValue]:
    has_score = verdict.score_basis_points is not None
    bounds = f"{verdict.lowest_basis_points}..{verdict.highest_basis_points}"
    return {
        "of": verdict.of,
        "outcome": verdict.outcome,
        "score": verdict.score_basis_points,
        "lowest..highest": bounds if has_score else None,
        "coverage": verdict.coverage_basis_points,
        "threshold": verdict.threshold_basis_points,
        "reason": verdict.reason,
    }


async def retrieve(operator: Session, organization_id: OrganizationId, policy: PolicyId) -> Policy:
    """Return a policy of an organization."""
    async with operator.database.transaction() as tx:
        return await service.retrieve(tx, organization_id, policy)


def versions(operator: Session, policy: Policy) -> dict[Side, AppliedPolicy]:
    """Return the draft and, if there is one, the published version, ready to be evaluated."""
    default = operator.settings.policies.default_threshold_basis_points
    return on_trial(policy, default_threshold_basis_points=default)


def unsaved(operator: Session, rule: str) -> dict[Side, AppliedPolicy]:
    """Return a rule that is not part of a policy, ready to be evaluated."""
    default = operator.settings.policies.default_threshold_basis_points
    return rule_on_trial(rule, direction=Direction.BOTH, threshold_basis_points=default)


def retrieved(settings_path: Path, organization: UUID | None, policy: PolicyId) -> Policy:
    """Return a policy, in a session of its own."""
    return session.read(
        settings_path, organization, lambda tx, owner: service.retrieve(tx, owner, policy)
    )
