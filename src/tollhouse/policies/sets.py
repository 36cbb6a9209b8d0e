"""What applies together somewhere, asked when something is put in force: a judge has bounds."""

from collections.abc import Callable, Iterable, Sequence

from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import OrganizationId, PolicyId, ProjectId
from tollhouse.base.quotas import Quota
from tollhouse.observability import bound_metrics
from tollhouse.policies.applying import in_force, of_row
from tollhouse.policies.types import AppliedPolicy, Policy, Scope
from tollhouse.storage.database import Mutation
from tollhouse.storage.quotas import QuotaExceeded

Objection = Callable[[Sequence[AppliedPolicy]], GatewayError | None]
"""Why so many policies, or such long ones, cannot be judged together."""


def no_objection(policies: Sequence[AppliedPolicy]) -> None:
    """Where nothing judges."""


def at_most(objection: Objection, policies_max: int) -> Objection:
    """Object to sets of more policies than that, and to what `objection` says."""

    def bounded(policies: Sequence[AppliedPolicy]) -> GatewayError | None:
        if len(policies) > policies_max:
            return QuotaExceeded(Quota.POLICIES_IN_EFFECT, policies_max)
        return objection(policies)

    return bounded


async def require_room(tx: Mutation, policy: Policy, objection: Objection) -> None:
    """Refuse what cannot be judged, alone or together with what applies beside it.

    To be called with the change already written: whoever else puts something in force waits.
    """
    assert policy.published is not None, "only what is published can be in force"
    if objection is no_objection:
        return
    if (refusal := objection([in_force(policy.published)])) is not None:
        raise refusal
    content = policy.published.content
    if not policy.is_in_effect or content.scope is Scope.UNATTACHED:
        return
    known = await _in_effect(tx, tx.organization_id)
    if objection(list(known.values())) is None:
        # All of the organization's together fit, so every set does.
        return
    projects = None if content.scope is Scope.ORGANIZATION else content.project_ids
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
    """Those of these projects, or of all that have policies of their own and of all others."""
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
