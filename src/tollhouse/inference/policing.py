"""Where policies decide: which apply to a request, and the hearing that it gets."""

from collections.abc import Sequence

from tollhouse.base.ids import OrganizationId, ProjectId, parse_policy_id
from tollhouse.inference.allowance import HeldBytes
from tollhouse.inference.courtroom import Applied, Courtroom, Matter
from tollhouse.inference.hearing import Hearing
from tollhouse.policies.errors import SelectedPolicyNotFound
from tollhouse.policies.snapshots import PolicySnapshots


class Policing:
    """One per worker."""

    def __init__(self, snapshots: PolicySnapshots, courtroom: Courtroom) -> None:
        self._snapshots = snapshots
        self._courtroom = courtroom

    @property
    def buffers(self) -> HeldBytes:
        """Where answers wait for a verdict or for their readers."""
        return self._courtroom.held_bytes

    async def applied(
        self,
        organization_id: OrganizationId,
        project_id: ProjectId,
        *,
        policy_version: int,
        selected: Sequence[str],
    ) -> Applied | None:
        """What applies by scope, and what the request adds by `policy_ids`; nothing if none do."""
        snapshot = await self._snapshots.find(
            organization_id, project_id, policy_version=policy_version
        )
        if not selected:
            return Applied(by_scope=snapshot.policies) if snapshot.policies else None
        ids = {parse_policy_id(text) for text in selected}
        if None in ids:
            raise SelectedPolicyNotFound
        found = await self._snapshots.selected(
            organization_id,
            [found for found in ids if found is not None],
            policy_version=policy_version,
        )
        known = {policy.id for policy in snapshot.policies}
        return Applied(
            by_scope=snapshot.policies,
            selected=tuple(policy for policy in found if policy.id not in known),
            has_selection=True,
        )

    async def hearing(self, matter: Matter, applied: Applied) -> Hearing:
        """Refuses a selection that no judge could be asked about."""
        hearing = Hearing(self._courtroom, matter, applied)
        await hearing.weigh()
        return hearing
