"""The deadline of a peer that does not read: without progress its connection is aborted."""

import asyncio
import socket
import struct
from typing import Final

from tollhouse.observability import bound_metrics

CHECKS_PER_DEADLINE: Final = 8
"""How often progress is looked for; a stalled peer is cut at most one check too late."""
CHECK_SECONDS_MAX: Final = 1.0
PROGRESS_BYTES_MIN: Final = 16_384
"""What a peer must take within the deadline. A kernel whose reader stalls takes a few KB more at
its peer's probes; a byte now and then keeps no connection."""
PROGRESS_SHARE: Final = 8
"""And this part of what it has not been sent, so that a long answer is read in bounded time."""
_ACKNOWLEDGED: Final = struct.Struct("=120xQ")
"""Where `struct tcp_info` of Linux has `tcpi_bytes_acked`."""


class WriteDeadline:
    """Watches one connection from `start` until `stop`, and costs nothing outside of that.

    Progress is what the peer acknowledged. The kernel's buffer takes more from ours only when a
    third of it is free, so ours may stand still beside a peer that reads, and shrink beside one
    that does not.
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
        """Begin to watch what the transport has not sent yet.

        A peer that has taken little since the last time goes on with the time that it had left,
        unless that was long ago.
        """
        if self._timer is None:
            if self._loop.time() - self._stopped_at >= self._seconds:
                self._marked = None
            self._mark_progress()
            self._timer = self._loop.call_later(self._check_seconds, self._check)

    def stop(self) -> None:
        """Stop watching: the peer has read, or is gone."""
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
