"""Where policies decide: which apply to a request, and the hearing that it gets."""

from collections.abc import Collection, Sequence

from tollhouse.base.ids import OrganizationId, ProjectId, parse_policy_id, policy_id_text
from tollhouse.inference.allowance import HeldBytes
from tollhouse.inference.courtroom import Applied, Courtroom, Matter
from tollhouse.inference.hearing import Hearing
from tollhouse.policies.errors import SelectedPolicyNotFound, SelectedPolicyPaused
from tollhouse.policies.snapshots import PolicySnapshots
from tollhouse.policies.types import AppliedPolicy


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
        found = await self._selected(organization_id, selected, policy_version=policy_version)
        known = {policy.id for policy in snapshot.policies}
        return Applied(
            by_scope=snapshot.policies,
            selected=tuple(policy for policy in found if policy.id not in known),
            has_selection=True,
        )

    async def _selected(
        self, organization_id: OrganizationId, texts: Sequence[str], *, policy_version: int
    ) -> tuple[AppliedPolicy, ...]:
        """Return the policies of these IDs. Raises `SelectedPolicyNotFound` with all unknown."""
        parsed = {text: parse_policy_id(text) for text in texts}
        ids = {found for found in parsed.values() if found is not None}
        missing: Collection[str] = ()
        policies: tuple[AppliedPolicy, ...] = ()
        try:
            if ids:
                policies = await self._snapshots.selected(
                    organization_id, list(ids), policy_version=policy_version
                )
        except SelectedPolicyNotFound as refusal:
            missing = refusal.unknown
        except SelectedPolicyPaused:
            if None not in parsed.values():
                raise
        if missing or None in parsed.values():
            raise SelectedPolicyNotFound(
                [
                    text
                    for text, found in parsed.items()
                    if found is None or policy_id_text(found) in missing
                ]
            )
        return policies

    async def hearing(self, matter: Matter, applied: Applied) -> Hearing:
        """Refuses a selection that no judge could be asked about."""
        hearing = Hearing(self._courtroom, matter, applied)
        await hearing.weigh()
        return hearing
