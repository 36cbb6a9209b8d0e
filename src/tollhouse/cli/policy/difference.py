"""`tollhouse policy diff`: what publishing a draft would change."""

from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from tollhouse.cli import output
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.verbs import gateways, references
from tollhouse.cli.verbs.gateway import OperationRequest
from tollhouse.contract.policy_operations import RETRIEVE_MANAGED_POLICY

COLUMNS: Final = ("field", "published", "draft")
NO_CHANGES: Final = "The draft equals the published version."
NOT_COMPARED: Final = frozenset({"rule", "base_version"})

Json = dict[str, Any]


@click.command(epilog=example('tollhouse policy diff "No names"'))
@click.argument("policy")
@click.option("--org", "organization", help="The organization, by name or ID, on a host.")
@click.option("--profile", envvar="TOLLHOUSE_PROFILE", help="A profile of `tollhouse login`.")
@json_option
@click.pass_obj
def diff(
    settings_path: Path,
    *,
    policy: str,
    organization: str | None,
    profile: str | None,
    as_json: bool,
) -> None:
    """Show what publishing the draft of a policy would change."""
    operation = RETRIEVE_MANAGED_POLICY
    gateway = gateways.chosen(operation, settings_path, profile=profile, organization=organization)
    with gateway:
        path = {"policy_id": references.resolved(gateway, "policy", policy)}
        found, _ = gateway.call(operation, OperationRequest(path=path))
    has_changes = found["has_unpublished_changes"]
    lines, fields = _rule_lines(found), _changed_fields(found) if has_changes else []
    if as_json:
        names = ("id", "revision", "current_version", "has_unpublished_changes")
        shown = {"object": "policy.diff", **{name: found[name] for name in names}}
        click.echo(msgspec.json.encode({**shown, "rule": "\n".join(lines), "fields": fields}))
        return
    if not has_changes:
        click.echo(NO_CHANGES)
    if lines:
        click.echo(output.visible_lines("\n".join(lines)))
    if lines and fields:
        click.echo()
    if fields:
        output.show_rows(fields, COLUMNS)


def _rule_lines(policy: Json) -> list[str]:
    published, draft = policy["published"], policy["draft"]
    before: list[str] = [] if published is None else published["rule"].split("\n")
    name = "nothing" if published is None else f"version {published['version']}"
    after = draft["rule"].split("\n")
    revision = f"draft, revision {policy['revision']}"
    return list(unified_diff(before, after, name, revision, lineterm=""))


def _changed_fields(policy: Json) -> list[Json]:
    """Return the other fields that differ. Before the first publication, empty ones do not."""
    published: Json = policy["published"] or {}
    draft: Json = policy["draft"]
    return [
        {"field": name, "published": published.get(name), "draft": value}
        for name, value in draft.items()
        if name not in NOT_COMPARED and (published.get(name) or None) != (value or None)
    ]
