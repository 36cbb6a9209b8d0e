"""Operations on policies. Only `pause` and `put_in_force` change what applies."""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import OrganizationId, PolicyId, ProjectId, policy_id_text
from tollhouse.base.quotas import Quota
from tollhouse.policies import rules, sets, store
from tollhouse.policies.errors import (
    PolicyNotFound,
    PolicyVersionNotFound,
    SelectedPolicyNotFound,
    TargetNotFound,
)
from tollhouse.policies.sets import PublicationCheck, no_check, require_room
from tollhouse.policies.types import (
    EffectivePolicy,
    Policy,
    PolicyContent,
    PolicyEdit,
    PolicySnapshot,
    PolicyVersion,
    Publication,
    Publish,
    Resume,
    RollBack,
)
from tollhouse.storage import audit, quotas
from tollhouse.storage.database import Database, Mutation, Transaction

_ACTIONS: Final = {
    Publish: "policy.publish",
    Resume: "policy.resume",
    RollBack: "policy.roll_back",
}


async def retrieve(tx: Transaction, organization_id: OrganizationId, policy_id: PolicyId) -> Policy:
    """Return a policy in any state. Raises `PolicyNotFound`."""
    policy = await store.get(tx, organization_id, policy_id)
    if policy is None:
        raise PolicyNotFound
    return policy


async def selected(
    database: Database, organization_id: OrganizationId, policy_ids: Collection[PolicyId]
) -> PolicySnapshot | None:
    """Return the policies that a request names. Raises if one is unknown or was never published.

    Returns None if the organization does not exist.
    """
    snapshot = await sets.selected(database, organization_id, policy_ids)
    if snapshot is None:
        return None
    known = {policy.id for policy in snapshot.policies + snapshot.paused}
    if unknown := [policy_id_text(each) for each in policy_ids if each not in known]:
        raise SelectedPolicyNotFound(unknown)
    return snapshot


async def page(
    tx: Transaction, organization_id: OrganizationId, *, after: PolicyId | None, limit: int
) -> list[Policy]:
    """Return policies in order of creation. Raises `UnknownCursor` if `after` does not exist."""
    if after is not None and not await store.exists(tx, organization_id, after):
        raise UnknownCursor
    return await store.page(tx, organization_id, after=after, limit=limit)


async def retrieve_version(
    tx: Transaction, organization_id: OrganizationId, policy_id: PolicyId, number: int
) -> PolicyVersion:
    """Return a published version of an existing policy. Raises `PolicyVersionNotFound`."""
    version = await store.get_version(tx, organization_id, policy_id, number)
    if version is None:
        raise PolicyVersionNotFound
    return version


async def page_of_versions(
    tx: Transaction,
    organization_id: OrganizationId,
    policy_id: PolicyId,
    *,
    after: int | None,
    limit: int,
) -> list[PolicyVersion]:
    """Return versions, newest first. Raises `UnknownCursor` if there is no version `after`."""
    if after is not None and (
        await store.get_version(tx, organization_id, policy_id, after) is None
    ):
        raise UnknownCursor
    return await store.page_of_versions(tx, organization_id, policy_id, before=after, limit=limit)


async def effective(
    tx: Transaction, organization_id: OrganizationId, project_id: ProjectId
) -> list[EffectivePolicy]:
    """Return the policies that apply to all requests of an existing project."""
    return await sets.effective(tx, organization_id, project_id)


async def require_room_for_policy(tx: Mutation, quota: int) -> None:
    """Raise `QuotaExceeded` if the organization has `quota` policies, in any state."""
    await quotas.require_room(tx, Quota.POLICIES, quota, store.count)


async def create(
    tx: Mutation, *, policy_id: PolicyId, name: str, description: str, content: PolicyContent
) -> Policy:
    """Create a policy with a draft, which does not apply yet."""
    policy = rules.create(
        organization_id=tx.organization_id,
        policy_id=policy_id,
        name=name,
        description=description,
        content=content,
        now=tx.now,
    )
    await _require_projects(tx, policy.draft.project_ids)
    await store.insert(tx, policy)
    await _audit(tx, "policy.create", before=None, after=policy)
    return policy


async def edit(tx: Mutation, policy_id: PolicyId, *, revision: int, changes: PolicyEdit) -> Policy:
    """Change the draft, the name or the description; the published version keeps applying."""
    policy = await _held(tx, policy_id)
    edited = rules.edit(policy, revision=revision, changes=changes, now=tx.now)
    if edited == policy:
        tx.unchanged()
        return policy
    if edited.draft.project_ids != policy.draft.project_ids:
        await _require_projects(tx, edited.draft.project_ids)
    await store.save_draft(tx, edited)
    await _audit(tx, "policy.edit", before=policy, after=edited)
    return edited


async def pause(tx: Mutation, policy_id: PolicyId, *, revision: int) -> Policy:
    """Stop applying a published policy until it is resumed."""
    policy = await _held(tx, policy_id)
    paused = rules.pause(policy, revision=revision, now=tx.now)
    return await _put_in_force(tx, "policy.pause", no_check, before=policy, after=paused)


async def foresee(
    tx: Transaction,
    organization_id: OrganizationId,
    policy_id: PolicyId,
    publication: Publication,
    *,
    revision: int,
    now: datetime,
) -> Policy:
    """Return the policy as the publication would leave it. Stores nothing."""
    policy = await retrieve(tx, organization_id, policy_id)
    return await _after(tx, policy, publication, revision=revision, now=now)


async def put_in_force(
    tx: Mutation,
    policy_id: PolicyId,
    publication: Publication,
    *,
    revision: int,
    objection: PublicationCheck = no_check,
) -> Policy:
    """Publish or resume a policy. It applies at once, unless it was published while paused."""
    before = await _held(tx, policy_id)
    after = await _after(tx, before, publication, revision=revision, now=tx.now)
    action = _ACTIONS[type(publication)]
    return await _put_in_force(tx, action, objection, before=before, after=after)


async def _after(
    tx: Transaction, policy: Policy, publication: Publication, *, revision: int, now: datetime
) -> Policy:
    match publication:
        case Publish(default_threshold_basis_points=default):
            return rules.publish(
                policy, revision=revision, default_threshold_basis_points=default, now=now
            )
        case Resume():
            return rules.resume(policy, revision=revision, now=now)
        case RollBack(version=number):
            older = await store.get_version(tx, policy.organization_id, policy.id, number)
            return rules.roll_back(policy, older, revision=revision, now=now)


async def delete(tx: Mutation, policy_id: PolicyId) -> None:
    """Delete a policy that was never published. Raises `PolicyStateConflict` for another one."""
    policy = await _held(tx, policy_id)
    rules.check_deletable(policy)
    await store.delete(tx, tx.organization_id, policy_id)
    await audit.record(
        tx,
        action="policy.delete",
        resource=("policy", policy_id_text(policy_id)),
        before=policy,
        after=None,
    )


async def _put_in_force(
    tx: Mutation, action: str, objection: PublicationCheck, *, before: Policy, after: Policy
) -> Policy:
    if after.published is not None and after.published != before.published:
        await store.insert_version(tx, after.published)
    await store.save_state(tx, after)
    await store.retarget(tx, after)
    await store.raise_policy_version(tx, tx.organization_id)
    await require_room(tx, after, objection)
    await _audit(tx, action, before=before, after=after)
    return after


async def _held(tx: Mutation, policy_id: PolicyId) -> Policy:
    await store.hold(tx, tx.organization_id, policy_id)
    return await retrieve(tx, tx.organization_id, policy_id)


async def _require_projects(tx: Mutation, project_ids: tuple[ProjectId, ...]) -> None:
    """Raise `TargetNotFound` if a project is not the organization's; it may be archived."""
    if unknown := await store.unknown_projects(tx, tx.organization_id, project_ids):
        raise TargetNotFound(list(map(str, unknown)))


async def _audit(tx: Mutation, action: str, *, before: Policy | None, after: Policy) -> None:
    resource = ("policy", policy_id_text(after.id))
    await audit.record(tx, action=action, resource=resource, before=before, after=after)
