"""Errors of storage. They hide the errors of the database driver from other packages."""

from tollhouse.base.errors import DeploymentError, ServiceUnavailable


class DatabaseUnavailable(ServiceUnavailable):
    """The database did not answer in time. It is unknown whether a change was stored."""

    template = "The gateway's database is unavailable. Try again shortly."


class LockTimedOut(ServiceUnavailable):
    """Another change held a lock on the same row for too long."""

    template = "Another change of the same thing is under way. Try again shortly."


class ConstraintViolated(Exception):
    """A constraint of the schema refused a row. The package that wrote the row handles it."""

    def __init__(self, constraint: str) -> None:
        super().__init__(constraint)
        self.constraint = constraint


class StatementFailed(Exception):
    """The database refused a statement for good. A retry would fail again."""

    def __init__(self, message: str, *, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class SchemaMismatch(DeploymentError):
    """The database's schema is not the one of this version of the software."""

    code = "schema_mismatch"


class EarlierHistory(SchemaMismatch):
    """The database was made before the schema began anew."""

    def __init__(self) -> None:
        super().__init__(
            "The database was made by Tollhouse 0.2.0 or earlier, whose schema this version cannot "
            "upgrade, and was left as it is: give this version an empty database."
        )


class MigrationFailed(DeploymentError):
    """The database refused a statement of a migration."""

    code = "migration_failed"

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"The database refused {text}: {reason}. Nothing was changed.")


class SchemaLocked(DeploymentError):
    """Other transactions held a lock on a table during every attempt of a migration."""

    code = "schema_locked"

    def __init__(self, *, attempts: int, seconds: int) -> None:
        super().__init__(
            f"Other transactions held a lock on a table for {seconds} s at each of {attempts} "
            "attempts. Nothing was changed. End long transactions (pg_stat_activity lists them) "
            "and run the command again."
        )


class OlderWorkers(DeploymentError):
    """Workers run that would fail on the contracted schema."""

    code = "older_workers"

    def __init__(self, *, count: int, revision: str) -> None:
        super().__init__(
            f"{count} live worker{'' if count == 1 else 's'} of an older release would fail on the "
            f"contracted schema, revision {revision}. Nothing was changed. Replace or stop them; a "
            "worker that was killed counts as live for 30 s."
        )
