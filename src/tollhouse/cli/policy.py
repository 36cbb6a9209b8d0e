"""`tollhouse policy`: questions about what goes through, from the draft to what applies."""

from functools import partial
from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.api import wire
from tollhouse.base.ids import PolicyId, ProjectId, time_ordered_uuid
from tollhouse.cli import editor, output, policy_text, policy_views, session
from tollhouse.cli.arguments import (
    IDENTIFIER,
    LISTED_MAX,
    example,
    json_option,
    organization_option,
)
from tollhouse.cli.policy_arguments import (
    POLICY,
    Option,
    checked,
    content_options,
    given_fields,
    noun,
    revision_option,
)
from tollhouse.cli.policy_backtesting import backtest
from tollhouse.cli.policy_calibrating import calibrate
from tollhouse.cli.policy_lifecycle import changed, pause, publish, resume, rollback
from tollhouse.cli.policy_text import Fields, NewDraft
from tollhouse.cli.policy_trying import lint, test
from tollhouse.cli.policy_whatif import whatif
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
from tollhouse.storage.database import Mutation

COLUMNS: Final = ("id", "name", "state", "current_version", "has_unpublished_changes")
VERSION_COLUMNS: Final = (
    *("version", "current", "mode", "direction", "scope"),
    *("match_threshold_basis_points", "published_at"),
)
EFFECTIVE_COLUMNS: Final = ("id", "name", "version", "direction", "mode", "scope")


@click.group("policy", epilog=example("tollhouse policy list"))
def command() -> None:
    """Write, try, publish, pause and list policies."""


for verb in (publish, pause, resume, rollback, lint, test, backtest, calibrate, whatif):
    command.add_command(verb)


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
    """Write down a draft, without --rule in $EDITOR. Nothing applies before it is published."""
    given = given_fields({"name": name, **options})
    use = partial(_create, settings_path, organization)
    if "rule" in given:
        created = use(given)
    else:
        form = policy_text.new_form(given)
        created = editor.edited(form, lambda text: use(policy_text.read(text)), as_json=as_json)
    policy_views.show(created, as_json=as_json)


@command.command(epilog=example("tollhouse policy edit POLICY_ID --mode enforcing"))
@click.argument("policy", type=POLICY)
@organization_option
@click.option("--name", help="Another name.")
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
    """Change a draft, without options in $EDITOR. What is published keeps applying."""
    given = given_fields(options)
    use = partial(_edit, settings_path, organization, policy)
    if given:
        edited = use(revision, given)
    else:
        seen = _retrieved(settings_path, organization, policy)
        edited = editor.edited(
            policy_text.draft_form(seen),
            lambda text: use(revision or seen.revision, policy_text.read(text)),
            as_json=as_json,
        )
    policy_views.show(edited, as_json=as_json)


@command.command(epilog=example("tollhouse policy show POLICY_ID"))
@click.argument("policy", type=POLICY)
@organization_option
@json_option
@click.pass_obj
def show(
    settings_path: Path, *, policy: PolicyId, organization: UUID | None, as_json: bool
) -> None:
    """Show one policy, its draft and what is published of it side by side."""
    policy_views.show(_retrieved(settings_path, organization, policy), as_json=as_json)


@command.command(epilog=example("tollhouse policy diff POLICY_ID"))
@click.argument("policy", type=POLICY)
@organization_option
@json_option
@click.pass_obj
def diff(
    settings_path: Path, *, policy: PolicyId, organization: UUID | None, as_json: bool
) -> None:
    """Show what publishing the draft would change."""
    found = policy_views.diff(_retrieved(settings_path, organization, policy))
    policy_views.show_diff(found, as_json=as_json)


@command.command("list", epilog=example("tollhouse policy list --json"))
@organization_option
@json_option
@click.pass_obj
def list_(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List the policies of an organization in the order of their creation."""

    async def read(operator: Session) -> list[Policy]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            return await service.page(tx, owner.id, after=None, limit=LISTED_MAX + 1)

    page = wire.page(PolicyList, session.run(settings_path, read), LISTED_MAX, wire.managed_policy)
    output.show_list(page, COLUMNS, as_json=as_json)


@command.command(epilog=example("tollhouse policy versions POLICY_ID"))
@click.argument("policy", type=POLICY)
@organization_option
@json_option
@click.pass_obj
def versions(
    settings_path: Path, *, policy: PolicyId, organization: UUID | None, as_json: bool
) -> None:
    """List all that was ever published of a policy, newest first."""

    async def read(operator: Session) -> tuple[Policy, list[PolicyVersion]]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            return (
                await service.retrieve(tx, owner.id, policy),
                await service.page_of_versions(
                    tx, owner.id, policy, after=None, limit=LISTED_MAX + 1
                ),
            )

    owner, found = session.run(settings_path, read)
    show_one = partial(wire.managed_policy_version, current_version=owner.current_version)
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
    """List what applies to a project by itself, in the order of publication."""

    async def read(operator: Session) -> list[EffectivePolicy]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            found = await projects.retrieve(tx, owner.id, ProjectId(project))
            return await service.effective(tx, owner.id, found.id)

    data = [wire.effective_policy(one) for one in session.run(settings_path, read)]
    output.show_list(EffectivePolicyList(data=data), EFFECTIVE_COLUMNS, as_json=as_json)


def _create(settings_path: Path, organization: UUID | None, fields: Fields) -> Policy:
    body = checked(fields, NewDraft)

    async def work(operator: Session) -> Policy:
        owner = await operator.organization(organization)
        async with operator.database.mutation(operator.authority(owner.id)) as tx:
            return await service.create(
                tx,
                policy_id=PolicyId(time_ordered_uuid()),
                name=body.name,
                description=body.description,
                content=noun(body, PolicyContent),
            )

    return session.run(settings_path, work)


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

    return changed(settings_path, organization, policy, revision, change)


def _retrieved(settings_path: Path, organization: UUID | None, policy: PolicyId) -> Policy:
    async def read(operator: Session) -> Policy:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            return await service.retrieve(tx, owner.id, policy)

    return session.run(settings_path, read)
