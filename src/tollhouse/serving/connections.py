"""The connections of one server: how many may be open, and which one to close for a new one."""

import asyncio
from collections import OrderedDict
from typing import Final, Protocol

from tollhouse.base.clock import Clock
from tollhouse.observability import bound_metrics
from tollhouse.serving import descriptors

UNSENT_LOOKED_AT_MAX: Final = 64
"""Idle connections with unsent output that are passed over to find one that can be closed."""

UNSENT_SECONDS_MAX: Final = 30.0
UNSENT_BYTES_MAX: Final = 65_536
"""An end of an answer that is this short and was not read for so long will not be read."""

PARTIAL_HEADS_BYTES_MAX: Final = 32 * 1024 * 1024
"""What all heads that are still being received may take of a worker's memory."""


class Connection(Protocol):
    """What the server knows of a connection."""

    transport: asyncio.Transport


class Connections:
    """All open connections. Those without a request are ordered, the longest idle first.

    A connection is idle while it has no request: also before its first one, while it sends a head,
    and after its last one, until all of a refused request was read. It is receiving while the body
    of its request is not complete; of these the one whose last byte came first is the first.
    """

    def __init__(self, *, connections_max: int, clock: Clock) -> None:
        self._connections_max = connections_max
        self._clock = clock
        self._open: set[Connection] = set()
        self._idle_since: OrderedDict[Connection, float] = OrderedDict()
        self._receiving: OrderedDict[Connection, None] = OrderedDict()
        self._partial_heads: OrderedDict[Connection, int] = OrderedDict()
        self._partial_heads_bytes = 0

    @property
    def is_at_bound(self) -> bool:
        """Whether another connection may only be accepted in exchange for an idle one.

        The limit of descriptors is read every time: it can be changed from outside.
        """
        bound = min(self._connections_max, descriptors.connections_max(descriptors.soft_limit()))
        return len(self._open) >= bound

    @property
    def has_room(self) -> bool:
        """Whether another connection may be accepted."""
        return not self.is_at_bound or self.next_to_close() is not None

    def add(self, connection: Connection) -> None:
        """Count a new connection, which is idle."""
        self._open.add(connection)
        self.mark_idle(connection)

    def mark_busy(self, connection: Connection) -> None:
        """A request is complete: from here on only its own deadlines end the connection."""
        self._idle_since.pop(connection, None)
        self._receiving.pop(connection, None)
        self._partial_heads_bytes -= self._partial_heads.pop(connection, 0)

    def mark_receiving(self, connection: Connection) -> None:
        """A request's head has come, and its body is awaited."""
        self.mark_busy(connection)
        if connection in self._open:
            self._receiving[connection] = None

    def record_progress(self, connection: Connection) -> None:
        """Some of the body has come: others are closed before this one."""
        if connection in self._receiving:
            self._receiving.move_to_end(connection)

    def mark_idle(self, connection: Connection) -> None:
        """The request is answered, and no other has come yet."""
        self._receiving.pop(connection, None)
        if connection in self._open:
            self._idle_since.setdefault(connection, self._clock.monotonic_seconds())

    def set_partial_head(self, connection: Connection, size_bytes: int) -> None:
        """Count a head that is not complete; if all of them are too large, close the oldest."""
        self._partial_heads_bytes += size_bytes - self._partial_heads.get(connection, 0)
        self._partial_heads[connection] = size_bytes
        while self._partial_heads_bytes > PARTIAL_HEADS_BYTES_MAX:
            self.close(next(iter(self._partial_heads)))

    def remove(self, connection: Connection) -> None:
        """Forget a connection that is closed."""
        self._open.discard(connection)
        self.mark_busy(connection)

    def next_to_close(self) -> Connection | None:
        """Return the connection to close next, or None if each has a request or reads an answer.

        Without an idle one it is the one whose body has made no progress for longest: a body that
        does not come costs its sender nothing. A complete request is never cut.
        """
        for _ in range(min(len(self._idle_since), UNSENT_LOOKED_AT_MAX)):
            connection = next(iter(self._idle_since))
            if self._is_closable(connection):
                return connection
            self._idle_since.move_to_end(connection)
        return next(iter(self._receiving), None)

    def close(self, connection: Connection) -> None:
        """Close a connection to make room; its descriptor is free in the next turn."""
        self.remove(connection)
        bound_metrics.idle_connection_closed()
        connection.transport.abort()

    def close_several(self, count: int) -> None:
        """Close up to `count` connections, because the system refuses another descriptor."""
        for _ in range(count):
            if (connection := self.next_to_close()) is not None:
                self.close(connection)

    def _is_closable(self, connection: Connection) -> bool:
        unsent_bytes = connection.transport.get_write_buffer_size()
        if unsent_bytes == 0:
            return True
        idle_seconds = self._clock.monotonic_seconds() - self._idle_since[connection]
        return unsent_bytes <= UNSENT_BYTES_MAX and idle_seconds >= UNSENT_SECONDS_MAX
