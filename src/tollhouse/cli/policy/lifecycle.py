"""`tollhouse policy publish`, `pause`, `resume` and `rollback`."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import click

from tollhouse.base.ids import PolicyId
from tollhouse.catalog import rules
from tollhouse.cli import session
from tollhouse.cli.arguments import example, json_option, organization_option
from tollhouse.cli.policy import views
from tollhouse.cli.policy.arguments import POLICY, REVISION, revision_option
from tollhouse.cli.session import Session
from tollhouse.evaluation.dependencies import judge_config, publication_check
from tollhouse.policies import service
from tollhouse.policies.sets import PublicationCheck
from tollhouse.policies.types import Policy
from tollhouse.storage.database import Mutation

Change = Callable[[Session, Mutation, int], Awaitable[Policy]]


@click.command(epilog=example("tollhouse policy publish POLICY_ID"))
@click.argument("policy", type=POLICY)
@organization_option
@revision_option
@json_option
@click.pass_obj
def publish(
    settings_path: Path,
    *,
    policy: PolicyId,
    organization: UUID | None,
    revision: int | None,
    as_json: bool,
) -> None:
    """Publish the draft as the next version. It applies at once unless the policy is paused."""

    async def change(operator: Session, tx: Mutation, latest: int) -> Policy:
        default = operator.settings.policies.default_threshold_basis_points
        return await service.publish(
            tx,
            policy,
            revision=latest,
            default_threshold_basis_points=default,
            objection=_publication_check(operator),
        )

    after = change_policy(settings_path, organization, policy, revision, change)
    views.show_published(after, as_json=as_json)


@click.command(epilog=example("tollhouse policy pause POLICY_ID"))
@click.argument("policy", type=POLICY)
@organization_option
@revision_option
@json_option
@click.pass_obj
def pause(
    settings_path: Path,
    *,
    policy: PolicyId,
    organization: UUID | None,
    revision: int | None,
    as_json: bool,
) -> None:
    """Stop applying a published policy until it is resumed."""

    async def change(_: Session, tx: Mutation, latest: int) -> Policy:
        return await service.pause(tx, policy, revision=latest)

    after = change_policy(settings_path, organization, policy, revision, change)
    views.show(after, as_json=as_json)


@click.command(epilog=example("tollhouse policy resume POLICY_ID"))
@click.argument("policy", type=POLICY)
@organization_option
@revision_option
@json_option
@click.pass_obj
def resume(
    settings_path: Path,
    *,
    policy: PolicyId,
    organization: UUID | None,
    revision: int | None,
    as_json: bool,
) -> None:
    """Apply a paused policy again, in the mode of its current version."""

    async def change(operator: Session, tx: Mutation, latest: int) -> Policy:
        return await service.resume(
            tx, policy, revision=latest, objection=_publication_check(operator)
        )

    after = change_policy(settings_path, organization, policy, revision, change)
    views.show(after, as_json=as_json)


@click.command(epilog=example("tollhouse policy rollback POLICY_ID 1"))
@click.argument("policy", type=POLICY)
@click.argument("version", type=REVISION)
@organization_option
@revision_option
@json_option
@click.pass_obj
def rollback(
    settings_path: Path,
    *,
    policy: PolicyId,
    version: int,
    organization: UUID | None,
    revision: int | None,
    as_json: bool,
) -> None:
    """Publish an older version again, under the next number. The draft is not changed."""

    async def change(operator: Session, tx: Mutation, latest: int) -> Policy:
        return await service.roll_back(
            tx, policy, revision=latest, version=version, objection=_publication_check(operator)
        )

    after = change_policy(settings_path, organization, policy, revision, change)
    views.show_published(after, as_json=as_json)


def change_policy(
    settings_path: Path,
    organization: UUID | None,
    policy: PolicyId,
    revision: int | None,
    change: Change,
) -> Policy:
    """Change a policy of this revision, or of its latest one if `revision` is None."""

    async def work(operator: Session) -> Policy:
        owner = await operator.organization(organization)
        async with operator.database.mutation(operator.authority(owner.id)) as tx:
            known = revision or (await service.retrieve(tx, owner.id, policy)).revision
            return await change(operator, tx, known)

    return session.run(settings_path, work)


def _publication_check(operator: Session) -> PublicationCheck:
    """Return the check whether the configured judge can evaluate a policy."""
    settings = operator.settings
    catalog = rules.parse(settings.backends, settings.models, settings.judge)
    return publication_check(judge_config(catalog))
