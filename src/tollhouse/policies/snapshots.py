"""What a worker knows of policies: what applies to a project, and what requests select."""

from collections.abc import Sequence

from tollhouse.base.ids import OrganizationId, PolicyId, ProjectId
from tollhouse.base.tasks import Tasks
from tollhouse.policies import service, store
from tollhouse.policies.beliefs import Beliefs
from tollhouse.policies.types import AppliedPolicy, PolicySnapshot
from tollhouse.storage.database import Database

HELD_CHARACTERS_MAX = 64 * 1024 * 1024
"""Of rules, over all projects. A thousand rules of the greatest length are a third of it."""
SELECTED_CHARACTERS_MAX = 32 * 1024 * 1024
"""Of their own, so that no caller can have the sets of projects forgotten."""

_Project = tuple[OrganizationId, ProjectId]
_Selection = tuple[OrganizationId, frozenset[PolicyId]]


class PolicySnapshots:
    """One per worker. Sets are kept by project: a thousand policies may name a thousand each."""

    def __init__(
        self, database: Database, tasks: Tasks, *, held_characters_max: int = HELD_CHARACTERS_MAX
    ) -> None:
        self._database = database
        self._projects = Beliefs(self._of_project, tasks, held_characters_max=held_characters_max)
        self._selections = Beliefs(
            self._of_selection, tasks, held_characters_max=SELECTED_CHARACTERS_MAX
        )

    async def find(
        self, organization_id: OrganizationId, project_id: ProjectId, *, policy_version: int
    ) -> PolicySnapshot:
        """What applies to a project by itself, at this number or a newer one."""
        return await self._projects.find(
            (organization_id, project_id), policy_version=policy_version
        )

    async def selected(
        self,
        organization_id: OrganizationId,
        policy_ids: Sequence[PolicyId],
        *,
        policy_version: int,
    ) -> tuple[AppliedPolicy, ...]:
        """What a request adds by naming it; all of it can be applied, or none is."""
        place = organization_id, frozenset(policy_ids)
        found = await self._selections.find(place, policy_version=policy_version)
        return found.policies

    async def _of_project(self, place: _Project) -> PolicySnapshot | None:
        return await store.snapshot(self._database, *place)

    async def _of_selection(self, place: _Selection) -> PolicySnapshot | None:
        return await service.selected(self._database, *place)
