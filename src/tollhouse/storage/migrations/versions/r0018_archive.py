"""Days that are archived in files, and gaps in the records of requests."""

from typing import Final

revision = "0018"
down_revision = "0017"

STATEMENTS: Final = (
    """
    CREATE TABLE archived_days (
        archived_table text NOT NULL CHECK (archived_table IN ('requests', 'ledger_entries')),
        day            date NOT NULL,
        location       text NOT NULL,
        row_count      bigint NOT NULL,
        size_bytes     bigint NOT NULL,
        sums           jsonb NOT NULL,
        files          jsonb NOT NULL,
        archived_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (archived_table, day)
    )
    """,
    """
    COMMENT ON TABLE archived_days IS
        'Days whose files were read back and had the sums of the database. Their rows may be gone.'
    """,
    """
    CREATE TABLE record_gaps (
        id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        first_at timestamptz NOT NULL,
        last_at  timestamptz NOT NULL,
        records  bigint NOT NULL CHECK (records > 0)
    )
    """,
    """
    COMMENT ON TABLE record_gaps IS
        'When requests began whose records a worker dropped, and how many it dropped.'
    """,
    """
    CREATE INDEX record_gaps_by_end ON record_gaps (last_at)
    """,
)

CONTRACT: Final[tuple[str, ...]] = ()
