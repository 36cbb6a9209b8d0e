"""SQL for policies and their versions.

The current version is fetched by `LATERAL` and `LIMIT 1`. With a plain join, the planner may read
and filter the whole history of a policy or an organization, if it has seen only short histories.
"""

from tollhouse.base.ids import OrganizationId, PolicyId, ProjectId
from tollhouse.base.policies import Direction, Mode
from tollhouse.policies.types import (
    Policy,
    PolicyContent,
    PolicyScope,
    PolicyState,
    PolicyVersion,
)
from tollhouse.storage.database import Mutation, Row, Transaction


async def insert(tx: Mutation, policy: Policy) -> None:
    """Insert a new policy, which has no published version."""
    draft = policy.draft
    await tx.execute(
        """
        INSERT INTO policies (organization_id, id, name, description, state, revision,
                              rule, direction, mode, scope, project_ids,
                              match_threshold_basis_points, ends_answer_early, base_version,
                              created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
        """,
        policy.organization_id,
        policy.id,
        policy.name,
        policy.description,
        policy.state,
        policy.revision,
        draft.rule,
        draft.direction,
        draft.mode,
        draft.scope,
        draft.project_ids,
        draft.match_threshold_basis_points,
        draft.ends_answer_early,
        policy.base_version,
        policy.created_at,
        policy.updated_at,
    )


async def count(tx: Transaction, organization_id: OrganizationId, count_max: int) -> int:
    """Count all policies, up to `count_max`."""
    return await tx.fetch_value(
        """
        SELECT count(*)
          FROM (SELECT 1 FROM policies WHERE organization_id = $1 LIMIT $2) kept
        """,
        organization_id,
        count_max,
    )


async def delete(tx: Mutation, organization_id: OrganizationId, policy_id: PolicyId) -> None:
    """Delete a policy that was never published. The versions of others refer to them."""
    await tx.execute(
        "DELETE FROM policies WHERE organization_id = $1 AND id = $2", organization_id, policy_id
    )


async def hold(tx: Mutation, organization_id: OrganizationId, policy_id: PolicyId) -> None:
    """Lock the policy against other writers until the transaction ends.

    Read the policy in a later statement: a join that waited for this lock would combine the policy
    as it is now with the version that was current before.
    """
    await tx.execute(
        "SELECT 1 FROM policies WHERE organization_id = $1 AND id = $2 FOR UPDATE",
        organization_id,
        policy_id,
    )


async def get(
    tx: Transaction, organization_id: OrganizationId, policy_id: PolicyId
) -> Policy | None:
    """Return a policy with its current version, or None."""
    row = await tx.fetch_one(
        """
        SELECT p.organization_id, p.id, p.name, p.description, p.state, p.revision, p.rule,
               p.direction, p.mode, p.scope, p.project_ids, p.match_threshold_basis_points,
               p.ends_answer_early, p.base_version, p.created_at, p.updated_at, v.published
          FROM policies p
          LEFT JOIN LATERAL (
               SELECT one AS published FROM policy_versions one
                WHERE one.organization_id = p.organization_id AND one.policy_id = p.id
                  AND one.version = p.current_version
                LIMIT 1) v ON true
         WHERE p.organization_id = $1
           AND p.id = $2
        """,
        organization_id,
        policy_id,
    )
    return None if row is None else _policy(row)


async def page(
    tx: Transaction, organization_id: OrganizationId, *, after: PolicyId | None, limit: int
) -> list[Policy]:
    """Return policies in order of creation."""
    rows = await tx.fetch_all(
        """
        SELECT p.organization_id, p.id, p.name, p.description, p.state, p.revision, p.rule,
               p.direction, p.mode, p.scope, p.project_ids, p.match_threshold_basis_points,
               p.ends_answer_early, p.base_version, p.created_at, p.updated_at, v.published
          FROM policies p
          LEFT JOIN LATERAL (
               SELECT one AS published FROM policy_versions one
                WHERE one.organization_id = p.organization_id AND one.policy_id = p.id
                  AND one.version = p.current_version
                LIMIT 1) v ON true
         WHERE p.organization_id = $1
           AND ($2::uuid IS NULL OR p.id > $2)
         ORDER BY p.id
         LIMIT $3
        """,
        organization_id,
        after,
        limit,
    )
    return [_policy(row) for row in rows]


async def exists(tx: Transaction, organization_id: OrganizationId, policy_id: PolicyId) -> bool:
    """Return whether the organization has this policy."""
    found = await tx.fetch_value(
        "SELECT 1 FROM policies WHERE organization_id = $1 AND id = $2", organization_id, policy_id
    )
    return found is not None


async def save_draft(tx: Mutation, policy: Policy) -> None:
    """Update the columns that an edit can change."""
    draft = policy.draft
    await tx.execute(
        """
        UPDATE policies
           SET name = $3, description = $4, revision = $5, updated_at = $6,
               rule = $7, direction = $8, mode = $9, scope = $10, project_ids = $11,
               match_threshold_basis_points = $12, ends_answer_early = $13
         WHERE organization_id = $1
           AND id = $2
        """,
        policy.organization_id,
        policy.id,
        policy.name,
        policy.description,
        policy.revision,
        policy.updated_at,
        draft.rule,
        draft.direction,
        draft.mode,
        draft.scope,
        draft.project_ids,
        draft.match_threshold_basis_points,
        draft.ends_answer_early,
    )


async def save_state(tx: Mutation, policy: Policy) -> None:
    """Update the columns that the other operations can change, without the draft's long texts."""
    await tx.execute(
        """
        UPDATE policies
           SET state = $3, revision = $4, updated_at = $5, base_version = $6, current_version = $7
         WHERE organization_id = $1
           AND id = $2
        """,
        policy.organization_id,
        policy.id,
        policy.state,
        policy.revision,
        policy.updated_at,
        policy.base_version,
        policy.current_version,
    )


async def insert_version(tx: Mutation, version: PolicyVersion) -> None:
    """Insert a published version, which never changes."""
    content = version.content
    await tx.execute(
        """
        INSERT INTO policy_versions (organization_id, policy_id, version, rule, direction, mode,
                                     scope, project_ids, match_threshold_basis_points,
                                     threshold_in_force_basis_points, ends_answer_early,
                                     published_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
        """,
        version.organization_id,
        version.policy_id,
        version.number,
        content.rule,
        content.direction,
        content.mode,
        content.scope,
        content.project_ids,
        content.match_threshold_basis_points,
        version.threshold_in_force_basis_points,
        content.ends_answer_early,
        version.published_at,
    )


async def get_version(
    tx: Transaction, organization_id: OrganizationId, policy_id: PolicyId, number: int
) -> PolicyVersion | None:
    """Return a published version, or None."""
    row = await tx.fetch_one(
        """
        SELECT organization_id, policy_id, version, rule, direction, mode, scope, project_ids,
               match_threshold_basis_points, threshold_in_force_basis_points, ends_answer_early,
               published_at
          FROM policy_versions
         WHERE organization_id = $1
           AND policy_id = $2
           AND version = $3
        """,
        organization_id,
        policy_id,
        number,
    )
    return None if row is None else _version(row)


async def page_of_versions(
    tx: Transaction,
    organization_id: OrganizationId,
    policy_id: PolicyId,
    *,
    before: int | None,
    limit: int,
) -> list[PolicyVersion]:
    """Return versions, newest first."""
    rows = await tx.fetch_all(
        """
        SELECT organization_id, policy_id, version, rule, direction, mode, scope, project_ids,
               match_threshold_basis_points, threshold_in_force_basis_points, ends_answer_early,
               published_at
          FROM policy_versions
         WHERE organization_id = $1
           AND policy_id = $2
           AND ($3::integer IS NULL OR version < $3)
         ORDER BY version DESC
         LIMIT $4
        """,
        organization_id,
        policy_id,
        before,
        limit,
    )
    return [_version(row) for row in rows]


async def unknown_projects(
    tx: Transaction, organization_id: OrganizationId, project_ids: tuple[ProjectId, ...]
) -> list[ProjectId]:
    """Return the projects that the organization does not have, in the order of `project_ids`."""
    rows = await tx.fetch_all(
        """
        SELECT wanted.id
          FROM unnest($2::uuid[]) WITH ORDINALITY AS wanted (id, number)
         WHERE NOT EXISTS (
               SELECT 1 FROM projects p WHERE p.organization_id = $1 AND p.id = wanted.id)
         ORDER BY number
        """,
        organization_id,
        project_ids,
    )
    return [ProjectId(row["id"]) for row in rows]


async def retarget(tx: Mutation, policy: Policy) -> None:
    """Replace the policy's targets by those of its current version, or none if not in effect."""
    await tx.execute(
        "DELETE FROM policy_targets WHERE organization_id = $1 AND policy_id = $2",
        policy.organization_id,
        policy.id,
    )
    await tx.execute(
        """
        INSERT INTO policy_targets (organization_id, policy_id, project_id)
        SELECT $1, $2, target.id FROM unnest($3::uuid[]) AS target (id)
        """,
        policy.organization_id,
        policy.id,
        _targets(policy),
    )


def _targets(policy: Policy) -> tuple[ProjectId | None, ...]:
    if policy.published is None or not policy.is_in_effect:
        return ()
    match policy.published.content.scope:
        case PolicyScope.ORGANIZATION:
            return (None,)
        case PolicyScope.PROJECTS:
            return policy.published.content.project_ids
        case PolicyScope.UNATTACHED:
            return ()


async def raise_policy_version(tx: Mutation, organization_id: OrganizationId) -> None:
    """Increment the policy version: after the commit, workers reload the policies that apply."""
    await tx.execute(
        "UPDATE organizations SET policy_version = policy_version + 1 WHERE id = $1",
        organization_id,
    )


def _policy(row: Row) -> Policy:
    published: Row | None = row["published"]
    return Policy(
        organization_id=OrganizationId(row["organization_id"]),
        id=PolicyId(row["id"]),
        name=row["name"],
        description=row["description"],
        state=PolicyState(row["state"]),
        revision=row["revision"],
        draft=_content(row),
        base_version=row["base_version"],
        published=None if published is None else _version(published),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def _version(row: Row) -> PolicyVersion:
    return PolicyVersion(
        organization_id=OrganizationId(row["organization_id"]),
        policy_id=PolicyId(row["policy_id"]),
        number=row["version"],
        content=_content(row),
        threshold_in_force_basis_points=row["threshold_in_force_basis_points"],
        published_at=row["published_at"],
    )


def _content(row: Row) -> PolicyContent:
    return PolicyContent(
        rule=row["rule"],
        direction=Direction(row["direction"]),
        mode=Mode(row["mode"]),
        scope=PolicyScope(row["scope"]),
        project_ids=tuple(ProjectId(project_id) for project_id in row["project_ids"]),
        match_threshold_basis_points=row["match_threshold_basis_points"],
        ends_answer_early=row["ends_answer_early"],
    )
