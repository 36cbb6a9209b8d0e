"""Laying contents out without stopping whoever else is served by the same process."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

MadeT = TypeVar("MadeT")

ON_LOOP_BYTES_MAX = 65_536


class Desk:
    """One content at a time: threads take turns with the event loop, and it must get most."""

    def __init__(self) -> None:
        self._is_free = asyncio.Lock()

    async def make(self, work: Callable[[], MadeT], *, size_bytes: int) -> MadeT:
        """Beside the event loop if there is much to do; whoever leaves does not free the desk."""
        if size_bytes <= ON_LOOP_BYTES_MAX:
            return work()
        await self._is_free.acquire()
        made = asyncio.get_running_loop().run_in_executor(None, work)
        made.add_done_callback(self._done)
        return await asyncio.shield(made)

    def _done(self, made: "asyncio.Future[MadeT]") -> None:
        self._is_free.release()
        if not made.cancelled():
            # Looked at once, so that the loop does not complain of one that nobody awaits.
            made.exception()
