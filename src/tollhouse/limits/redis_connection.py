"""Connections to the Redis servers that count: redis-py says which and how, our reader reads.

Every answer that limits need is one line. The library's client takes several times the calls of
Python for it (decision 0041).
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from ssl import SSLContext
from typing import Any, Final, Protocol, cast

from redis.asyncio import Redis
from redis.asyncio.connection import Connection, ConnectionPool, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import REDIS_CLUSTER_HASH_SLOTS as HASH_SLOTS
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, RedisError

from tollhouse.base.redis_url import RedisMode, RedisUrl
from tollhouse.limits.commands import words

LINE_BYTES_MAX: Final = 65_536
DISCOVERY_SECONDS: Final = 1.0
"""How long one Sentinel or node is waited for."""

Address = tuple[str, int]
"""A host and a port."""
NOBODY: Final = (-1, ("", 0))
"""The epoch and the address of the master of a slot that has none."""


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

    All Sentinels or nodes are asked, because one that is cut off still names a master of the past:
    the highest epoch counts. `known` are nodes of a cluster to ask beside those of the URL.
    """
    if url.mode is RedisMode.SINGLE:
        return {url.hosts[0]: range(HASH_SLOTS)}
    asked = dict(zip(url.hosts, url.members, strict=True))
    question = ("SENTINEL MASTER", url.service)
    if url.mode is RedisMode.CLUSTER:
        asked |= {address: url.server(*address) for address in known}
        question = ("CLUSTER NODES",)
    answers = await asyncio.gather(*(ask(*each, *question) for each in asked.items()))
    current: list[tuple[int, Address]] = [NOBODY] * HASH_SLOTS
    for asked_at, answer in zip(asked, answers, strict=True):
        if not isinstance(answer, str):
            for epoch, master, slots in _claims(url, asked_at, answer):
                for slot in slots:
                    current[slot] = max(current[slot], (epoch, master))
    if missing := current.count(NOBODY):
        failures = [answer for answer in answers if isinstance(answer, str)]
        reason = f"{missing} of {HASH_SLOTS} hash slots have no master"
        raise RedisConnectionError("; ".join(failures) or reason)
    owned: dict[Address, list[int]] = {}
    for slot, (_, master) in enumerate(current):
        owned.setdefault(master, []).append(slot)
    return owned


def _claims(
    url: RedisUrl, asked_at: Address, answer: dict[str, Any]
) -> Iterator[tuple[int, Address, range]]:
    """Yield epoch, address and hash slots of each master that a Sentinel or node knows."""
    if url.mode is RedisMode.SENTINEL:
        yield answer["config-epoch"], (answer["ip"], answer["port"]), range(HASH_SLOTS)
        return
    for place, node in answer.items():
        flags = node["flags"].split(",")
        if "master" in flags and "noaddr" not in flags:
            # Certificates name hosts, if nodes announce them; a node may not know its own address.
            name = node["hostname"] if url.is_encrypted and "=" not in node["hostname"] else ""
            host, _, port = place.rpartition(":")
            for first, *last in node["slots"]:
                slots = range(int(first), int((last or [first])[0]) + 1)
                yield int(node["epoch"]), (name or host or asked_at[0], int(port)), slots


async def ask(
    address: Address,
    url: str,
    *words: str,
    seconds: float = DISCOVERY_SECONDS,
) -> dict[str, Any] | str:
    """Return what a server or Sentinel answers, or its address and why it does not."""
    shown = f"{address[0]}:{address[1]}"
    asked: Any = Redis.from_url(url, **_options(seconds))  # pyright: ignore[reportUnknownMemberType] - theirs
    try:
        async with asyncio.timeout(seconds):
            return await asked.execute_command(*words)
    except TimeoutError:
        return f"{shown}: no answer within {seconds:g} s"
    except (RedisError, OSError) as failure:
        return f"{shown}: {failure}"
    finally:
        await asked.aclose()


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
