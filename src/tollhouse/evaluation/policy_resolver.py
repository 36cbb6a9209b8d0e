"""The policy resolver: finds the policies of a request and starts their evaluation."""

from collections.abc import Collection, Sequence

from tollhouse.base.ids import OrganizationId, ProjectId, parse_policy_id, policy_id_text
from tollhouse.evaluation.buffer_quota import AnswerBuffers
from tollhouse.evaluation.dependencies import (
    AppliedPolicies,
    EvaluationInput,
    EvaluatorDependencies,
)
from tollhouse.evaluation.request_evaluation import RequestEvaluation
from tollhouse.policies.errors import SelectedPolicyNotFound
from tollhouse.policies.snapshots import PolicySnapshots
from tollhouse.policies.types import PolicySnapshot


class PolicyResolver:
    """Finds the policies that apply to a request, from snapshots of each project."""

    def __init__(self, snapshots: PolicySnapshots, dependencies: EvaluatorDependencies) -> None:
        self._snapshots = snapshots
        self._dependencies = dependencies

    @property
    def buffers(self) -> AnswerBuffers:
        """The buffers of answers that wait for a verdict, or for their callers to read them."""
        return self._dependencies.buffers

    async def applied(
        self,
        organization_id: OrganizationId,
        project_id: ProjectId,
        *,
        policy_version: int,
        selected: Sequence[str],
    ) -> AppliedPolicies | None:
        """Return the policies of the project and those `selected` by ID, or None without any.

        Raises `SelectedPolicyNotFound`. Selected policies that are paused are skipped.
        """
        snapshot = await self._snapshots.find(
            organization_id, project_id, policy_version=policy_version
        )
        if not selected:
            return AppliedPolicies(by_scope=snapshot.policies) if snapshot.policies else None
        found = await self._selected(organization_id, selected, policy_version=policy_version)
        known = {policy.id for policy in snapshot.policies}
        return AppliedPolicies(
            by_scope=snapshot.policies,
            selected=tuple(policy for policy in found.policies if policy.id not in known),
            has_selection=bool(found.policies),
            paused=tuple(policy for policy in found.paused if policy.id not in known),
        )

    async def _selected(
        self, organization_id: OrganizationId, texts: Sequence[str], *, policy_version: int
    ) -> PolicySnapshot:
        """Return the policies by ID. Raises `SelectedPolicyNotFound` with all unknown IDs."""
        parsed = {text: parse_policy_id(text) for text in texts}
        ids = {policy_id for policy_id in parsed.values() if policy_id is not None}
        missing: Collection[str] = ()
        found = PolicySnapshot(policy_version=policy_version, policies=())
        try:
            if ids:
                found = await self._snapshots.selected(
                    organization_id, list(ids), policy_version=policy_version
                )
        except SelectedPolicyNotFound as refusal:
            missing = refusal.unknown
        if missing or None in parsed.values():
            raise SelectedPolicyNotFound(
                [
                    text
                    for text, policy_id in parsed.items()
                    if policy_id is None or policy_id_text(policy_id) in missing
                ]
            )
        return found

    async def evaluation(
        self, evaluation_input: EvaluationInput, applied: AppliedPolicies
    ) -> RequestEvaluation:
        """Return the evaluation of a request, or raise if the judge has too few tokens for it."""
        evaluation = RequestEvaluation(self._dependencies, evaluation_input, applied)
        await evaluation.check_budget()
        return evaluation
