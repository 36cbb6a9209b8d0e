"""Connections to the Redis servers that count: redis-py says which and how, our reader reads.

Every answer that limits need is one line. The library's client takes several times the calls of
Python for it (decision 0041).
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from ssl import SSLContext
from typing import Any, Final, Protocol, cast

from redis.asyncio import Redis, Sentinel
from redis.asyncio.cluster import ClusterNode, NodesManager
from redis.asyncio.connection import Connection, ConnectionPool, SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import REDIS_CLUSTER_HASH_SLOTS as HASH_SLOTS
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, RedisClusterException

from tollhouse.base.redis_url import RedisMode, RedisUrl
from tollhouse.limits.commands import words

LINE_BYTES_MAX: Final = 65_536
DISCOVERY_SECONDS: Final = 1.0
"""How long one Sentinel or node is waited for."""

Address = tuple[str, int]
"""A host and a port."""


class RedisTransport(Protocol):
    """The part of an asyncio transport that is used here."""

    def write(self, data: bytes) -> None:
        """Send commands, without waiting."""
        ...

    def abort(self) -> None:
        """Close the connection at once; no more answers are read."""
        ...


class AnswerReader(asyncio.Protocol):
    """Passes on the lines of Redis's answers, and the end of the connection.

    Scripts answer with a status or an error, and each of these is one line.
    """

    def __init__(
        self,
        received: Callable[[list[bytes]], None],
        closed: Callable[["AnswerReader", BaseException | None], None],
    ) -> None:
        self._received = received
        self._closed = closed
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        """Pass on the lines that are complete."""
        lines = (self._rest + data).split(b"\r\n")
        self._rest = lines.pop()
        if len(self._rest) > LINE_BYTES_MAX:
            self._closed(self, InvalidResponse("The answer of Redis is too long."))
        else:
            self._received(lines)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Pass on that the connection has ended."""
        self._closed(self, exc)


Connect = Callable[[str, AnswerReader], Awaitable[RedisTransport]]
"""Opens a connection to a URL."""


async def connect(url: str, reader: AnswerReader) -> RedisTransport:
    """Open a connection whose answers go to `reader`. Its first commands are `greeting(url)`."""
    described = _described(url)
    context: SSLContext | None = None
    if isinstance(described, SSLConnection):
        context = cast("SSLContext", described.ssl_context.get())  # pyright: ignore[reportUnknownMemberType] - theirs
    transport, _ = await asyncio.get_running_loop().create_connection(
        lambda: reader, described.host, described.port, ssl=context
    )
    opened: socket.socket = transport.get_extra_info("socket")
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, int(described.socket_keepalive))
    return transport


def greeting(url: str) -> list[str]:
    """Return the commands with which a connection tells its user, name and database."""
    described = _described(url)
    credentials = [described.password or ""]
    if described.username:
        credentials.insert(0, described.username)
    commands = [words("AUTH", *credentials)] if any(credentials) else []
    if described.client_name:
        commands.append(words("CLIENT", "SETNAME", described.client_name))
    return [*commands, words("SELECT", described.db)] if described.db else commands


async def masters(url: RedisUrl, known: Iterable[Address] = ()) -> Mapping[Address, Sequence[int]]:
    """Return the address of each master, with its hash slots. Raises RedisError if some have none.

    `known` are nodes of a cluster to ask beside those of the URL.
    """
    match url.mode:
        case RedisMode.SINGLE:
            return {url.hosts[0]: range(HASH_SLOTS)}
        case RedisMode.SENTINEL:
            async with Sentinel(()) as sentinels:
                sentinels.sentinels = [client(member) for member in url.members]
                return {await sentinels.discover_master(url.service): range(HASH_SLOTS)}
        case RedisMode.CLUSTER:
            return await _owners(url, known)


def client(url: str, seconds: float = DISCOVERY_SECONDS) -> Any:  # noqa: ANN401 - half typed
    """Return a client of one server, Sentinel or node that does not repeat what fails."""
    return Redis.from_url(url, **_options(seconds))  # pyright: ignore[reportUnknownMemberType] - theirs


async def _owners(url: RedisUrl, known: Iterable[Address]) -> Mapping[Address, Sequence[int]]:
    options: dict[str, Any] = {**parse_url(url.members[0]), **_options(DISCOVERY_SECONDS)}
    for name in ("host", "port", "db"):
        options.pop(name, None)
    nodes = [ClusterNode(*address, **options) for address in {*url.hosts, *known}]
    cluster = NodesManager(nodes, require_full_coverage=True, connection_kwargs=options)
    owned: dict[Address, list[int]] = {}
    try:
        await cluster.initialize()
        for slot, (master, *_) in cluster.slots_cache.items():
            owned.setdefault((master.host, int(master.port)), []).append(slot)
    except RedisClusterException as failure:
        raise RedisConnectionError(str(failure)) from None
    finally:
        await cluster.aclose("startup_nodes")
        await cluster.aclose()
    return owned


def _options(seconds: float) -> dict[str, Any]:
    return {
        "protocol": 2,
        "retry": Retry(NoBackoff(), 0),
        "socket_connect_timeout": seconds,
        "socket_timeout": seconds,
    }


def _described(url: str) -> Connection:
    """Return a connection of the library, not opened, for what it reads from a URL."""
    return cast("Connection", ConnectionPool.from_url(url).make_connection())  # pyright: ignore[reportUnknownMemberType] - theirs
