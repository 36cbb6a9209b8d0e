"""`tollhouse policy`: write, test, publish, pause and list policies."""

from functools import partial
from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import OrganizationId, PolicyId, ProjectId, time_ordered_uuid
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    IDENTIFIER,
    LISTED_MAX,
    example,
    json_option,
    organization_option,
)
from tollhouse.cli.policy import draft_text, editor, views
from tollhouse.cli.policy.arguments import (
    POLICY,
    Option,
    checked,
    content_options,
    given_fields,
    noun,
    revision_option,
)
from tollhouse.cli.policy.backtest import backtest
from tollhouse.cli.policy.calibrate import calibrate
from tollhouse.cli.policy.draft_checks import lint, retrieved, test
from tollhouse.cli.policy.draft_text import Fields, NewDraft
from tollhouse.cli.policy.lifecycle import (
    change_policy,
    delete,
    pause,
    publish,
    resume,
    rollback,
)
from tollhouse.cli.policy.whatif import whatif
from tollhouse.cli.session import Session
from tollhouse.contract.policies import (
    EditManagedPolicy,
    EffectivePolicyList,
    PolicyList,
    PolicyVersionList,
)
from tollhouse.policies import service
from tollhouse.policies.types import (
    EffectivePolicy,
    Policy,
    PolicyContent,
    PolicyEdit,
    PolicyVersion,
)
from tollhouse.projects import service as projects
from tollhouse.storage.database import Mutation, Transaction

COLUMNS: Final = ("id", "name", "state", "current_version", "has_unpublished_changes")
VERSION_COLUMNS: Final = (
    *("version", "current", "mode", "direction", "scope"),
    *("match_threshold_basis_points", "published_at"),
)
EFFECTIVE_COLUMNS: Final = ("id", "name", "version", "direction", "mode", "scope")


@click.group("policy", epilog=example("tollhouse policy list"))
def command() -> None:
    """Write, test, publish, pause and list policies."""


for subcommand in (
    *(publish, pause, resume, rollback, delete),
    *(lint, test, backtest, calibrate, whatif),
):
    command.add_command(subcommand)


@command.command(
    epilog=example('tollhouse policy create "No names" --rule "Does the text name a person?"')
)
@click.argument("name", required=False)
@organization_option
@content_options
@json_option
@click.pass_obj
def create(
    settings_path: Path,
    *,
    name: str | None,
    organization: UUID | None,
    as_json: bool,
    **options: Option,
) -> None:
    """Create a draft. Without --rule, $EDITOR opens. A policy applies after it is published."""
    given = given_fields({"name": name, **options})
    save = partial(_create, settings_path, organization)
    if "rule" in given:
        created = save(given)
    else:
        form = draft_text.new_form(given)
        created = editor.edited(form, lambda text: save(draft_text.read(text)), as_json=as_json)
    views.show(created, as_json=as_json)


@command.command(epilog=example("tollhouse policy edit POLICY_ID --mode enforcing"))
@click.argument("policy", type=POLICY)
@organization_option
@click.option("--name", help="The new name.")
@content_options
@revision_option
@json_option
@click.pass_obj
def edit(
    settings_path: Path,
    *,
    policy: PolicyId,
    organization: UUID | None,
    revision: int | None,
    as_json: bool,
    **options: Option,
) -> None:
    """Change a draft. Without options, $EDITOR opens. The published version keeps applying."""
    given = given_fields(options)
    save = partial(_edit, settings_path, organization, policy)
    if given:
        edited = save(revision, given)
    else:
        found = retrieved(settings_path, organization, policy)
        edited = editor.edited(
            draft_text.draft_form(found),
            lambda text: save(revision or found.revision, draft_text.read(text)),
            as_json=as_json,
        )
    views.show(edited, as_json=as_json)


@command.command(epilog=example("tollhouse policy show POLICY_ID"))
@click.argument("policy", type=POLICY)
@organization_option
@json_option
@click.pass_obj
def show(
    settings_path: Path, *, policy: PolicyId, organization: UUID | None, as_json: bool
) -> None:
    """Show a policy with its draft and its published version side by side."""
    views.show(retrieved(settings_path, organization, policy), as_json=as_json)


@command.command(epilog=example("tollhouse policy diff POLICY_ID"))
@click.argument("policy", type=POLICY)
@organization_option
@json_option
@click.pass_obj
def diff(
    settings_path: Path, *, policy: PolicyId, organization: UUID | None, as_json: bool
) -> None:
    """Show what publishing the draft would change."""
    found = views.diff(retrieved(settings_path, organization, policy))
    views.show_diff(found, as_json=as_json)


@command.command("list", epilog=example("tollhouse policy list --json"))
@organization_option
@json_option
@click.pass_obj
def list_(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List the policies of an organization in the order of their creation."""
    found = session.read(
        settings_path,
        organization,
        lambda tx, owner: service.page(tx, owner, after=None, limit=LISTED_MAX + 1),
    )
    page = wire.page(PolicyList, found, LISTED_MAX, wire.managed_policy)
    output.show_list(page, COLUMNS, as_json=as_json)


@command.command(epilog=example("tollhouse policy versions POLICY_ID"))
@click.argument("policy", type=POLICY)
@organization_option
@json_option
@click.pass_obj
def versions(
    settings_path: Path, *, policy: PolicyId, organization: UUID | None, as_json: bool
) -> None:
    """List all published versions of a policy, newest first."""

    async def query(
        tx: Transaction, owner: OrganizationId
    ) -> tuple[int | None, list[PolicyVersion]]:
        current = (await service.retrieve(tx, owner, policy)).current_version
        found = await service.page_of_versions(tx, owner, policy, after=None, limit=LISTED_MAX + 1)
        return current, found

    current, found = session.read(settings_path, organization, query)
    show_one = partial(wire.managed_policy_version, current_version=current)
    page = wire.page(PolicyVersionList, found, LISTED_MAX, show_one)
    output.show_list(page, VERSION_COLUMNS, as_json=as_json)


@command.command(epilog=example("tollhouse policy effective PROJECT_ID"))
@click.argument("project", type=IDENTIFIER)
@organization_option
@json_option
@click.pass_obj
def effective(
    settings_path: Path, *, project: UUID, organization: UUID | None, as_json: bool
) -> None:
    """List the policies that apply to every request of a project, in the order of publication."""

    async def query(tx: Transaction, owner: OrganizationId) -> list[EffectivePolicy]:
        found = await projects.retrieve(tx, owner, ProjectId(project))
        return await service.effective(tx, owner, found.id)

    found = session.read(settings_path, organization, query)
    data = [wire.effective_policy(one) for one in found]
    output.show_list(EffectivePolicyList(data=data), EFFECTIVE_COLUMNS, as_json=as_json)


def _create(settings_path: Path, organization: UUID | None, fields: Fields) -> Policy:
    body = checked(fields, NewDraft)
    return session.change(
        settings_path,
        organization,
        lambda tx: service.create(
            tx,
            policy_id=PolicyId(time_ordered_uuid()),
            name=body.name,
            description=body.description,
            content=noun(body, PolicyContent),
        ),
    )


def _edit(
    settings_path: Path,
    organization: UUID | None,
    policy: PolicyId,
    revision: int | None,
    fields: Fields,
) -> Policy:
    async def change(_: Session, tx: Mutation, latest: int) -> Policy:
        body = checked({**fields, "revision": latest}, EditManagedPolicy)
        changes = noun(body, PolicyEdit)
        return await service.edit(tx, policy, revision=body.revision, changes=changes)

    return change_policy(settings_path, organization, policy, revision, change)
