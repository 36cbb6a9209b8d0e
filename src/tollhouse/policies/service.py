"""Verbs on policies, in the caller's transaction. What applies changes only by the last four."""

from collections.abc import Collection

from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import OrganizationId, PolicyId, ProjectId, policy_id_text
from tollhouse.base.quotas import Quota
from tollhouse.policies import rules, store
from tollhouse.policies.errors import (
    PolicyNotFound,
    PolicyVersionNotFound,
    SelectedPolicyNotFound,
    SelectedPolicyPaused,
    TargetNotFound,
)
from tollhouse.policies.sets import Objection, no_objection, require_room
from tollhouse.policies.types import (
    EffectivePolicy,
    Policy,
    PolicyContent,
    PolicyEdit,
    PolicySnapshot,
    PolicyVersion,
)
from tollhouse.storage import audit, quotas
from tollhouse.storage.database import Database, Mutation, Transaction


async def retrieve(tx: Transaction, organization_id: OrganizationId, policy_id: PolicyId) -> Policy:
    """Read one, whatever its state."""
    policy = await store.get(tx, organization_id, policy_id)
    if policy is None:
        raise PolicyNotFound
    return policy


async def selected(
    database: Database, organization_id: OrganizationId, policy_ids: Collection[PolicyId]
) -> PolicySnapshot | None:
    """What a request adds by naming it; all of it can be applied, or none is."""
    found = await store.selected(database, organization_id, policy_ids)
    if found is None:
        return None
    paused, snapshot = found
    if len(snapshot.policies) != len(policy_ids):
        known = {policy.id for policy in snapshot.policies}
        raise SelectedPolicyNotFound(
            [policy_id_text(each) for each in policy_ids if each not in known]
        )
    if paused:
        raise SelectedPolicyPaused(list(map(policy_id_text, paused)))
    return snapshot


async def page(
    tx: Transaction, organization_id: OrganizationId, *, after: PolicyId | None, limit: int
) -> list[Policy]:
    """In order of creation; the cursor must be one of this organization's."""
    if after is not None and not await store.exists(tx, organization_id, after):
        raise UnknownCursor
    return await store.page(tx, organization_id, after=after, limit=limit)


async def retrieve_version(
    tx: Transaction, organization_id: OrganizationId, policy_id: PolicyId, number: int
) -> PolicyVersion:
    """Read one publication of a policy that the caller knows to exist."""
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
    """Newest first; the cursor must be a version of this policy."""
    if after is not None and (
        await store.get_version(tx, organization_id, policy_id, after) is None
    ):
        raise UnknownCursor
    return await store.page_of_versions(tx, organization_id, policy_id, before=after, limit=limit)


async def effective(
    tx: Transaction, organization_id: OrganizationId, project_id: ProjectId
) -> list[EffectivePolicy]:
    """What applies by itself to a project that the caller knows to exist."""
    return await store.effective(tx, organization_id, project_id)


async def require_room_for_policy(tx: Mutation, quota: int) -> None:
    """Raise `QuotaExceeded` if the organization has so many policies, in whatever state."""
    await quotas.require_room(tx, Quota.POLICIES, quota, store.count)


async def create(
    tx: Mutation, *, policy_id: PolicyId, name: str, description: str, content: PolicyContent
) -> Policy:
    """Write down a draft; nothing applies yet."""
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
    """Change the draft, the name or the description; what is published keeps applying."""
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


async def publish(
    tx: Mutation,
    policy_id: PolicyId,
    *,
    revision: int,
    default_threshold_basis_points: int,
    objection: Objection = no_objection,
) -> Policy:
    """Make the draft the next version and let it apply, unless the policy is paused."""
    policy = await _held(tx, policy_id)
    published = rules.publish(
        policy,
        revision=revision,
        default_threshold_basis_points=default_threshold_basis_points,
        now=tx.now,
    )
    return await _put_in_force(tx, "policy.publish", objection, before=policy, after=published)


async def pause(tx: Mutation, policy_id: PolicyId, *, revision: int) -> Policy:
    """Stop applying a published policy until it is resumed."""
    policy = await _held(tx, policy_id)
    paused = rules.pause(policy, revision=revision, now=tx.now)
    return await _put_in_force(tx, "policy.pause", no_objection, before=policy, after=paused)


async def resume(
    tx: Mutation, policy_id: PolicyId, *, revision: int, objection: Objection = no_objection
) -> Policy:
    """Apply a paused policy again, in the mode of its current version."""
    policy = await _held(tx, policy_id)
    resumed = rules.resume(policy, revision=revision, now=tx.now)
    return await _put_in_force(tx, "policy.resume", objection, before=policy, after=resumed)


async def roll_back(
    tx: Mutation,
    policy_id: PolicyId,
    *,
    revision: int,
    version: int,
    objection: Objection = no_objection,
) -> Policy:
    """Publish what an older version said under the next number."""
    policy = await _held(tx, policy_id)
    older = await store.get_version(tx, tx.organization_id, policy_id, version)
    rolled_back = rules.roll_back(policy, older, revision=revision, now=tx.now)
    return await _put_in_force(tx, "policy.roll_back", objection, before=policy, after=rolled_back)


async def _put_in_force(
    tx: Mutation, action: str, objection: Objection, *, before: Policy, after: Policy
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
    """All must be the organization's own; archived ones are welcome."""
    if unknown := await store.unknown_projects(tx, tx.organization_id, project_ids):
        raise TargetNotFound(list(map(str, unknown)))


async def _audit(tx: Mutation, action: str, *, before: Policy | None, after: Policy) -> None:
    resource = ("policy", policy_id_text(after.id))
    await audit.record(tx, action=action, resource=resource, before=before, after=after)
