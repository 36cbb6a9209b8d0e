"""The seam where policies decide. Nothing judges yet, so whatever would have to is refused."""

from collections.abc import Sequence

from tollhouse.base.ids import OrganizationId, ProjectId, parse_policy_id
from tollhouse.inference.errors import PolicyEvaluatorUnavailable
from tollhouse.policies import service
from tollhouse.policies.errors import SelectedPolicyNotFound
from tollhouse.policies.snapshots import PolicySnapshots
from tollhouse.policies.types import AppliedPolicy, Mode
from tollhouse.storage.database import Database


class Policing:
    """One per worker."""

    def __init__(self, database: Database, snapshots: PolicySnapshots) -> None:
        self._database = database
        self._snapshots = snapshots

    async def applied(
        self,
        organization_id: OrganizationId,
        project_id: ProjectId,
        *,
        policy_version: int,
        selected: Sequence[str],
    ) -> tuple[AppliedPolicy, ...]:
        """What applies by scope, and what the request adds by `policy_ids`; each policy once."""
        snapshot = await self._snapshots.find(
            organization_id, project_id, policy_version=policy_version
        )
        if not selected:
            return snapshot.policies
        ids = {parse_policy_id(text) for text in selected}
        if None in ids:
            raise SelectedPolicyNotFound
        added = await service.selected(
            self._database, organization_id, [found for found in ids if found is not None]
        )
        known = {policy.id for policy in snapshot.policies}
        return snapshot.policies + tuple(policy for policy in added if policy.id not in known)

    async def judge_request(self, policies: Sequence[AppliedPolicy], *, has_selected: bool) -> None:
        """Refuse wherever a policy would have to decide: never a silent pass."""
        if has_selected or any(policy.mode is Mode.ENFORCING for policy in policies):
            raise PolicyEvaluatorUnavailable
