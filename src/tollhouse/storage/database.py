"""The pools, `Transaction` for reading, and `Mutation` for everything that changes something.

This is the only place that begins and commits. Statements are literals: the type checker
refuses a computed one.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, LiteralString, Self

import asyncpg

from tollhouse.base.ids import OrganizationId, RequestId
from tollhouse.storage.errors import (
    ConstraintViolated,
    DatabaseUnavailable,
    LockTimedOut,
    StatementFailed,
)

if TYPE_CHECKING:
    from asyncpg.pool import Pool, PoolConnectionProxy

Row = asyncpg.Record
_Isolation = Literal["read_committed", "repeatable_read"]

_UNREACHABLE = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a session that the server ended amid a statement
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresSystemError,
    asyncpg.TransactionRollbackError,
    asyncpg.ReadOnlySQLTransactionError,
    TimeoutError,
    OSError,
)

# A prepared statement keeps the plan that was made while its table was small. Every statement
# of the gateway's path reads by an index; this keeps the plan right on an empty table too.
SESSION_SETTINGS = {
    "application_name": "tollhouse",
    "timezone": "UTC",
    "enable_seqscan": "off",
    "jit": "off",
    # A worker that froze or vanished in mid-transaction must not keep its locks.
    "idle_in_transaction_session_timeout": "60s",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Actor:
    """Who changes something: an Admin key by its ID, or the operator at the command line."""

    type: str
    id: str | None


OPERATOR = Actor(type="operator", id=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Authority:
    """In whose name a mutation runs. Its instant is the mutation's only notion of now."""

    organization_id: OrganizationId
    actor: Actor
    request_id: RequestId | None
    now: datetime


class PlainConnection(asyncpg.Connection):
    """Session state is never changed outside of a transaction, so there is nothing to reset."""

    def get_reset_query(self) -> str:
        """Save the round trip that the pool would spend on every release."""
        return ""


class Transaction:
    """One consistent look at the database."""

    def __init__(
        self, connection: "PoolConnectionProxy[Row]", *, statement_seconds: float | None = None
    ) -> None:
        self._connection = connection
        self._statement_seconds = statement_seconds

    async def fetch_one(self, sql: LiteralString, *arguments: object) -> Row | None:
        """The first row, or nothing."""
        with translated():
            return await self._connection.fetchrow(sql, *arguments, timeout=self._statement_seconds)

    async def fetch_all(self, sql: LiteralString, *arguments: object) -> list[Row]:
        """All rows; the statement bounds their number."""
        with translated():
            return await self._connection.fetch(sql, *arguments, timeout=self._statement_seconds)

    async def fetch_value(self, sql: LiteralString, *arguments: object) -> Any:  # noqa: ANN401 - a column of any type
        """The first column of the first row."""
        with translated():
            return await self._connection.fetchval(sql, *arguments, timeout=self._statement_seconds)

    async def execute(self, sql: LiteralString, *arguments: object) -> int:
        """Run a statement; returns the number of rows that it touched."""
        with translated():
            status = await self._connection.execute(
                sql, *arguments, timeout=self._statement_seconds
            )
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0


class UnauditedMutation(Exception):
    """Our own bug: a change was about to be committed without its audit row, or with two."""


class Mutation(Transaction):
    """A transaction that changes one organization, and cannot commit unaudited.

    It ends with exactly one audit row, or with the statement that nothing changed.
    """

    def __init__(
        self,
        connection: "PoolConnectionProxy[Row]",
        authority: Authority,
        *,
        statement_seconds: float | None = None,
    ) -> None:
        super().__init__(connection, statement_seconds=statement_seconds)
        self.authority = authority
        self._audited = 0
        self._is_unchanged = False

    @property
    def organization_id(self) -> OrganizationId:
        """The organization that this mutation is about."""
        return self.authority.organization_id

    @property
    def now(self) -> datetime:
        """The instant of the mutation."""
        return self.authority.now

    def note_audited(self) -> None:
        """Called by `storage.audit.record`, and by nothing else."""
        self._audited += 1

    def unchanged(self) -> None:
        """Say that this call found nothing to change, such as a second archive."""
        self._is_unchanged = True

    def check_audited(self) -> None:
        """Refuse to commit a change without its audit row."""
        expected = 0 if self._is_unchanged else 1
        if self._audited != expected:
            message = f"{self._audited} audit rows instead of {expected}"
            raise UnauditedMutation(message)


class Database:
    """A pool of connections, or a part of one.

    A worker has two pools, so that inference never waits for a connection that administration
    uses. `share` bounds one kind of work inside a pool.
    """

    def __init__(
        self,
        pool: "Pool[Row]",
        *,
        acquire_seconds: float,
        statement_seconds: float | None = None,
        permits: asyncio.Semaphore | None = None,
    ) -> None:
        self._pool = pool
        self._acquire_seconds = acquire_seconds
        self._statement_seconds = statement_seconds
        self._permits = permits

    @classmethod
    async def connect(
        cls, url: str, *, pool_size: int, acquire_seconds: float, statement_seconds: float
    ) -> Self:
        """Open the pool; fails at once when the database cannot be reached."""
        with translated():
            pool = await asyncpg.create_pool(
                url,
                min_size=1,
                max_size=pool_size,
                timeout=acquire_seconds,
                command_timeout=statement_seconds,
                server_settings=SESSION_SETTINGS,
                connection_class=PlainConnection,
            )
        return cls(pool, acquire_seconds=acquire_seconds)

    def share(self, *, connections_max: int, statement_seconds: float | None = None) -> "Database":
        """Return a view of this pool that uses at most so many of its connections at once.

        Its statements have their own time bound if one is given. Close the pool, not the view.
        """
        return Database(
            self._pool,
            acquire_seconds=self._acquire_seconds,
            statement_seconds=statement_seconds,
            permits=asyncio.Semaphore(connections_max),
        )

    async def close(self) -> None:
        """Wait for the connections that are in use, then close them all."""
        await self._pool.close()

    @property
    def connections_in_use(self) -> int:
        """For the gauge."""
        return self._pool.get_size() - self._pool.get_idle_size()

    @asynccontextmanager
    async def transaction(
        self, *, statement_seconds: float | None = None
    ) -> AsyncGenerator[Transaction]:
        """Read, or write what is no organization's: leases, heartbeats, use of keys.

        Only maintenance asks for more seconds than the deployment gives to a statement.
        """
        async with self._begun() as connection:
            seconds = statement_seconds or self._statement_seconds
            yield Transaction(connection, statement_seconds=seconds)

    @asynccontextmanager
    async def snapshot(
        self, *, statement_seconds: float | None = None
    ) -> AsyncGenerator[Transaction]:
        """Read as of one instant, however many statements that takes."""
        async with self._begun("repeatable_read", is_read_only=True) as connection:
            seconds = statement_seconds or self._statement_seconds
            yield Transaction(connection, statement_seconds=seconds)

    async def run_outside(self, sql: LiteralString, *, lock_seconds: int) -> None:
        """Run what PostgreSQL refuses inside a transaction; waits only so long for each lock."""
        connection = await self._acquire()
        try:
            with translated():
                await connection.execute(
                    "SELECT set_config('lock_timeout', $1, false)", f"{lock_seconds}s"
                )
                try:
                    await connection.execute(sql)
                finally:
                    await connection.execute("RESET lock_timeout")
        finally:
            await self._give_back(connection)

    @asynccontextmanager
    async def mutation(self, authority: Authority) -> AsyncGenerator[Mutation]:
        """Change one organization; commits on leaving the block, with its audit row."""
        async with self._begun() as connection:
            mutation = Mutation(connection, authority, statement_seconds=self._statement_seconds)
            yield mutation
            mutation.check_audited()

    @asynccontextmanager
    async def _begun(
        self, isolation: _Isolation = "read_committed", *, is_read_only: bool = False
    ) -> AsyncGenerator["PoolConnectionProxy[Row]"]:
        connection = await self._acquire()
        try:
            transaction = connection.transaction(isolation=isolation, readonly=is_read_only)
            with translated():
                await transaction.start()
            try:
                yield connection
            except BaseException:
                with suppress(DatabaseUnavailable), translated():
                    await transaction.rollback()
                raise
            with translated():
                await transaction.commit()
        finally:
            await self._give_back(connection)

    async def _acquire(self) -> "PoolConnectionProxy[Row]":
        """Wait for a permit of this share, if it has permits, then for a connection."""
        with translated():
            if self._permits is not None:
                await asyncio.wait_for(self._permits.acquire(), self._acquire_seconds)
            try:
                return await self._pool.acquire(timeout=self._acquire_seconds)
            except BaseException:
                self._release_permit()
                raise

    async def _give_back(self, connection: "PoolConnectionProxy[Row]") -> None:
        """A connection that cannot be given back is closed by the pool."""
        try:
            with suppress(DatabaseUnavailable), translated():
                await self._pool.release(connection)
        finally:
            self._release_permit()

    def _release_permit(self) -> None:
        if self._permits is not None:
            self._permits.release()

    async def fetch_all(self, sql: LiteralString, *arguments: object) -> Sequence[Row]:
        """One statement in a transaction of its own: a single round trip."""
        connection = await self._acquire()
        try:
            with translated():
                return await connection.fetch(sql, *arguments, timeout=self._statement_seconds)
        finally:
            await self._give_back(connection)


@contextmanager
def translated() -> Generator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except asyncpg.LockNotAvailableError as error:
        raise LockTimedOut from error
    except asyncpg.IntegrityConstraintViolationError as error:
        # Not `from error`: the driver's text repeats the row, and the log must not.
        raise ConstraintViolated(str(error.constraint_name)) from None
    except _UNREACHABLE as error:
        if isinstance(error, ValueError):
            # An argument out of its type's range, which the driver files under its own trouble
            # and repeats in its text, as it does with rows: so neither is passed on.
            message = "an argument does not fit its type"
            raise StatementFailed(message) from None
        raise DatabaseUnavailable from error
    except asyncpg.PostgresError as error:
        message = f"{type(error).__name__} ({error.sqlstate})"
        raise StatementFailed(message, sqlstate=error.sqlstate) from None
