"""Sets of policies, kept per worker and believed only at the number that a key carries.

The organization's counter is raised in the transaction of every change. A request knows the
counter from its key; one that knows a newer number than is held here waits for a reload, and
fails with it: no request is judged by policies older than its key's answer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from tollhouse.base.errors import GatewayError
from tollhouse.base.tasks import Tasks
from tollhouse.policies.errors import SnapshotBehind
from tollhouse.policies.types import PolicySnapshot
from tollhouse.storage.errors import DatabaseUnavailable, StatementFailed

_POLICY_CHARACTERS = 500
"""What a policy costs beside its rule."""

PlaceT = TypeVar("PlaceT")
"""What a set is asked for by."""
Read = Callable[[PlaceT], Awaitable[PolicySnapshot | None]]
"""The set and the organization's counter, neither older than the other; none without one."""


@dataclass(frozen=True, slots=True)
class _Reload:
    """Begun after the number was committed, so what it reads is at least as new."""

    policy_version: int
    answer: "asyncio.Future[PolicySnapshot]"


class Beliefs(Generic[PlaceT]):
    """One per worker and way to ask. What could not be read is not remembered."""

    def __init__(self, read: Read[PlaceT], tasks: Tasks, *, held_characters_max: int) -> None:
        self._read_now = read
        self._tasks = tasks
        self._held_characters_max = held_characters_max
        self._held_characters = 0
        self._held: dict[PlaceT, PolicySnapshot] = {}
        self._reloads: dict[PlaceT, _Reload] = {}

    async def find(self, place: PlaceT, *, policy_version: int) -> PolicySnapshot:
        """The set at this number or a newer one. Waits for at most one reload."""
        held = self._held.get(place)
        if held is not None and held.policy_version >= policy_version:
            return held
        return await asyncio.shield(self._reloaded(place, policy_version))

    def _reloaded(self, place: PlaceT, policy_version: int) -> "asyncio.Future[PolicySnapshot]":
        """Join the reload that is under way, unless it may have begun too early for this number."""
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
            _fail(reload, failure)
        except StatementFailed as failure:
            # A bug is told to whoever waits, and to the log if nobody does.
            _fail(reload, failure)
            raise
        finally:
            if self._reloads.get(place) is reload:
                del self._reloads[place]
            _fail(reload, DatabaseUnavailable())

    async def _read(self, place: PlaceT, policy_version: int) -> PolicySnapshot:
        snapshot = await self._read_now(place)
        if snapshot is None or snapshot.policy_version < policy_version:
            raise SnapshotBehind
        return snapshot

    def _hold(self, place: PlaceT, snapshot: PolicySnapshot) -> None:
        """Make room by forgetting what was loaded longest ago: a hit then costs no bookkeeping."""
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
    """A set of none costs something too."""
    rules = sum(len(policy.rule) for policy in snapshot.policies)
    return rules + _POLICY_CHARACTERS * (len(snapshot.policies) + 1)


def _fail(reload: _Reload, failure: GatewayError | StatementFailed) -> None:
    """Answer whoever still waits."""
    if not reload.answer.done():
        reload.answer.set_exception(failure)
        # Read it once, so that a caller who has left does not make the loop complain.
        reload.answer.exception()
