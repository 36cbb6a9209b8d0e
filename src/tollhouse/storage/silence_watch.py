"""Detection of servers that no longer answer, or are no longer the primary.

A frozen machine keeps its connections open, so a statement on one of them would wait for its whole
timeout, and so would the next one on each other connection of the pool.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from tollhouse.storage.connecting import Connector, DatabaseHost, SessionConnection

if TYPE_CHECKING:
    import asyncpg
    from asyncpg.pool import PoolConnectionProxy

    PooledConnection = PoolConnectionProxy[asyncpg.Record]

logger = logging.getLogger("tollhouse.storage")

LOOK_EVERY_SECONDS: Final = 1.0
SUSPECT_AFTER_SECONDS: Final = 2.0
"""A connection that is in use for so long makes the watch ask whether its server still answers."""
FAILED_PROBES_MAX: Final = 2
"""One failure may be a pause of this process."""


class SilenceWatch:
    """Drops the connections of a server that does not answer a new connection either."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._in_use: dict[PooledConnection, float] = {}
        self._failed_probes: dict[DatabaseHost, int] = {}
        self._now = asyncio.get_running_loop().time

    def begin(self, connection: "PooledConnection") -> None:
        """Record that the connection is in use."""
        self._in_use[connection] = self._now()

    def end(self, connection: "PooledConnection") -> None:
        """Record that the connection is no longer in use."""
        self._in_use.pop(connection, None)

    def drop_demoted(self, connection: "PooledConnection") -> None:
        """Drop a connection that may not write, and the idle ones to its host.

        Others that are in use may have another server behind the same address.
        """
        if (host := _host(connection)) is not None:
            connection.terminate()
            self._drop_idle(host, "it is read-only")

    async def look(self) -> None:
        """Probe the servers of connections that are in use for long."""
        suspects = {host for used in self._long_used() if (host := _host(used)) is not None}
        self._failed_probes = {
            host: count for host, count in self._failed_probes.items() if host in suspects
        }
        for host in suspects:
            await self._probe(host)

    def _long_used(self) -> list["PooledConnection"]:
        latest = self._now() - SUSPECT_AFTER_SECONDS
        return [connection for connection, since in self._in_use.items() if since < latest]

    async def _probe(self, host: DatabaseHost) -> None:
        attempt = await self._connector.try_host(host)
        if isinstance(attempt, SessionConnection):
            attempt.terminate()
            self._failed_probes.pop(host, None)
        elif attempt.is_silent or attempt.has_other_role:
            failed = self._failed_probes.get(host, 0) + 1
            self._failed_probes[host] = failed
            if failed >= FAILED_PROBES_MAX:
                self._drop_idle(host, attempt.reason)
                # What has just begun on a silent server would wait for the next two probes.
                lost = list(self._in_use) if attempt.is_silent else self._long_used()
                for connection in lost:
                    if _host(connection) == host:
                        connection.terminate()

    def _drop_idle(self, host: DatabaseHost, reason: str) -> None:
        used = {id(_session(connection)) for connection in self._in_use}
        idle = [
            connection
            for connection in self._connector.open_connections()
            if connection.host == host and id(connection) not in used
        ]
        for connection in idle:
            connection.terminate()
        logger.warning("database_host_lost", extra={"host": str(host), "reason": reason})


def _host(connection: "PooledConnection") -> DatabaseHost | None:
    """Return the host, or None if the pool has taken the connection back."""
    return getattr(connection, "host", None)


def _session(connection: "PooledConnection") -> SessionConnection | None:
    return getattr(connection, "itself", None)
