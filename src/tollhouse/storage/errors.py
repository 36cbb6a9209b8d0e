"""How storage fails, in our own terms: nothing above this package knows the driver's errors."""

from tollhouse.base.errors import ServiceUnavailable


class DatabaseUnavailable(ServiceUnavailable):
    """The database did not answer in time. Whether a change was stored is not known."""

    def __init__(self) -> None:
        super().__init__("The gateway's database is unavailable. Try again shortly.")


class LockTimedOut(ServiceUnavailable):
    """Another change held the same row for too long."""

    def __init__(self) -> None:
        super().__init__("Another change of the same thing is under way. Try again shortly.")


class ConstraintViolated(Exception):
    """A constraint of the schema refused a row; the room that wrote it knows what that means."""

    def __init__(self, constraint: str) -> None:
        super().__init__(constraint)
        self.constraint = constraint


class StatementFailed(Exception):
    """The database refused a statement for good; sending it again would fail again."""

    def __init__(self, message: str, *, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class SchemaMismatch(Exception):
    """The database's schema is not the one that this version of the software was written for."""
