"""Several hosts in the database's URL: frozen, dead, standing by, demoted; the primary is found."""

import asyncio
import gc
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest
import pytest_asyncio

from tests.storage.cluster import Cluster, running_cluster, running_standby
from tollhouse.storage import migrate
from tollhouse.storage.connecting import (
    Connector,
    DatabaseHost,
    HostFailure,
    NoUsableHost,
    SessionConnection,
    hosts_of,
)
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable

BACK_SECONDS_MAX = 5.0
ATTEMPTS = 20
ACQUIRE_SECONDS = 5.0
STATEMENT_SECONDS = 60.0
"""Longer than any test may take: no statement here is ended by its own timeout."""


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def pair() -> AsyncIterator[tuple[Cluster, Cluster]]:
    """A primary and its standby, which no test promotes or stops."""
    async with running_cluster() as primary, running_standby(primary) as standby:
        yield primary, standby


@pytest.fixture
def cluster(pair: tuple[Cluster, Cluster]) -> Cluster:
    return pair[0]


@pytest.fixture
def standby(pair: tuple[Cluster, Cluster]) -> Cluster:
    return pair[1]


@pytest.fixture
def frozen() -> Iterator[DatabaseHost]:
    """A host that accepts connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield DatabaseHost(name="127.0.0.1", port=listener.getsockname()[1])


@pytest.fixture
def dead() -> DatabaseHost:
    """A host on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return DatabaseHost(name="127.0.0.1", port=listener.getsockname()[1])


def host_of(cluster: Cluster) -> DatabaseHost:
    return DatabaseHost(name="127.0.0.1", port=cluster.port)


def url_of(*hosts: DatabaseHost, role: str = "postgres", options: str = "") -> str:
    return f"postgresql://{role}@{','.join(map(str, hosts))}/postgres{options}"


def connector(*hosts: DatabaseHost, options: str = "") -> Connector:
    return Connector(url_of(*hosts, options=options), seconds_max=ACQUIRE_SECONDS)


async def connected_host(opened: Connector) -> DatabaseHost:
    connection = await opened.connect()
    connection.terminate()
    return connection.host


async def failures(opened: Connector) -> list[str]:
    with pytest.raises(NoUsableHost) as refused:
        await opened.connect()
    assert str(refused.value) == "; ".join(map(str, refused.value.failures))
    return [str(failure) for failure in refused.value.failures]


async def pool(*hosts: DatabaseHost, size: int = 3) -> Database:
    return await Database.connect(
        url_of(*hosts),
        pool_size=size,
        acquire_seconds=ACQUIRE_SECONDS,
        statement_seconds=STATEMENT_SECONDS,
    )


async def fill(database: Database, *, size: int = 3) -> None:
    """Open all connections of the pool."""
    await asyncio.gather(*(database.fetch_all("SELECT pg_sleep(0.1)") for _ in range(size)))


async def seconds_until_written(database: Database) -> float:
    """Write as the ledger does: a failed statement is sent again."""
    begun = time.monotonic()
    async with asyncio.timeout(STATEMENT_SECONDS / 2):
        while True:
            try:
                await database.fetch_all("CREATE TABLE IF NOT EXISTS written (one integer)")
            except DatabaseUnavailable:
                await asyncio.sleep(0.05)
            else:
                return time.monotonic() - begun


async def server_ports(database: Database) -> set[int]:
    """The port of the server behind every connection of the pool."""
    asked = (database.fetch_all("SELECT inet_server_port(), pg_sleep(0.1)") for _ in range(3))
    return {rows[0][0] for rows in await asyncio.gather(*asked)}


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def tls_contexts() -> int:
    return sum(isinstance(held, ssl.SSLContext) for held in gc.get_objects())


@pytest.mark.usefixtures("no_collection")
async def test_failed_attempts_keep_nothing_in_memory_until_a_collection(
    dead: DatabaseHost,
) -> None:
    opened, before = connector(dead), tls_contexts()

    for _ in range(ATTEMPTS):
        with suppress(NoUsableHost):
            await opened.connect()

    # Others in this process may open one meanwhile.
    assert tls_contexts() < before + ATTEMPTS // 2


async def test_the_reason_of_a_failed_attempt_refers_to_no_frame(dead: DatabaseHost) -> None:
    attempt = await connector(dead).try_host(dead)

    assert isinstance(attempt, HostFailure)
    assert attempt.error.__traceback__ is None
    assert attempt.error.__context__ is None


@pytest.mark.clock
async def test_a_frozen_first_host_costs_one_second_and_is_asked_last_afterwards(
    cluster: Cluster, frozen: DatabaseHost
) -> None:
    opened = connector(frozen, host_of(cluster))

    begun = time.monotonic()
    first = await connected_host(opened)
    between = time.monotonic()
    second = await connected_host(opened)
    end = time.monotonic()

    assert first == second == host_of(cluster)
    assert 1.0 <= between - begun < 2.0
    assert end - between < 1.0


async def test_a_dead_host_and_a_standby_are_passed_over(
    cluster: Cluster, standby: Cluster, dead: DatabaseHost
) -> None:
    opened = connector(dead, host_of(standby), host_of(cluster))

    assert await connected_host(opened) == host_of(cluster)


async def test_the_error_names_each_host_and_its_reason(
    standby: Cluster, frozen: DatabaseHost, dead: DatabaseHost
) -> None:
    told = await failures(connector(frozen, dead, host_of(standby)))

    assert told[0] == f"{frozen}: no answer within 1 s"
    assert told[1].startswith(f"{dead}: ")
    assert "refused" in told[1] or "Connect call failed" in told[1]
    assert told[2] == f"{host_of(standby)}: it is a standby or read-only, not the primary"


async def test_a_single_standby_is_refused_unless_the_url_asks_for_it(standby: Cluster) -> None:
    chosen = connector(host_of(standby), options="?target_session_attrs=any")

    assert await connected_host(chosen) == host_of(standby)
    assert len(await failures(connector(host_of(standby)))) == 1


def test_a_host_whose_certificate_is_refused_is_not_silent(dead: DatabaseHost) -> None:
    """Else a renewed certificate would end the statements that run there."""
    attempts = [
        HostFailure(host=dead, error=error, seconds_max=1.0)
        for error in (ssl.SSLCertVerificationError("refused"), ConnectionRefusedError("refused"))
    ]

    assert [attempt.is_silent for attempt in attempts] == [False, True]


async def test_a_refused_login_is_an_unavailable_database_that_keeps_its_code(
    cluster: Cluster,
) -> None:
    opened = Connector(url_of(host_of(cluster), role="stranger"), seconds_max=ACQUIRE_SECONDS)

    with pytest.raises(NoUsableHost) as refused:
        await opened.connect()
    with pytest.raises(DatabaseUnavailable):
        await Database.connect(
            url_of(host_of(cluster), role="stranger"),
            pool_size=1,
            acquire_seconds=ACQUIRE_SECONDS,
            statement_seconds=ACQUIRE_SECONDS,
        )

    assert refused.value.sqlstate == "28000"


async def make_read_only(cluster: Cluster) -> None:
    await cluster.execute("ALTER SYSTEM SET default_transaction_read_only = on")
    await cluster.execute("SELECT pg_reload_conf()")


@pytest.mark.nightly
@pytest.mark.clock
async def test_a_pool_leaves_a_frozen_server_and_one_that_became_read_only() -> None:
    async with running_cluster() as first, running_standby(first) as second:
        database = await pool(host_of(first), host_of(second))
        try:
            await fill(database)
            with first.frozen():
                waiting = [asyncio.create_task(seconds_until_written(database)) for _ in range(3)]
                await second.promote()
                seconds = await asyncio.gather(*waiting)
                after_the_freeze = await server_ports(database)
            await make_read_only(second)
            await seconds_until_written(database)
            after_the_demotion = await server_ports(database)
        finally:
            await database.close()

    assert after_the_freeze == {second.port}
    assert max(seconds) < BACK_SECONDS_MAX + 2.0
    assert after_the_demotion == {first.port}


@pytest.mark.clock
async def test_a_long_statement_on_a_server_that_answers_is_left_alone(cluster: Cluster) -> None:
    database = await pool(host_of(cluster))
    try:
        rows = await database.fetch_all("SELECT pg_sleep(6), 1 AS one")
    finally:
        await database.close()

    assert rows[0]["one"] == 1


async def test_migrations_find_the_primary(cluster: Cluster, standby: Cluster) -> None:
    assert await migrate.migrate(url_of(host_of(standby), host_of(cluster)))


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://a@one:1,two/x", [("one", 1), ("two", None)]),
        ("postgresql://a:p%2Fq@[::1]:5433,[::2]/x?ssl=off", [("::1", 5433), ("::2", None)]),
        ("postgresql://%2Frun%2Fpostgresql/x", [("/run/postgresql", None)]),
        ("postgresql:///x", [(None, None)]),
        ("postgresql://one,one/x", [("one", None)]),
    ],
)
def test_hosts_are_read_from_the_url(url: str, hosts: list[tuple[str | None, int | None]]) -> None:
    assert [(host.name, host.port) for host in hosts_of(url)] == hosts


async def test_the_connector_gives_connections_that_know_their_host(cluster: Cluster) -> None:
    opened = connector(host_of(cluster))

    connection = await opened.connect()

    assert isinstance(connection, SessionConnection)
    assert opened.open_connections() == [connection]
    connection.terminate()
    assert opened.open_connections() == []
