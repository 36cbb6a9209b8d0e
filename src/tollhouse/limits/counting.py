"""Where traffic is counted: in Redis over all workers, and in this process while Redis is lost.

Redis can delay a request for a moment, but not fail it.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from tollhouse.limits.errors import CountingLost
from tollhouse.limits.local import LocalCounting
from tollhouse.limits.shared import SharedCounting
from tollhouse.limits.types import Ask, Decision, Draw


class Correctable(Protocol):
    """Whoever granted tokens, and is told what was used of them."""

    def correct(self, corrections: Sequence[tuple[Draw, int]]) -> None:
        """Take more from buckets, or give back."""
        ...


class Counting:
    """One per worker."""

    def __init__(self, local: LocalCounting, shared: SharedCounting | None) -> None:
        self._local = local
        self._shared = shared

    async def count(self, ask: Ask) -> tuple[Decision, Correctable]:
        """Grant all that is asked for or nothing, and tell who has."""
        if self._shared is not None and self._shared.is_up and (ask.draws or ask.slots):
            try:
                return await self._shared.count(ask), self._shared
            except CountingLost:
                pass
            except asyncio.CancelledError:
                # Granted or not, the caller has gone.
                self._shared.leave(ask)
                raise
        return self._local.count(ask), self._local

    def hold(self, ask: Ask) -> None:
        """Remember granted slots until they are left, whoever has granted them."""
        self._local.hold(ask)

    def leave(self, ask: Ask) -> None:
        """Give the slots back; nobody waits."""
        self._local.leave(ask)
        if self._shared is not None:
            self._shared.leave(ask)

    async def tend(self) -> None:
        """Renew what is held; see whether Redis is back."""
        if self._shared is not None:
            await self._shared.tend(self._local.held)

    async def close(self) -> None:
        """Hang up."""
        if self._shared is not None:
            await self._shared.close()
