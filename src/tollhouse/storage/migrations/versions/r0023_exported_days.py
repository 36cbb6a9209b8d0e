"""Days that the nightly export has written as files."""

from typing import Final

revision = "0023"
down_revision = "0022"

STATEMENTS: Final = (
    """
    CREATE TABLE exported_days (
        location       text NOT NULL,
        exported_table text NOT NULL CHECK (exported_table IN ('costs', 'requests')),
        day            date NOT NULL,
        row_count      bigint NOT NULL,
        size_bytes     bigint NOT NULL,
        sums           jsonb NOT NULL,
        files          jsonb NOT NULL,
        exported_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
        checked_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (location, exported_table, day)
    )
    """,
    """
    COMMENT ON TABLE exported_days IS
        'Days whose exported files were read back and had the sums of the database.'
    """,
    """
    COMMENT ON COLUMN exported_days.checked_at IS
        'When the day in the database last had the sums of its files'
    """,
)

CONTRACT: Final[tuple[str, ...]] = ()
