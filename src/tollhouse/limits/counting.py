"""Where traffic is counted: in Redis over all workers, and in this process while Redis is lost.

Redis can delay a request for a moment, but not fail it.
"""

import asyncio

from tollhouse.limits.errors import CountingLost
from tollhouse.limits.local import LocalCounting
from tollhouse.limits.shared import SharedCounting
from tollhouse.limits.types import Ask, Corrections, Decision


class Counting:
    """One per worker."""

    def __init__(self, local: LocalCounting, shared: SharedCounting | None) -> None:
        self._local = local
        self._shared = shared

    async def count(self, ask: Ask) -> tuple[Decision, bool]:
        """Grant all that is asked for or nothing, and tell whether Redis has decided."""
        if self._shared is not None and self._shared.is_up and (ask.draws or ask.slots):
            try:
                return await self._shared.count(ask), True
            except CountingLost:
                pass
            except asyncio.CancelledError:
                # Granted or not, the caller has gone.
                self._shared.leave(ask)
                raise
        return self._local.count(ask), False

    def hold(self, ask: Ask) -> None:
        """Remember granted slots until they are left, whoever has granted them."""
        self._local.hold(ask)

    def leave(self, ask: Ask, corrections: Corrections, *, are_shared: bool) -> None:
        """Give the slots back, and correct what the same side has granted; nobody waits."""
        self._local.leave(ask)
        if not are_shared:
            self._local.correct(corrections)
        if self._shared is not None:
            self._shared.leave(ask, corrections if are_shared else ())

    async def tend(self) -> None:
        """Renew what is held; see whether Redis is back."""
        if self._shared is not None:
            await self._shared.tend(self._local.held)

    async def close(self) -> None:
        """Hang up."""
        if self._shared is not None:
            await self._shared.close()
