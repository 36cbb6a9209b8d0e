"""A database that goes away, in every way that one can, and comes back."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.storage.tcp_proxy import TcpProxy, proxied
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable

PATIENT_SECONDS = 120.0
IMPATIENT_SECONDS = 4.0
"""Where somebody who does not answer is waited for."""


@pytest.fixture
async def wire(database_url: str) -> AsyncIterator[tuple[str, TcpProxy]]:
    """The database's URL by way of a wire that can be cut, and the wire."""
    async with proxied(database_url) as (url, proxy):
        yield url, proxy


@pytest.fixture
async def remote(wire: tuple[str, TcpProxy]) -> AsyncIterator[Database]:
    """A pool whose connections all go over the wire."""
    opened = await connect(wire[0], patience_seconds=PATIENT_SECONDS)
    yield opened
    wire[1].cut()
    await opened.close()


@pytest.fixture
async def impatient(wire: tuple[str, TcpProxy]) -> AsyncIterator[Database]:
    """The same with little patience."""
    opened = await connect(wire[0], patience_seconds=IMPATIENT_SECONDS)
    yield opened
    wire[1].cut()
    await opened.close()


async def connect(url: str, *, patience_seconds: float) -> Database:
    return await Database.connect(
        url, pool_size=3, acquire_seconds=patience_seconds, statement_seconds=patience_seconds
    )


async def answers(database: Database) -> bool:
    """Whether a transaction and a single statement work."""
    async with database.transaction() as tx:
        await tx.execute("SELECT 1")
    return len(await database.fetch_all("SELECT 1")) == 1


async def test_a_transaction_whose_connection_is_cut_fails_and_the_next_one_works(
    remote: Database, wire: tuple[str, TcpProxy]
) -> None:
    async def lose() -> None:
        async with remote.transaction() as tx:
            wire[1].cut()
            await tx.execute("SELECT 1")

    with pytest.raises(DatabaseUnavailable):
        await lose()
    wire[1].mend()

    assert await answers(remote)
    assert remote.connections_in_use == 0


async def test_a_commit_that_cannot_be_sent_is_a_failure(
    remote: Database, wire: tuple[str, TcpProxy]
) -> None:
    async def lose_at_the_end() -> None:
        async with remote.transaction() as tx:
            await tx.execute("SELECT 1")
            wire[1].cut()

    with pytest.raises(DatabaseUnavailable):
        await lose_at_the_end()
    wire[1].mend()

    assert await answers(remote)


async def test_a_failure_inside_a_block_is_not_hidden_by_a_lost_connection(
    remote: Database, wire: tuple[str, TcpProxy]
) -> None:
    async def fail_and_lose() -> None:
        async with remote.transaction():
            wire[1].cut()
            raise KeyError

    with pytest.raises(KeyError):
        await fail_and_lose()


async def test_connections_that_were_cut_while_idle_are_replaced(
    remote: Database, wire: tuple[str, TcpProxy]
) -> None:
    assert await answers(remote)
    wire[1].cut()

    with pytest.raises(DatabaseUnavailable):
        await answers(remote)
    wire[1].mend()

    assert await answers(remote)


async def test_a_single_statement_over_a_cut_wire_is_an_unavailable_database(
    remote: Database, wire: tuple[str, TcpProxy]
) -> None:
    wire[1].cut()

    with pytest.raises(DatabaseUnavailable):
        await remote.fetch_all("SELECT 1")


@pytest.mark.nightly
async def test_a_network_that_swallows_everything_costs_a_bounded_time(
    impatient: Database, wire: tuple[str, TcpProxy]
) -> None:
    assert await answers(impatient)
    wire[1].block()

    with pytest.raises(DatabaseUnavailable):
        await asyncio.wait_for(answers(impatient), 4 * IMPATIENT_SECONDS)
    wire[1].mend()

    assert await answers(impatient)


async def test_a_session_that_the_server_ends_is_replaced(
    remote: Database, database: Database
) -> None:
    async def be_ended() -> None:
        async with remote.transaction() as tx:
            session = await tx.fetch_value("SELECT pg_backend_pid()")
            await database.fetch_all("SELECT pg_terminate_backend($1, 5000)", session)
            await tx.execute("SELECT 1")

    with pytest.raises(DatabaseUnavailable):
        await be_ended()

    assert await answers(remote)


async def test_a_pool_cannot_be_opened_where_nobody_answers(wire: tuple[str, TcpProxy]) -> None:
    wire[1].cut()
    with pytest.raises(DatabaseUnavailable):
        await connect(wire[0], patience_seconds=PATIENT_SECONDS)

    wire[1].mend()
    wire[1].block()
    connecting = connect(wire[0], patience_seconds=IMPATIENT_SECONDS)
    with pytest.raises(DatabaseUnavailable):
        await asyncio.wait_for(connecting, 4 * IMPATIENT_SECONDS)
