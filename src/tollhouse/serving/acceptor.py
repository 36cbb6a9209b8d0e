"""Accepts connections from a listening socket that several workers share, one at a time.

The event loop's own server accepts all waiting connections at once: a burst of connections from a
proxy or a client's pool would go to one worker, and stay there. A worker that is full accepts
several: the turns of its event loop are long, an idle worker would have accepted them meanwhile,
and their callers must not wait to learn that the gateway is overloaded.
"""

import asyncio
import contextlib
import logging
import math
import os
import socket
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from tollhouse.base.tasks import Tasks
from tollhouse.serving.connections import ClientConnections
from tollhouse.serving.load_shedder import LoadShedder

PAUSE_SECONDS: Final = 0.1
"""How long to stop accepting if another connection exceeds a bound or gets no descriptor."""

LOG_SECONDS_MIN: Final = 10.0
"""The least time between two log lines about pauses."""

CLOSED_AT_ONCE: Final = 16
"""How many idle connections are closed when the system refuses a descriptor."""

ACCEPTED_WHEN_FULL: Final = 32
"""How many connections a full worker accepts in one turn of its event loop."""

CLOSING_SECONDS_MAX: Final = 1.0
"""How long a closed acceptor waits for connections that have no protocol yet."""

YIELD_SECONDS: Final = 1e-6
"""Long enough for another worker to wake up: the kernel sleeps for about 60 microseconds.

Measured with two workers: bursts of 20 connections split 20 to 0 without it, 11 to 9 with it.
"""

logger = logging.getLogger("tollhouse.serving")


class AcceptState(Enum):
    """Whether new connections are accepted, and why not."""

    ACCEPTING = auto()
    FULL = auto()  # as many connections as allowed, and none of them is idle
    FAILED = auto()  # the system has no descriptor or memory for another one
    CLOSED = auto()


class Acceptor:
    """Accepts connections for the HTTP server, which uses it as its listening server."""

    def __init__(
        self,
        listener: socket.socket,
        protocol_factory: Callable[[], asyncio.Protocol],
        connections: ClientConnections,
        shedder: LoadShedder,
    ) -> None:
        self._listener = listener
        self._protocol_factory = protocol_factory
        self._connections = connections
        self._shedder = shedder
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        self._state = AcceptState.ACCEPTING
        self._logged_seconds = -math.inf
        listener.setblocking(False)  # noqa: FBT003 - the signature of socket
        self._loop.add_reader(listener, self._accept)

    @property
    def is_accepting(self) -> bool:
        """Whether a new connection would be accepted now."""
        return self._state is AcceptState.ACCEPTING

    def close(self) -> None:
        """Stop accepting. Connections in the queue are left to other workers."""
        self._state = AcceptState.CLOSED
        self._loop.remove_reader(self._listener)

    async def wait_closed(self) -> None:
        """Wait for accepted connections that have no protocol yet."""
        await self._tasks.drain(deadline_seconds=CLOSING_SECONDS_MAX)

    def _accept(self) -> None:
        if self._shedder.is_full and not self._connections.is_at_bound:
            for _ in range(ACCEPTED_WHEN_FULL):
                if not self._accept_one():
                    return
        elif self._accept_one():
            time.sleep(YIELD_SECONDS)

    def _accept_one(self) -> bool:
        """Accept a connection. Return whether there was one."""
        replaced = None
        if self._connections.is_at_bound:
            replaced = self._connections.next_to_close()
            if replaced is None:
                self._pause(AcceptState.FULL, reason="every connection has a request")
                return False
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return False  # another worker accepted it, or the peer has left
        except OSError as error:
            self._connections.close_several(CLOSED_AT_ONCE)
            self._pause(AcceptState.FAILED, reason=str(error))
            return False
        if replaced is not None:
            self._connections.close(replaced)
        connection.setblocking(False)  # noqa: FBT003 - the signature of socket
        self._tasks.start("connection", self._adopt(connection))
        return True

    def _pause(self, state: AcceptState, *, reason: str) -> None:
        now_seconds = self._loop.time()
        if now_seconds - self._logged_seconds >= LOG_SECONDS_MIN:
            self._logged_seconds = now_seconds
            logger.error("accept_paused", extra={"reason": reason})
        self._state = state
        self._loop.remove_reader(self._listener)
        self._loop.call_later(PAUSE_SECONDS, self._try_again)

    def _try_again(self) -> None:
        if self._state is AcceptState.CLOSED:
            return
        if self._can_accept():
            self._state = AcceptState.ACCEPTING
            self._loop.add_reader(self._listener, self._accept)
        else:
            self._loop.call_later(PAUSE_SECONDS, self._try_again)

    def _can_accept(self) -> bool:
        if self._state is AcceptState.FULL:
            return self._connections.has_room
        try:
            os.close(os.dup(self._listener.fileno()))
        except OSError:
            self._connections.close_several(CLOSED_AT_ONCE)
            return False
        return True

    async def _adopt(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the peer has left
            await self._loop.connect_accepted_socket(self._protocol_factory, connection)
