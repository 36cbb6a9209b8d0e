"""Where policies decide: which apply to a request, and the hearing that it gets."""

from collections.abc import Sequence

from tollhouse.base.ids import OrganizationId, ProjectId, parse_policy_id
from tollhouse.inference.hearing import Applied, Courtroom, Hearing, Matter
from tollhouse.policies import service
from tollhouse.policies.errors import SelectedPolicyNotFound
from tollhouse.policies.snapshots import PolicySnapshots
from tollhouse.storage.database import Database


class Policing:
    """One per worker."""

    def __init__(
        self, database: Database, snapshots: PolicySnapshots, courtroom: Courtroom
    ) -> None:
        self._database = database
        self._snapshots = snapshots
        self._courtroom = courtroom

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
        found = await service.selected(
            self._database, organization_id, [found for found in ids if found is not None]
        )
        known = {policy.id for policy in snapshot.policies}
        return Applied(
            by_scope=snapshot.policies,
            selected=tuple(policy for policy in found if policy.id not in known),
            has_selection=True,
        )

    def hearing(self, matter: Matter, applied: Applied) -> Hearing:
        """Refuses a selection that no judge could be asked about."""
        hearing = Hearing(self._courtroom, matter, applied)
        hearing.weigh()
        return hearing
