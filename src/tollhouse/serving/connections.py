"""The open connections of one server: their bounds, and which one to close for a new one."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import Final, Protocol

from tollhouse.base.clock import Clock
from tollhouse.observability import bound_metrics
from tollhouse.serving import descriptors

UNSENT_LOOKED_AT_MAX: Final = 64
"""How many idle connections with unsent output are skipped in the search for one to close."""

UNSENT_SECONDS_MAX: Final = 30.0
UNSENT_BYTES_MAX: Final = 65_536
"""If this little of an answer was left unread for so long, the peer does not read it any more."""

LINGER_SECONDS: Final = 2.0
"""How long a peer may go on sending after it was answered."""

IDLE_GRACE_SECONDS: Final = 2
"""How long a drained connection waits for a request that may already be in transit."""

WRITE_BUFFER_BYTES: Final = 32_768
"""With more than this unsent, an application waits until its peer has read."""

PIPELINED_REQUESTS_MAX: Final = 16
"""Requests that wait on one connection for the answer to an earlier one."""

FRAMING_CONTENT_BYTES: Final = 2
"""Bytes of content that allow one byte of framing. A chunk has at least five bytes of framing, so
chunks of ten bytes are allowed; clients send thousands of bytes in one."""

FRAMING_BYTES_MAX: Final = 8192
"""Framing, extensions and trailers that a body may have beyond what its content allows."""

PIECE_BYTES: Final = 8192
"""A head and chunks are parsed in pieces of this size, and counted after each."""

PARTIAL_HEADS_BYTES_MAX: Final = 32 * 1024 * 1024
"""How much memory all incomplete heads of a worker may use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionBounds:
    """Bounds on one connection."""

    header_bytes_max: int
    header_seconds: float
    write_seconds: float


class ConnectionTimer:
    """The timer of one connection. To start it again replaces what it was started for."""

    __slots__ = ("_handle", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._handle is not None

    def start(self, seconds: float, then: Callable[[], None]) -> None:
        """Call `then` after `seconds`."""
        self.stop()
        self._handle = self._loop.call_later(seconds, then)

    def stop(self) -> None:
        """Forget the call."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class Phase(IntEnum):
    """How far a connection is on its way to its end. It only advances."""

    OPEN = auto()
    DRAINING = auto()  # the next answer is the last
    IGNORING = auto()  # what arrives is not parsed any more
    LINGERING = auto()  # all is written, and what arrives is dropped until the peer closes


class Input(Enum):
    """What the next byte belongs to."""

    HEAD = auto()
    BODY = auto()  # of a stated length, or empty
    CHUNKS = auto()


class ClientConnection(Protocol):
    """A connection as `ClientConnections` uses it."""

    transport: asyncio.Transport


class ClientConnections:
    """All open connections.

    A connection is idle while it has no request: before its first one, while it sends a head, and
    while the rest of a refused request is read. It is receiving while the body of its request is
    not complete. Idle ones are ordered by how long they are idle, receiving ones by their last
    byte; the oldest come first.
    """

    def __init__(self, *, connections_max: int, clock: Clock) -> None:
        self._connections_max = connections_max
        self._clock = clock
        self._open: set[ClientConnection] = set()
        self._idle_since: OrderedDict[ClientConnection, float] = OrderedDict()
        self._receiving: OrderedDict[ClientConnection, None] = OrderedDict()
        self._partial_heads: OrderedDict[ClientConnection, int] = OrderedDict()
        self._partial_heads_bytes = 0

    @property
    def is_at_bound(self) -> bool:
        """Whether an idle connection must be closed before another one is accepted.

        Reads the limit of descriptors every time, because it can be changed from outside.
        """
        bound = min(self._connections_max, descriptors.connections_max(descriptors.soft_limit()))
        return len(self._open) >= bound

    @property
    def has_room(self) -> bool:
        """Whether another connection may be accepted."""
        return not self.is_at_bound or self.next_to_close() is not None

    def add(self, connection: ClientConnection) -> None:
        """Add a new connection, as idle."""
        self._open.add(connection)
        self.mark_idle(connection)

    def mark_busy(self, connection: ClientConnection) -> None:
        """Record that a request is complete: only its own deadlines end the connection now."""
        self._idle_since.pop(connection, None)
        self._receiving.pop(connection, None)
        if self._partial_heads:
            self._partial_heads_bytes -= self._partial_heads.pop(connection, 0)

    def mark_receiving(self, connection: ClientConnection) -> None:
        """Record that the head of a request is complete, and its body is not."""
        self._idle_since.pop(connection, None)
        self._receiving.pop(connection, None)
        if self._partial_heads:
            self._partial_heads_bytes -= self._partial_heads.pop(connection, 0)
        if connection in self._open:
            self._receiving[connection] = None

    def record_progress(self, connection: ClientConnection) -> None:
        """Record that a part of the body came: other connections are closed before this one."""
        if connection in self._receiving:
            self._receiving.move_to_end(connection)

    def mark_idle(self, connection: ClientConnection) -> None:
        """Record that the request is answered, and no other has come yet."""
        self._receiving.pop(connection, None)
        if connection in self._open:
            self._idle_since.setdefault(connection, self._clock.monotonic_seconds())

    def set_partial_head(self, connection: ClientConnection, size_bytes: int) -> None:
        """Count an incomplete head, or none. If all take too much memory, close the oldest."""
        if size_bytes == 0:
            self._partial_heads_bytes -= self._partial_heads.pop(connection, 0)
            return
        self._partial_heads_bytes += size_bytes - self._partial_heads.get(connection, 0)
        self._partial_heads[connection] = size_bytes
        while self._partial_heads_bytes > PARTIAL_HEADS_BYTES_MAX:
            self.close(next(iter(self._partial_heads)))

    def remove(self, connection: ClientConnection) -> None:
        """Remove a closed connection."""
        self._open.discard(connection)
        self.mark_busy(connection)

    def next_to_close(self) -> ClientConnection | None:
        """Return the connection to close next, or None if each has a request or reads an answer.

        If none is idle, it is the receiving one that made no progress for longest. A connection
        with a complete request is never closed.
        """
        for _ in range(min(len(self._idle_since), UNSENT_LOOKED_AT_MAX)):
            connection = next(iter(self._idle_since))
            if self._is_closable(connection):
                return connection
            self._idle_since.move_to_end(connection)
        return next(iter(self._receiving), None)

    def close(self, connection: ClientConnection) -> None:
        """Abort a connection. Its descriptor is free in the next turn of the loop."""
        self.remove(connection)
        bound_metrics.idle_connection_closed()
        connection.transport.abort()

    def close_several(self, count: int) -> None:
        """Close up to `count` connections, because the system refuses another descriptor."""
        for _ in range(count):
            if (connection := self.next_to_close()) is not None:
                self.close(connection)

    def _is_closable(self, connection: ClientConnection) -> bool:
        unsent_bytes = connection.transport.get_write_buffer_size()
        if unsent_bytes == 0:
            return True
        idle_seconds = self._clock.monotonic_seconds() - self._idle_since[connection]
        return unsent_bytes <= UNSENT_BYTES_MAX and idle_seconds >= UNSENT_SECONDS_MAX
