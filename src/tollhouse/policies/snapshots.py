"""A cache of policy sets per worker, used only if it is as new as the caller's key.

The transaction of every change increments the organization's policy version. A request has this
version from its key. If the cached set is older, the request waits for a reload and fails if the
reload fails: no request is evaluated with policies that are older than its key.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import OrganizationId, PolicyId, ProjectId
from tollhouse.base.joined import fail
from tollhouse.base.tasks import Tasks
from tollhouse.policies import service, sets
from tollhouse.policies.errors import SnapshotBehind
from tollhouse.policies.types import PolicySnapshot
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable, StatementFailed

HELD_CHARACTERS_MAX = 64 * 1024 * 1024
"""The cached characters of all projects. A thousand rules of maximum length are a third of it."""
SELECTED_CHARACTERS_MAX = 32 * 1024 * 1024
"""The bound of a separate cache, so that named policies cannot evict the sets of projects."""
_POLICY_CHARACTERS = 500
"""The size of a policy without its rule."""

_Project = tuple[OrganizationId, ProjectId]
_Selection = tuple[OrganizationId, frozenset[PolicyId]]
PlaceT = TypeVar("PlaceT")
"""The key of a cached set."""
Read = Callable[[PlaceT], Awaitable[PolicySnapshot | None]]
"""Reads a set with its policy version, neither older than the other; None if there is none."""


@dataclass(frozen=True, slots=True)
class _Reload:
    """A reload that began after `policy_version` was committed, so it reads at least that."""

    policy_version: int
    answer: "asyncio.Future[PolicySnapshot]"


class SnapshotCache(Generic[PlaceT]):
    """Caches the sets of policies that `read` returns. Failures are not cached."""

    def __init__(self, read: Read[PlaceT], tasks: Tasks, *, held_characters_max: int) -> None:
        self._read_now = read
        self._tasks = tasks
        self._held_characters_max = held_characters_max
        self._held_characters = 0
        self._held: dict[PlaceT, PolicySnapshot] = {}
        self._reloads: dict[PlaceT, _Reload] = {}

    async def find(self, place: PlaceT, *, policy_version: int) -> PolicySnapshot:
        """Return the set at this policy version or a newer one. Waits for at most one reload."""
        held = self._held.get(place)
        if held is not None and held.policy_version >= policy_version:
            return held
        return await asyncio.shield(self._reloaded(place, policy_version))

    def _reloaded(self, place: PlaceT, policy_version: int) -> "asyncio.Future[PolicySnapshot]":
        """Join the running reload, or start one if that may have begun before this version."""
        reload = self._reloads.get(place)
        if reload is None or reload.policy_version < policy_version:
            answer: asyncio.Future[PolicySnapshot] = asyncio.get_running_loop().create_future()
            reload = _Reload(policy_version, answer)
            self._reloads[place] = reload
            self._tasks.start("policies-reload", self._reload(place, reload))
        return reload.answer

    async def _reload(self, place: PlaceT, reload: _Reload) -> None:
        try:
            snapshot = await self._read(place, reload.policy_version)
            self._hold(place, snapshot)
            reload.answer.set_result(snapshot)
        except GatewayError as failure:
            fail(reload.answer, failure)
        except StatementFailed as failure:
            # A bug: raise it in the waiting requests, and in this task, which logs it.
            fail(reload.answer, failure)
            raise
        finally:
            if self._reloads.get(place) is reload:
                del self._reloads[place]
            fail(reload.answer, DatabaseUnavailable())

    async def _read(self, place: PlaceT, policy_version: int) -> PolicySnapshot:
        snapshot = await self._read_now(place)
        if snapshot is None or snapshot.policy_version < policy_version:
            raise SnapshotBehind
        return snapshot

    def _hold(self, place: PlaceT, snapshot: PolicySnapshot) -> None:
        """Cache a set, and evict the sets that were loaded longest ago if the cache is full.

        A hit does not change this order, so that it costs nothing.
        """
        held = self._held.get(place)
        if held is not None and held.policy_version > snapshot.policy_version:
            return
        self._forget(place)
        self._held[place] = snapshot
        self._held_characters += _characters(snapshot)
        while self._held_characters > self._held_characters_max and len(self._held) > 1:
            self._forget(next(iter(self._held)))

    def _forget(self, place: PlaceT) -> None:
        forgotten = self._held.pop(place, None)
        if forgotten is not None:
            self._held_characters -= _characters(forgotten)


def _characters(snapshot: PolicySnapshot) -> int:
    """Return the size of a set. An empty set has a size too."""
    policies = snapshot.policies + snapshot.paused
    return sum(len(policy.rule) for policy in policies) + _POLICY_CHARACTERS * (len(policies) + 1)


class PolicySnapshots:
    """The policies of projects and of requests that name policies. One per worker.

    Sets are cached by project, because a thousand policies may name a thousand projects each.
    """

    def __init__(
        self, database: Database, tasks: Tasks, *, held_characters_max: int = HELD_CHARACTERS_MAX
    ) -> None:
        self._database = database
        self._projects = SnapshotCache(
            self._of_project, tasks, held_characters_max=held_characters_max
        )
        self._selections = SnapshotCache(
            self._of_selection, tasks, held_characters_max=SELECTED_CHARACTERS_MAX
        )

    async def find(
        self, organization_id: OrganizationId, project_id: ProjectId, *, policy_version: int
    ) -> PolicySnapshot:
        """Return the policies of a project, at this policy version or a newer one."""
        return await self._projects.find(
            (organization_id, project_id), policy_version=policy_version
        )

    async def selected(
        self,
        organization_id: OrganizationId,
        policy_ids: Sequence[PolicyId],
        *,
        policy_version: int,
    ) -> PolicySnapshot:
        """Return the policies that a request names. Raises if one of them is not found."""
        place = organization_id, frozenset(policy_ids)
        return await self._selections.find(place, policy_version=policy_version)

    async def _of_project(self, place: _Project) -> PolicySnapshot | None:
        return await sets.snapshot(self._database, *place)

    async def _of_selection(self, place: _Selection) -> PolicySnapshot | None:
        return await service.selected(self._database, *place)
