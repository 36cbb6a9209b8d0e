"""Translation of the errors of the database driver."""

from types import TracebackType

import asyncpg

from tollhouse.storage.errors import (
    ConstraintViolated,
    DatabaseUnavailable,
    LockTimedOut,
    StatementFailed,
)

_UNREACHABLE = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server ended the session during a statement
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresSystemError,
    asyncpg.TransactionRollbackError,
    asyncpg.ReadOnlySQLTransactionError,
    TimeoutError,
    OSError,
)


class TranslatedErrors:
    """Translates errors of the driver into those of `storage.errors`.

    A class, because a generator takes several times as many calls for every statement.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Raise the translation of an error of the driver."""
        if error is not None:
            _raise_translated(error)


def _raise_translated(error: BaseException) -> None:
    """Raise the translation, or return if the error is not the driver's."""
    if isinstance(error, asyncpg.LockNotAvailableError):
        raise LockTimedOut from error
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        # Not `from error`: the driver's text contains the row, which must not be logged.
        raise ConstraintViolated(str(error.constraint_name)) from None
    if isinstance(error, _UNREACHABLE):
        if isinstance(error, ValueError):
            # The driver raises an InterfaceError for an argument outside its type's range. Its
            # text contains the argument, which must not be logged.
            message = "an argument does not fit its type"
            raise StatementFailed(message) from None
        raise DatabaseUnavailable from error
    if isinstance(error, asyncpg.PostgresError):
        message = f"{type(error).__name__} ({error.sqlstate})"
        raise StatementFailed(message, sqlstate=error.sqlstate) from None
