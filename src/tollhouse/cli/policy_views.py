"""What the verbs on policies show to people, and what publishing would change."""

from collections.abc import Iterable
from difflib import unified_diff
from typing import Final, Literal

import click
import msgspec
from msgspec import Struct

from tollhouse.api import wire
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import policy_id_text
from tollhouse.cli import output
from tollhouse.cli.policy_arguments import DEFAULT
from tollhouse.cli.policy_text import THRESHOLD, Fields, content_fields
from tollhouse.policies.lint import Weakness, lint
from tollhouse.policies.types import Policy, PolicyState, Scope

SIDE_BY_SIDE: Final = ("field", "draft", "published")
BEFORE_AND_AFTER: Final = ("field", "published", "draft")
EARLY_ABSENCE: Final = (
    "\nWarning: the rule seems to ask whether something is absent, and may end answers early. What "
    "is absent from the beginning of an answer may still come. See `tollhouse policy lint`."
)
UNATTACHED: Final = (
    "\nIts scope is `unattached`: it sees nothing but requests that name it in `policy_ids`. To "
    "let it apply by itself, give it a scope and publish it again:\n\n"
    "tollhouse policy edit {id} --scope organization\n"
    "tollhouse policy publish {id}"
)
PAUSED: Final = (
    "\nThe policy is paused, so that this version does not apply before it is resumed:\n\n"
    "tollhouse policy resume {id}"
)
NO_CHANGES: Final = "The draft says what is published."


class Heading(Struct, frozen=True, kw_only=True):
    """A policy without what it says."""

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
    """A field of which the draft says something else."""

    field: str
    published: str | int | bool | list[str] | None
    draft: str | int | bool | list[str] | None


class PolicyDiff(Struct, frozen=True, kw_only=True):
    """`rule` is a unified diff, empty where nothing differs; `fields` are the others."""

    object: Literal["policy.diff"] = "policy.diff"
    id: str
    revision: int
    current_version: int | None
    has_unpublished_changes: bool
    rule: str
    fields: list[FieldDiff]


def show(policy: Policy, *, as_json: bool) -> None:
    """The whole policy: for people, draft and published version side by side."""
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


def show_published(policy: Policy, *, as_json: bool) -> None:
    """As `show`, with a word on what is hardly meant: to see nothing, or to end answers so."""
    show(policy, as_json=as_json)
    assert policy.published is not None, "it was published just now"
    content = policy.published.content
    weaknesses = {remark.weakness for remark in lint(content.rule)}
    if content.ends_answer_early and Weakness.ABSENCE in weaknesses:
        output.say(EARLY_ABSENCE, as_json=as_json)
    if content.scope is Scope.UNATTACHED:
        output.say(UNATTACHED.format(id=policy_id_text(policy.id)), as_json=as_json)
    if policy.state is PolicyState.PAUSED:
        output.say(PAUSED.format(id=policy_id_text(policy.id)), as_json=as_json)


def diff(policy: Policy) -> PolicyDiff:
    """What publishing the draft would change."""
    return PolicyDiff(
        id=policy_id_text(policy.id),
        revision=policy.revision,
        current_version=policy.current_version,
        has_unpublished_changes=policy.has_unpublished_changes,
        rule="\n".join(_rule_diff(policy)),
        fields=_field_diffs(policy),
    )


def show_diff(found: PolicyDiff, *, as_json: bool) -> None:
    """For people, the rule's lines and then a table."""
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
    """With the threshold that is in force."""
    if policy.published is None:
        return {}
    in_force = policy.published.threshold_in_force_basis_points
    return content_fields(policy.published.content) | {THRESHOLD: in_force}


def _with_default(row: Fields, name: str) -> Fields:
    """Nothing but a threshold can be missing in a draft, and then it has a meaning."""
    return row if row[name] is not None else row | {name: DEFAULT}


def _field_diffs(policy: Policy) -> list[FieldDiff]:
    before = {} if policy.published is None else content_fields(policy.published.content)
    shown = _published_fields(policy)
    return [
        msgspec.convert({"field": name, "published": shown.get(name), "draft": value}, FieldDiff)
        for name, value in content_fields(policy.draft).items()
        # Before the first publication, what is empty is no news either.
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
