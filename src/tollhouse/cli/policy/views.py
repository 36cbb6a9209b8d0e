"""Output of the policy commands: a policy, and the changes of its draft."""

from collections.abc import Iterable
from difflib import unified_diff
from typing import Final, Literal

import click
import msgspec
from msgspec import Struct

from tollhouse.api.wire import resources as wire
from tollhouse.api.wire.policy_trials import policy_in_force
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import policy_id_text
from tollhouse.base.policies import EvaluationOutcome
from tollhouse.cli import output
from tollhouse.cli.policy.arguments import DEFAULT
from tollhouse.cli.policy.draft_text import THRESHOLD, Fields, content_fields
from tollhouse.evaluation.errors import NO_JUDGE
from tollhouse.evaluation.policy_preflight import PREFLIGHT_TEXT, why_failed
from tollhouse.evaluation.types import EvaluationDecision
from tollhouse.policies.lint import LintRule, lint
from tollhouse.policies.types import Policy, PolicyScope, PolicyState

SIDE_BY_SIDE: Final = ("field", "draft", "published")
BEFORE_AND_AFTER: Final = ("field", "published", "draft")
EARLY_ABSENCE: Final = (
    "\nWarning: the rule seems to ask whether something is missing, and the policy ends answers "
    "early. What is missing at the beginning of an answer can still come. See `tollhouse policy "
    "lint`."
)
UNATTACHED: Final = (
    "\nThe scope is `unattached`: the policy applies only to requests that name it in "
    "`policy_ids`. To apply it to all requests, change its scope and publish it again:\n\n"
    "tollhouse policy edit {id} --scope organization\n"
    "tollhouse policy publish {id}"
)
PAUSED: Final = (
    "\nThe policy is paused. This version applies after you resume it:\n\n"
    "tollhouse policy resume {id}"
)
UNJUDGED: Final = (
    "\nWarning: the judge cannot answer the question of this policy: {why}. A policy that enforces "
    "refuses every request until the judge can."
)
MATCHES: Final = (
    f"\nWarning: the harmless text `{PREFLIGHT_TEXT}` matches. See what else does:\n\n"
    'tollhouse policy test {{id}} --text "..."'
)
NO_CHANGES: Final = "The draft equals the published version."


class Heading(Struct, frozen=True, kw_only=True):
    """The fields of a policy beside its draft and published version."""

    id: str
    name: str
    description: str
    state: str
    revision: int
    current_version: int | None
    published_at: int | None
    base_version: int
    has_unpublished_changes: bool
    created_at: int
    updated_at: int


class FieldDiff(Struct, frozen=True, kw_only=True):
    """A field whose value differs in the draft."""

    field: str
    published: str | int | bool | list[str] | None
    draft: str | int | bool | list[str] | None


class PolicyDiff(Struct, frozen=True, kw_only=True):
    """The changes of a draft: a unified diff of the rule, empty if equal, and other fields."""

    object: Literal["policy.diff"] = "policy.diff"
    id: str
    revision: int
    current_version: int | None
    has_unpublished_changes: bool
    rule: str
    fields: list[FieldDiff]


def show(policy: Policy, *, as_json: bool) -> None:
    """Print a policy, with its draft and published version side by side."""
    if as_json:
        output.show(wire.managed_policy(policy), as_json=True)
        return
    output.show(_heading(policy), as_json=False)
    click.echo()
    published = _published_fields(policy)
    rows = [
        _with_default({"field": name, "draft": value, "published": published.get(name)}, "draft")
        for name, value in content_fields(policy.draft).items()
    ]
    output.show_rows(rows, SIDE_BY_SIDE)


def show_in_force(
    policy: Policy,
    decision: EvaluationDecision | None,
    *,
    is_demonstration: bool,
    as_json: bool,
) -> None:
    """Print a policy that was published or resumed, with warnings about probable mistakes."""
    if as_json:
        output.show(policy_in_force(policy, decision), as_json=True)
    else:
        show(policy, as_json=False)
    if decision is None and policy.state is PolicyState.ENFORCING:
        output.say(UNJUDGED.format(why=NO_JUDGE), as_json=as_json)
    elif decision and decision.outcome is EvaluationOutcome.FAILED:
        why = why_failed(decision.reason, is_demonstration=is_demonstration)
        output.say(UNJUDGED.format(why=why), as_json=as_json)
    elif decision and decision.outcome is EvaluationOutcome.MATCH:
        output.say(MATCHES.format(id=policy_id_text(policy.id)), as_json=as_json)
    assert policy.published is not None, "the policy was just published"
    content = policy.published.content
    weaknesses = {remark.weakness for remark in lint(content.rule)}
    if content.ends_answer_early and LintRule.ABSENCE in weaknesses:
        output.say(EARLY_ABSENCE, as_json=as_json)
    if content.scope is PolicyScope.UNATTACHED:
        output.say(UNATTACHED.format(id=policy_id_text(policy.id)), as_json=as_json)
    if policy.state is PolicyState.PAUSED:
        output.say(PAUSED.format(id=policy_id_text(policy.id)), as_json=as_json)


def diff(policy: Policy) -> PolicyDiff:
    """Return what publishing the draft would change."""
    return PolicyDiff(
        id=policy_id_text(policy.id),
        revision=policy.revision,
        current_version=policy.current_version,
        has_unpublished_changes=policy.has_unpublished_changes,
        rule="\n".join(_rule_diff(policy)),
        fields=_field_diffs(policy),
    )


def show_diff(found: PolicyDiff, *, as_json: bool) -> None:
    """Print the changed lines of the rule, then a table of the other fields."""
    if as_json:
        output.show(found, as_json=True)
        return
    if not found.has_unpublished_changes:
        click.echo(NO_CHANGES)
    if found.rule:
        click.echo(output.visible_lines(found.rule))
    if found.rule and found.fields:
        click.echo()
    if found.fields:
        rows: list[Fields] = msgspec.to_builtins(found.fields)
        output.show_rows([_with_default(row, "draft") for row in rows], BEFORE_AND_AFTER)


def _heading(policy: Policy) -> Heading:
    published = policy.published
    return Heading(
        id=policy_id_text(policy.id),
        name=policy.name,
        description=policy.description,
        state=policy.state.value,
        revision=policy.revision,
        current_version=policy.current_version,
        published_at=None if published is None else unix_seconds(published.published_at),
        base_version=policy.base_version,
        has_unpublished_changes=policy.has_unpublished_changes,
        created_at=unix_seconds(policy.created_at),
        updated_at=unix_seconds(policy.updated_at),
    )


def _published_fields(policy: Policy) -> Fields:
    """Return the fields of the published version, with the threshold that it uses."""
    if policy.published is None:
        return {}
    in_force = policy.published.threshold_in_force_basis_points
    return content_fields(policy.published.content) | {THRESHOLD: in_force}


def _with_default(row: Fields, name: str) -> Fields:
    """Replace None by "default": only a draft's threshold can be None."""
    return row if row[name] is not None else row | {name: DEFAULT}


def _field_diffs(policy: Policy) -> list[FieldDiff]:
    before = {} if policy.published is None else content_fields(policy.published.content)
    shown = _published_fields(policy)
    return [
        msgspec.convert({"field": name, "published": shown.get(name), "draft": value}, FieldDiff)
        for name, value in content_fields(policy.draft).items()
        # Before the first publication, an empty field is not a change.
        if name != "rule" and (before.get(name) or None) != (value or None)
    ]


def _rule_diff(policy: Policy) -> Iterable[str]:
    published = policy.published
    before = [] if published is None else published.content.rule.split("\n")
    return unified_diff(
        before,
        policy.draft.rule.split("\n"),
        "nothing" if published is None else f"version {published.number}",
        f"draft, revision {policy.revision}",
        lineterm="",
    )
