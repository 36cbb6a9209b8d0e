"""Connections to the primary among the hosts of a database URL.

The driver's own timeout covers all hosts together, so that one frozen host would use all of it.
"""

import ssl
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg
from asyncpg.connect_utils import SessionAttribute

if TYPE_CHECKING:
    _Connection = asyncpg.Connection[asyncpg.Record]
else:
    _Connection = asyncpg.Connection

HOST_SECONDS: Final = 1.0
"""The longest wait for one of several hosts. A URL with a single host has the whole time."""
DEFAULT_PORT: Final = 5432
STATEMENT_CACHE_SIZE: Final = 100
"""Prepared statements of each connection, as many as the driver's default."""
_FAILURES: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseHost:
    """One host of a database URL. Without a name, the driver chooses it."""

    name: str | None
    port: int | None

    def __str__(self) -> str:
        """Return the address for messages."""
        name = f"[{self.name}]" if ":" in (self.name or "") else self.name
        return f"{name or 'its default address'}:{self.port or DEFAULT_PORT}"


@dataclass(frozen=True, kw_only=True, slots=True)
class HostFailure:
    """The reason why one host gave no connection."""

    host: DatabaseHost
    error: Exception
    seconds_max: float
    wants_standby: bool = False

    @property
    def has_other_role(self) -> bool:
        """Whether the host answered, but is not the primary, or not a standby if one is wanted."""
        return isinstance(self.error, asyncpg.TargetServerAttributeNotMatched)

    @property
    def is_silent(self) -> bool:
        """Whether no PostgreSQL server answered at the host."""
        return isinstance(self.error, OSError | TimeoutError) and not self.is_untrusted

    @property
    def is_untrusted(self) -> bool:
        """Whether the host answered, but its certificate was refused."""
        return isinstance(self.error, ssl.SSLCertVerificationError)

    def __str__(self) -> str:
        """Return the host and the reason."""
        return f"{self.host}: {self.reason}"

    @property
    def reason(self) -> str:
        """What happened, in words."""
        if self.has_other_role and self.wants_standby:
            return "it is a primary, not a standby"
        if self.has_other_role:
            return "it is a standby or read-only, not the primary"
        if isinstance(self.error, ssl.SSLCertVerificationError):
            words = self.error.verify_message.rstrip(".")
            return f"its certificate was refused: {words}"
        if isinstance(self.error, TimeoutError):
            return f"no answer within {self.seconds_max:g} s"
        return str(self.error) or type(self.error).__name__


class NoUsableHost(OSError):
    """No host of the URL gave a connection to a server of the wanted role."""

    def __init__(self, failures: list[HostFailure]) -> None:
        super().__init__("; ".join(map(str, failures)))
        self.failures = failures

    @property
    def has_standby(self) -> bool:
        """Whether a host answered, but is not the primary."""
        return any(
            failure.has_other_role and not failure.wants_standby for failure in self.failures
        )

    @property
    def has_untrusted(self) -> bool:
        """Whether a host answered, but its certificate was refused."""
        return any(failure.is_untrusted for failure in self.failures)

    @property
    def sqlstate(self) -> str | None:
        """The code with which a server refused the connection, if one did."""
        codes = (getattr(failure.error, "sqlstate", None) for failure in self.failures)
        return next((code for code in codes if code), None)


class SessionConnection(_Connection):
    """A connection that knows its host.

    It needs no reset on release, because no session state outlives its use.
    """

    host: DatabaseHost

    @property
    def itself(self) -> "SessionConnection":
        """The connection behind the proxy of a pool."""
        return self

    # No query saves a round trip on every release, and a built-in saves a call of Python.
    get_reset_query = staticmethod(str)  # pyright: ignore[reportAssignmentType]


class Connector:
    """Opens connections to the primary or to a standby, and remembers which host it was.

    A host that gave a connection is asked first the next time, one that failed last.
    """

    def __init__(
        self,
        url: str,
        *,
        seconds_max: float,
        statement_seconds: float | None = None,
        session_settings: dict[str, str] | None = None,
        has_prepared_statements: bool = True,
        wants_standby: bool = False,
    ) -> None:
        self._url = url
        self._wants_standby = wants_standby
        self._statement_seconds = statement_seconds
        self._session_settings = session_settings
        self._has_prepared_statements = has_prepared_statements
        self._hosts = hosts_of(url)
        self._open: weakref.WeakSet[SessionConnection] = weakref.WeakSet()
        count = len(self._hosts)
        self._seconds_max = seconds_max if count == 1 else min(HOST_SECONDS, seconds_max / count)
        is_chosen = "target_session_attrs" in parse_qs(urlsplit(url).query)
        wanted = SessionAttribute.standby if wants_standby else SessionAttribute.read_write
        self._target = None if is_chosen else wanted

    async def connect(self, dsn: str | None = None, **pooled: object) -> SessionConnection:
        """Return a connection to the first host in turn that has the wanted role.

        A pool may call it instead of the driver's function; its arguments are already known here.
        Raises `NoUsableHost` with the reason of each host.
        """
        del dsn, pooled
        failures: list[HostFailure] = []
        for host in list(self._hosts):
            attempt = await self.try_host(host)
            if isinstance(attempt, SessionConnection):
                self._move(host, to_front=True)
                return attempt
            self._move(host, to_front=False)
            failures.append(attempt)
        raise NoUsableHost(failures)

    async def try_host(self, host: DatabaseHost) -> SessionConnection | HostFailure:
        """Return a connection to this host, or why there is none."""
        try:
            connection = await asyncpg.connect(
                self._url,
                host=host.name,
                port=host.port,
                timeout=self._seconds_max,
                command_timeout=self._statement_seconds,
                server_settings=self._session_settings,
                statement_cache_size=STATEMENT_CACHE_SIZE if self._has_prepared_statements else 0,
                target_session_attrs=self._target if self._has_prepared_statements else None,
                connection_class=SessionConnection,
            )
            if self._target is not None and not self._has_prepared_statements:
                await _refuse_other_role(connection, wants_standby=self._wants_standby)
        except _FAILURES as error:
            return HostFailure(
                host=host,
                error=_without_frames(error),
                seconds_max=self._seconds_max,
                wants_standby=self._wants_standby,
            )
        connection.host = host
        self._open.add(connection)
        return connection

    def open_connections(self) -> list[SessionConnection]:
        """Return the connections that were opened here and are not closed."""
        return [connection for connection in self._open if not connection.is_closed()]

    def _move(self, host: DatabaseHost, *, to_front: bool) -> None:
        self._hosts.remove(host)
        self._hosts.insert(0 if to_front else len(self._hosts), host)


def _without_frames(error: Exception) -> Exception:
    """Drop what the driver's frames refer to: they refer to the error, and keep a TLS context."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


async def _refuse_other_role(connection: SessionConnection, *, wants_standby: bool) -> None:
    """Do what the driver does for its target, in a transaction: a pooler keeps one server in it."""
    async with connection.transaction():
        is_read_only = await connection.fetchval(
            """
            SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean
            """
        )
    if is_read_only is not wants_standby:
        connection.terminate()
        message = "the server has another role"
        raise asyncpg.TargetServerAttributeNotMatched(message)


def hosts_of(url: str) -> list[DatabaseHost]:
    """Return the hosts of a database URL in their order, without duplicates."""
    listed = urlsplit(url).netloc.rpartition("@")[2]
    found = [_host(spec) for spec in listed.split(",") if spec]
    return list(dict.fromkeys(found)) or [DatabaseHost(name=None, port=None)]


def _host(spec: str) -> DatabaseHost:
    name, separator, port = spec.rpartition(":")
    if not separator or spec.endswith("]"):
        name, port = spec, ""
    return DatabaseHost(
        name=unquote(name.removeprefix("[").removesuffix("]")) or None,
        port=int(port) if port else None,
    )
