"""Aborts the connection of a peer that does not read."""

import asyncio
import socket
import struct
from typing import Final

from tollhouse.observability import bound_metrics

CHECKS_PER_DEADLINE: Final = 8
"""How often progress is checked. A stalled peer is cut off at most one check too late."""
CHECK_SECONDS_MAX: Final = 1.0
PROGRESS_BYTES_MIN: Final = 16_384
"""What a peer must read within the deadline. The kernel of a stalled reader still accepts a few KB
with each window probe, which must not count as progress."""
PROGRESS_SHARE: Final = 8
"""And this part of what is unsent (1 in 8), so that a long answer is read in bounded time."""
_ACKNOWLEDGED: Final = struct.Struct("=120xQ")
"""The offset of `tcpi_bytes_acked` in `struct tcp_info` of Linux."""


class WriteDeadline:
    """Checks the progress of one connection between `start` and `stop`.

    Progress is counted in bytes that the peer acknowledged. The size of our own write buffer says
    little: the kernel takes more from it only when a third of the kernel's buffer is free.
    """

    __slots__ = (
        "_check_seconds",
        "_loop",
        "_marked",
        "_needed",
        "_seconds",
        "_since",
        "_stopped_at",
        "_timer",
        "_transport",
    )

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, *, seconds: float
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._seconds = seconds
        self._check_seconds = min(CHECK_SECONDS_MAX, seconds / CHECKS_PER_DEADLINE)
        self._timer: asyncio.TimerHandle | None = None
        self._marked: int | None = None
        self._needed = PROGRESS_BYTES_MIN
        self._since = 0.0
        self._stopped_at = 0.0

    def start(self) -> None:
        """Start the checks.

        If the peer has read little since the last `stop`, and that was not long ago, it only has
        the time that was left then.
        """
        if self._timer is None:
            if self._loop.time() - self._stopped_at >= self._seconds:
                self._marked = None
            self._mark_progress()
            self._timer = self._loop.call_later(self._check_seconds, self._check)

    def stop(self) -> None:
        """Stop the checks: the peer has read, or is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._stopped_at = self._loop.time()

    def _mark_progress(self) -> None:
        acknowledged = self._acknowledged_bytes()
        if self._marked is None or acknowledged - self._marked >= self._needed:
            unsent = self._transport.get_write_buffer_size()
            self._needed = max(PROGRESS_BYTES_MIN, unsent // PROGRESS_SHARE)
            self._marked = acknowledged
            self._since = self._loop.time()

    def _acknowledged_bytes(self) -> int:
        opened: socket.socket = self._transport.get_extra_info("socket")
        known = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED.size)
        return _ACKNOWLEDGED.unpack(known)[0]

    def _check(self) -> None:
        self._mark_progress()
        if self._loop.time() - self._since >= self._seconds:
            self._timer = None
            bound_metrics.reader_cut("stalled")
            self._transport.abort()
            return
        self._timer = self._loop.call_later(self._check_seconds, self._check)
