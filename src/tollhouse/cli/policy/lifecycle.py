"""`tollhouse policy publish`, `pause`, `resume`, `rollback` and `delete`."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypedDict, Unpack
from uuid import UUID

import click

from tollhouse.api import request_search
from tollhouse.base.ids import PolicyId, policy_id_text
from tollhouse.catalog import rules
from tollhouse.cli import output, session
from tollhouse.cli.arguments import example, json_option, organization_option, yes_option
from tollhouse.cli.policy import views
from tollhouse.cli.policy.arguments import POLICY, REVISION, revision_option
from tollhouse.cli.policy.authoring_judge import policy_trials
from tollhouse.cli.session import Session
from tollhouse.contract.policies import PolicyDeleted
from tollhouse.evaluation.dependencies import judge_config, publication_check
from tollhouse.evaluation.policy_preflight import preflight
from tollhouse.evaluation.types import EvaluationDecision
from tollhouse.policies import service
from tollhouse.policies.sets import PublicationCheck
from tollhouse.policies.types import Policy, Publication, Publish, Resume, RollBack
from tollhouse.storage.database import Mutation

refuse_option = click.option(
    "--refuse-until-judged",
    is_flag=True,
    help="Also if the judge cannot answer: every request is then refused until it can.",
)
SELECTED: Final = (
    "\n{requests} selected this policy by `policy_ids`. Such requests now go on without it."
)


class InForceOptions(TypedDict):
    """The options of every command that publishes or resumes."""

    revision: int | None
    refuse_until_judged: bool
    as_json: bool


Change = Callable[[Session, Mutation, int], Awaitable[Policy]]


@click.command(epilog=example("tollhouse policy publish POLICY_ID"))
@click.argument("policy", type=POLICY)
@organization_option
@revision_option
@refuse_option
@json_option
@click.pass_obj
def publish(
    settings_path: Path,
    *,
    policy: PolicyId,
    organization: UUID | None,
    **options: Unpack[InForceOptions],
) -> None:
    """Publish the draft as the next version. It applies at once unless the policy is paused."""

    def publication(operator: Session) -> Publication:
        default = operator.settings.policies.default_threshold_basis_points
        return Publish(default_threshold_basis_points=default)

    _put_in_force(settings_path, organization, policy, publication, **options)


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
    selecting = 0

    async def change(_: Session, tx: Mutation, latest: int) -> Policy:
        nonlocal selecting
        paused = await service.pause(tx, policy, revision=latest)
        selecting = await request_search.selecting(tx, paused, now=tx.now)
        return paused

    after = change_policy(settings_path, organization, policy, revision, change)
    views.show(after, as_json=as_json)
    if selecting:
        requests = output.counted(selecting, "recent request", "recent requests")
        output.say(SELECTED.format(requests=requests), as_json=as_json)


@click.command(epilog=example("tollhouse policy resume POLICY_ID"))
@click.argument("policy", type=POLICY)
@organization_option
@revision_option
@refuse_option
@json_option
@click.pass_obj
def resume(
    settings_path: Path,
    *,
    policy: PolicyId,
    organization: UUID | None,
    **options: Unpack[InForceOptions],
) -> None:
    """Apply a paused policy again, in the mode of its current version."""
    _put_in_force(settings_path, organization, policy, lambda _: Resume(), **options)


@click.command(epilog=example("tollhouse policy rollback POLICY_ID 1"))
@click.argument("policy", type=POLICY)
@click.argument("version", type=REVISION)
@organization_option
@revision_option
@refuse_option
@json_option
@click.pass_obj
def rollback(
    settings_path: Path,
    *,
    policy: PolicyId,
    version: int,
    organization: UUID | None,
    **options: Unpack[InForceOptions],
) -> None:
    """Publish an older version again, under the next number. The draft is not changed."""
    publication = RollBack(version=version)
    _put_in_force(settings_path, organization, policy, lambda _: publication, **options)


def _put_in_force(
    settings_path: Path,
    organization: UUID | None,
    policy: PolicyId,
    publication_for: Callable[[Session], Publication],
    **options: Unpack[InForceOptions],
) -> None:
    """Ask the judge, then publish or resume the policy and print it."""

    async def work(operator: Session) -> tuple[Policy, EvaluationDecision | None, bool]:
        owner = await operator.organization(organization)
        publication, database = publication_for(operator), operator.database
        async with database.transaction() as tx:
            found = await service.retrieve(tx, owner.id, policy)
            revision = options["revision"] or found.revision
            foreseen = await service.foresee(
                *(tx, owner.id, policy, publication), revision=revision, now=operator.clock.now()
            )
        async with policy_trials(operator) as trials:
            decision = await preflight(
                trials, foreseen, refuses_until_judged=options["refuse_until_judged"]
            )
        async with database.mutation(operator.authority(owner.id)) as tx:
            objection = _publication_check(operator)
            after = await service.put_in_force(
                tx, policy, publication, revision=revision, objection=objection
            )
        return after, decision, trials.is_demonstration

    after, decision, is_demonstration = session.run(settings_path, work)
    views.show_in_force(
        after, decision, is_demonstration=is_demonstration, as_json=options["as_json"]
    )


@click.command(epilog=example("tollhouse policy delete POLICY_ID"))
@click.argument("policy", type=POLICY)
@organization_option
@yes_option
@json_option
@click.pass_obj
def delete(
    settings_path: Path, *, policy: PolicyId, organization: UUID | None, yes: bool, as_json: bool
) -> None:
    """Delete a policy that was never published. Others can be paused."""
    name = policy_id_text(policy)
    output.confirm(f"Delete policy {name}?", yes=yes, as_json=as_json)
    session.change(settings_path, organization, lambda tx: service.delete(tx, policy))
    output.show(PolicyDeleted(id=name, deleted=True), as_json=as_json)


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
