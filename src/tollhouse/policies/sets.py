"""The sets of policies that apply together, and the check that a set can be evaluated."""

from collections.abc import Callable, Collection, Iterable, Sequence

from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import OrganizationId, PolicyId, ProjectId
from tollhouse.base.policies import Direction, Mode
from tollhouse.base.quotas import Quota
from tollhouse.observability import bound_metrics
from tollhouse.policies.applying import in_force, of_row
from tollhouse.policies.types import (
    AppliedPolicy,
    EffectivePolicy,
    Policy,
    PolicyScope,
    PolicySnapshot,
    PolicyState,
)
from tollhouse.storage.database import Database, Mutation, Row, Transaction
from tollhouse.storage.quotas import QuotaExceeded

PublicationCheck = Callable[[Sequence[AppliedPolicy]], GatewayError | None]
"""Returns the error if policies are too many or too long to evaluate together, or None."""


def no_check(policies: Sequence[AppliedPolicy]) -> None:
    """Accept every set, for example if no judge is configured."""


def at_most(objection: PublicationCheck, policies_max: int) -> PublicationCheck:
    """Return a check that refuses more than `policies_max` policies, then calls `objection`."""

    def bounded(policies: Sequence[AppliedPolicy]) -> GatewayError | None:
        if len(policies) > policies_max:
            return QuotaExceeded(Quota.POLICIES_IN_EFFECT, policies_max)
        return objection(policies)

    return bounded


async def require_room(tx: Mutation, policy: Policy, objection: PublicationCheck) -> None:
    """Raise if a policy cannot be evaluated, alone or together with those that apply with it.

    Call it after `raise_policy_version`, which locks the organization: other publications wait.
    """
    assert policy.published is not None, "only what is published can be in force"
    if objection is no_check:
        return
    if (refusal := objection([in_force(policy.published)])) is not None:
        raise refusal
    content = policy.published.content
    if not policy.is_in_effect or content.scope is PolicyScope.UNATTACHED:
        return
    known = await _in_effect(tx, tx.organization_id)
    if objection(list(known.values())) is None:
        # All policies of the organization fit together, so every set fits.
        return
    projects = None if content.scope is PolicyScope.ORGANIZATION else content.project_ids
    for applying in await _sets(tx, tx.organization_id, projects):
        if (refusal := objection([known[policy_id] for policy_id in applying])) is not None:
            if isinstance(refusal, QuotaExceeded):
                bound_metrics.quota_refused(refusal.quota)
            raise refusal


async def _in_effect(
    tx: Mutation, organization_id: OrganizationId
) -> dict[PolicyId, AppliedPolicy]:
    rows = await tx.fetch_all(
        """
        SELECT v.policy_id, v.version, v.rule, v.direction, v.mode,
               v.threshold_in_force_basis_points, v.ends_answer_early
          FROM (SELECT DISTINCT policy_id FROM policy_targets
                 WHERE organization_id = $1) target
         CROSS JOIN LATERAL (
               SELECT id, current_version FROM policies
                WHERE organization_id = $1 AND id = target.policy_id
                LIMIT 1) p
         CROSS JOIN LATERAL (
               SELECT policy_id, version, rule, direction, mode,
                      threshold_in_force_basis_points, ends_answer_early
                 FROM policy_versions
                WHERE organization_id = $1 AND policy_id = p.id AND version = p.current_version
                LIMIT 1) v
        """,
        organization_id,
    )
    return {PolicyId(row["policy_id"]): of_row(row) for row in rows}


async def _sets(
    tx: Mutation, organization_id: OrganizationId, projects: Sequence[ProjectId] | None
) -> Iterable[list[PolicyId]]:
    """Return the sets of these projects, or of all projects that have policies of their own.

    The first set is that of all other projects.
    """
    rows = await tx.fetch_all(
        """
        SELECT project_id, array_agg(policy_id) AS policy_ids
          FROM policy_targets
         WHERE organization_id = $1
           AND (project_id IS NULL OR $2::uuid[] IS NULL OR project_id = ANY ($2))
         GROUP BY project_id
        """,
        organization_id,
        projects,
    )
    by_project = {row["project_id"]: list(map(PolicyId, row["policy_ids"])) for row in rows}
    everywhere = by_project.pop(None, [])
    return [everywhere, *(everywhere + own for own in by_project.values())]


async def effective(
    tx: Transaction, organization_id: OrganizationId, project_id: ProjectId
) -> list[EffectivePolicy]:
    """Return the policies that apply to all requests of a project, in order of publication.

    Two separate lookups of targets keep the planner from reading those of other projects.
    """
    rows = await tx.fetch_all(
        """
        SELECT p.id, p.name, v.version, v.direction, v.mode, v.scope
          FROM (SELECT policy_id FROM policy_targets
                 WHERE organization_id = $1 AND project_id = $2
                 UNION ALL
                SELECT policy_id FROM policy_targets
                 WHERE organization_id = $1 AND project_id IS NULL) target
         CROSS JOIN LATERAL (
               SELECT id, name, current_version FROM policies
                WHERE organization_id = $1 AND id = target.policy_id
                LIMIT 1) p
         CROSS JOIN LATERAL (
               SELECT version, direction, mode, scope, published_at FROM policy_versions
                WHERE organization_id = $1 AND policy_id = p.id AND version = p.current_version
                LIMIT 1) v
         ORDER BY v.published_at, p.id
        """,
        organization_id,
        project_id,
    )
    return [_effective(row) for row in rows]


async def snapshot(
    database: Database, organization_id: OrganizationId, project_id: ProjectId
) -> PolicySnapshot | None:
    """Return the organization's policy version and the policies that apply to a project.

    One statement reads both, so that neither is older than the other. It finds targets like
    `effective`. Returns None if the organization does not exist.
    """
    rows = await database.fetch_all(
        """
        SELECT o.policy_version, v.policy_id, v.version, v.rule, v.direction, v.mode,
               v.threshold_in_force_basis_points, v.ends_answer_early
          FROM organizations o
          LEFT JOIN (SELECT policy_id FROM policy_targets
                      WHERE organization_id = $1 AND project_id = $2
                      UNION ALL
                     SELECT policy_id FROM policy_targets
                      WHERE organization_id = $1 AND project_id IS NULL) target ON true
          LEFT JOIN LATERAL (
               SELECT id, current_version FROM policies
                WHERE organization_id = $1 AND id = target.policy_id
                LIMIT 1) p ON true
          LEFT JOIN LATERAL (
               SELECT policy_id, version, rule, direction, mode,
                      threshold_in_force_basis_points, ends_answer_early, published_at
                 FROM policy_versions
                WHERE organization_id = $1 AND policy_id = p.id AND version = p.current_version
                LIMIT 1) v ON true
         WHERE o.id = $1
         ORDER BY v.published_at, v.policy_id
        """,
        organization_id,
        project_id,
    )
    if not rows:
        return None
    return PolicySnapshot(
        policy_version=rows[0]["policy_version"],
        policies=tuple(of_row(row) for row in rows if row["policy_id"] is not None),
    )


async def selected(
    database: Database, organization_id: OrganizationId, policy_ids: Collection[PolicyId]
) -> PolicySnapshot | None:
    """Return the current versions of these policies.

    Their scope does not matter. Policies that were never published are left out. Returns None if
    the organization does not exist.
    """
    rows = await database.fetch_all(
        """
        SELECT o.policy_version, p.state, v.policy_id, v.version, v.rule, v.direction, v.mode,
               v.threshold_in_force_basis_points, v.ends_answer_early
          FROM organizations o
          LEFT JOIN unnest($2::uuid[]) asked (id) ON true
          LEFT JOIN LATERAL (
               SELECT id, state, current_version FROM policies
                WHERE organization_id = $1 AND id = asked.id
                LIMIT 1) p ON true
          LEFT JOIN LATERAL (
               SELECT policy_id, version, rule, direction, mode,
                      threshold_in_force_basis_points, ends_answer_early
                 FROM policy_versions
                WHERE organization_id = $1 AND policy_id = p.id AND version = p.current_version
                LIMIT 1) v ON true
         WHERE o.id = $1
         ORDER BY v.policy_id
        """,
        organization_id,
        list(policy_ids),
    )
    if not rows:
        return None
    found = [row for row in rows if row["policy_id"] is not None]
    return PolicySnapshot(
        policy_version=rows[0]["policy_version"],
        policies=tuple(of_row(row) for row in found if row["state"] != PolicyState.PAUSED),
        paused=tuple(of_row(row) for row in found if row["state"] == PolicyState.PAUSED),
    )


def _effective(row: Row) -> EffectivePolicy:
    return EffectivePolicy(
        id=PolicyId(row["id"]),
        name=row["name"],
        version=row["version"],
        direction=Direction(row["direction"]),
        mode=Mode(row["mode"]),
        scope=PolicyScope(row["scope"]),
    )
