"""Connection pools, `Transaction` for reads, and `Mutation` for audited changes.

Apart from migrations, only this module begins and commits transactions. Statements are literals:
the type checker refuses a computed one.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, LiteralString, Self

import asyncpg

from tollhouse.base.ids import OrganizationId, RequestId
from tollhouse.base.tasks import Tasks
from tollhouse.storage.connecting import Connector, SessionConnection
from tollhouse.storage.driver_errors import TranslatedErrors
from tollhouse.storage.errors import DatabaseUnavailable, LockTimedOut
from tollhouse.storage.silence_watch import LOOK_EVERY_SECONDS, SilenceWatch

if TYPE_CHECKING:
    from asyncpg.pool import Pool, PoolConnectionProxy

Row = asyncpg.Record
_Isolation = Literal["read_committed", "repeatable_read"]

# A prepared statement keeps the plan that was made while its table was small, which may be a
# sequential scan. Every statement of a request can use an index, so those scans are disabled.
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
    """The author of a change: an Admin key or a person by ID, or the operator, who has no ID.

    Only a person has a name.
    """

    type: str
    id: str | None
    name: str | None = None


OPERATOR = Actor(type="operator", id=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Authority:
    """The organization, author, request and time of a mutation."""

    organization_id: OrganizationId
    actor: Actor
    request_id: RequestId | None
    now: datetime


class Transaction:
    """Runs statements in one transaction."""

    def __init__(
        self, connection: "PoolConnectionProxy[Row]", *, statement_seconds: float | None = None
    ) -> None:
        self._connection = connection
        self._statement_seconds = statement_seconds

    async def fetch_one(self, sql: LiteralString, *arguments: object) -> Row | None:
        """Return the first row, or None."""
        with TranslatedErrors():
            return await self._connection.fetchrow(sql, *arguments, timeout=self._statement_seconds)

    async def fetch_all(self, sql: LiteralString, *arguments: object) -> list[Row]:
        """Return all rows; the statement must bound their number."""
        with TranslatedErrors():
            return await self._connection.fetch(sql, *arguments, timeout=self._statement_seconds)

    async def fetch_value(self, sql: LiteralString, *arguments: object) -> Any:  # noqa: ANN401 - a column of any type
        """Return the first column of the first row, or None if there is no row."""
        with TranslatedErrors():
            return await self._connection.fetchval(sql, *arguments, timeout=self._statement_seconds)

    async def stream(
        self, sql: LiteralString, *arguments: object, rows_at_once: int
    ) -> AsyncGenerator[list[Row]]:
        """Yield all rows of a statement, `rows_at_once` in each list, from a cursor."""
        with TranslatedErrors():
            cursor = await self._connection.cursor(sql, *arguments, timeout=self._statement_seconds)
            while rows := await cursor.fetch(rows_at_once, timeout=self._statement_seconds):
                yield rows

    async def execute(self, sql: LiteralString, *arguments: object) -> int:
        """Run a statement; return the number of affected rows."""
        with TranslatedErrors():
            status = await self._connection.execute(
                sql, *arguments, timeout=self._statement_seconds
            )
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0


class UnauditedMutation(Exception):
    """A bug in Tollhouse: a change was about to commit without its audit row, or with two."""


class Mutation(Transaction):
    """A transaction that changes one organization, and cannot commit unaudited.

    It must either write exactly one audit row, or call `unchanged` and write none.
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
        """The organization that this mutation changes."""
        return self.authority.organization_id

    @property
    def now(self) -> datetime:
        """The time of the mutation, which all its changes use."""
        return self.authority.now

    def note_audited(self) -> None:
        """Count an audit row. Only `storage.audit.record` calls this."""
        self._audited += 1

    def unchanged(self) -> None:
        """Declare that there was nothing to change, such as on a second archive."""
        self._is_unchanged = True

    @asynccontextmanager
    async def another(self) -> AsyncGenerator[Self]:
        """Begin another change in this transaction, which has an audit row of its own."""
        mutation = type(self)(
            self._connection, self.authority, statement_seconds=self._statement_seconds
        )
        yield mutation
        mutation.check_audited()

    def check_audited(self) -> None:
        """Raise `UnauditedMutation` unless the number of audit rows is the expected one."""
        expected = 0 if self._is_unchanged else 1
        if self._audited != expected:
            message = f"{self._audited} audit rows instead of {expected}"
            raise UnauditedMutation(message)


class Mutations:
    """Several changes of one organization in one transaction, each with its audit row."""

    def __init__(self, new_mutation: Callable[[], Mutation]) -> None:
        self._new_mutation = new_mutation

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[Mutation]:
        """Begin one of the changes. Raises `UnauditedMutation` if its audit row is missing."""
        mutation = self._new_mutation()
        yield mutation
        mutation.check_audited()


class Database:
    """A pool of connections, or a part of one.

    A worker has two pools, so that inference never waits for a connection that administration uses.
    `share` limits one kind of work to a part of a pool.
    """

    def __init__(
        self,
        pool: "Pool[Row]",
        watch: SilenceWatch,
        *,
        acquire_seconds: float,
        statement_seconds: float | None = None,
        permits: asyncio.Semaphore | None = None,
        has_prepared_statements: bool = True,
    ) -> None:
        self._pool = pool
        self._watch = watch
        self._watching = Tasks()
        self._acquire_seconds = acquire_seconds
        self._statement_seconds = statement_seconds
        self._permits = permits
        self._has_prepared_statements = has_prepared_statements

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        pool_size: int,
        acquire_seconds: float,
        statement_seconds: float,
        has_prepared_statements: bool = True,
        wants_standby: bool = False,
    ) -> Self:
        """Open a pool. Raises `DatabaseUnavailable` if no host of the URL is a primary.

        With `wants_standby`, a host that is a standby is used instead.

        Without prepared statements every statement runs in a transaction, so that a pooler keeps
        one server between its preparation and its run.
        """
        connector = Connector(
            url,
            seconds_max=acquire_seconds,
            statement_seconds=statement_seconds,
            session_settings=SESSION_SETTINGS,
            has_prepared_statements=has_prepared_statements,
            wants_standby=wants_standby,
        )
        with TranslatedErrors():
            pool = await asyncpg.create_pool(
                min_size=1,
                max_size=pool_size,
                connect=connector.connect,
                connection_class=SessionConnection,
            )
        watch = SilenceWatch(connector)
        database = cls(
            pool,
            watch,
            acquire_seconds=acquire_seconds,
            has_prepared_statements=has_prepared_statements,
        )
        database._watching.repeat("silence-watch", watch.look, LOOK_EVERY_SECONDS)
        return database

    def share(self, *, connections_max: int, statement_seconds: float | None = None) -> "Database":
        """Return a view of this pool that uses at most `connections_max` connections at once.

        `statement_seconds` replaces the statement timeout of the pool. Close the pool, not the
        view.
        """
        return Database(
            self._pool,
            self._watch,
            acquire_seconds=self._acquire_seconds,
            statement_seconds=statement_seconds,
            permits=asyncio.Semaphore(connections_max),
            has_prepared_statements=self._has_prepared_statements,
        )

    async def close(self) -> None:
        """Wait for the connections that are in use, then close them all."""
        await self._pool.close()
        await self._watching.drain(deadline_seconds=0)

    @property
    def connections_in_use(self) -> int:
        """The number of connections in use, for the gauge."""
        return self._pool.get_size() - self._pool.get_idle_size()

    @asynccontextmanager
    async def transaction(
        self, *, statement_seconds: float | None = None
    ) -> AsyncGenerator[Transaction]:
        """Begin a transaction for reads, or for unaudited writes: leases, heartbeats, last uses.

        Only maintenance sets a longer statement timeout than that of the deployment.
        """
        async with self._begun() as connection:
            seconds = statement_seconds or self._statement_seconds
            yield Transaction(connection, statement_seconds=seconds)

    @asynccontextmanager
    async def snapshot(
        self, *, statement_seconds: float | None = None
    ) -> AsyncGenerator[Transaction]:
        """Begin a read-only transaction whose statements all read the same snapshot."""
        async with self._begun("repeatable_read", is_read_only=True) as connection:
            seconds = statement_seconds or self._statement_seconds
            yield Transaction(connection, statement_seconds=seconds)

    async def run_outside(self, sql: LiteralString, *, seconds: int) -> None:
        """Run a statement that PostgreSQL refuses inside a transaction; raise `LockTimedOut`.

        The driver cancels it after `seconds`. A lock timeout would be state of the session, which
        a pooler gives to others.
        """
        connection = await self._acquire()
        try:
            with TranslatedErrors():
                await connection.execute(sql, timeout=seconds)
        except DatabaseUnavailable as error:
            if isinstance(error.__cause__, TimeoutError):
                raise LockTimedOut from error
            raise
        finally:
            await self._give_back(connection)

    @asynccontextmanager
    async def mutation(self, authority: Authority) -> AsyncGenerator[Mutation]:
        """Begin a change of one organization, which commits at the end of the block.

        Raises `UnauditedMutation` instead if the audit row is missing.
        """
        async with self._begun() as connection:
            mutation = Mutation(connection, authority, statement_seconds=self._statement_seconds)
            yield mutation
            mutation.check_audited()

    @asynccontextmanager
    async def mutations(self, authority: Authority) -> AsyncGenerator[Mutations]:
        """Begin several changes of one organization, which commit together at the end."""
        async with self._begun() as connection:
            seconds = self._statement_seconds
            yield Mutations(lambda: Mutation(connection, authority, statement_seconds=seconds))

    @asynccontextmanager
    async def _begun(
        self, isolation: _Isolation = "read_committed", *, is_read_only: bool = False
    ) -> AsyncGenerator["PoolConnectionProxy[Row]"]:
        connection = await self._acquire()
        try:
            transaction = connection.transaction(isolation=isolation, readonly=is_read_only)
            with TranslatedErrors():
                # Not `start`: if that is cancelled, the driver logs an error.
                await transaction.__aenter__()
            try:
                yield connection
            except BaseException as error:
                with suppress(DatabaseUnavailable), TranslatedErrors():
                    await transaction.__aexit__(type(error), error, None)
                if _is_demoted(error):
                    self._watch.drop_demoted(connection)
                raise
            with TranslatedErrors():
                await transaction.__aexit__(None, None, None)
        finally:
            await self._give_back(connection)

    async def _acquire(self) -> "PoolConnectionProxy[Row]":
        """Wait for a permit of this share, if it has permits, then for a connection."""
        with TranslatedErrors():
            if self._permits is not None:
                await asyncio.wait_for(self._permits.acquire(), self._acquire_seconds)
            try:
                connection = await self._pool.acquire(timeout=self._acquire_seconds)
            except BaseException:
                self._release_permit()
                raise
        self._watch.begin(connection)
        return connection

    async def _give_back(self, connection: "PoolConnectionProxy[Row]") -> None:
        """Release a connection; the pool closes one that cannot be released."""
        try:
            with suppress(DatabaseUnavailable), TranslatedErrors():
                await self._pool.release(connection)
        finally:
            self._watch.end(connection)
            self._release_permit()

    def _release_permit(self) -> None:
        if self._permits is not None:
            self._permits.release()

    async def fetch_all(self, sql: LiteralString, *arguments: object) -> Sequence[Row]:
        """Return all rows of one statement, in a transaction of its own and one round trip."""
        if not self._has_prepared_statements:
            async with self.transaction() as tx:
                return await tx.fetch_all(sql, *arguments)
        connection = await self._acquire()
        try:
            with TranslatedErrors():
                return await connection.fetch(sql, *arguments, timeout=self._statement_seconds)
        except DatabaseUnavailable as error:
            if _is_demoted(error):
                self._watch.drop_demoted(connection)
            raise
        finally:
            await self._give_back(connection)


def _is_demoted(error: BaseException) -> bool:
    return isinstance(error.__cause__, asyncpg.ReadOnlySQLTransactionError)
