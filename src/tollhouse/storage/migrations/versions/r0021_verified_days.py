"""Continuous verification: when each organization was verified, and its days that are done."""

from typing import Final

revision = "0021"
down_revision = "0020"

STATEMENTS: Final = (
    """
    CREATE TABLE verified_days (
        organization_id uuid NOT NULL,
        day             date NOT NULL,
        excess_pico     numeric(38,0) NOT NULL,
        unknown_pico    numeric(38,0) NOT NULL,
        costs_digest    text,
        verified_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (organization_id, day)
    )
    """,
    """
    COMMENT ON TABLE verified_days IS
        'Days whose cost rows follow from their entries, as long as the rows have the digest.'
    """,
    """
    COMMENT ON COLUMN verified_days.costs_digest IS
        'NULL for a day with an open hold, whose entries must be read again'
    """,
    """
    CREATE TABLE ledger_verifications (
        organization_id uuid PRIMARY KEY,
        begun_at        timestamptz NOT NULL,
        verified_at     timestamptz,
        differences     integer NOT NULL DEFAULT 0 CHECK (differences >= 0),
        complete_until  date
    )
    """,
    """
    COMMENT ON TABLE ledger_verifications IS
        'When each organization was last verified, and how many numbers differed then.'
    """,
    """
    COMMENT ON COLUMN ledger_verifications.complete_until IS
        'Days until then have no entries, or have a row in verified_days'
    """,
    """
    CREATE INDEX ledger_verifications_differing ON ledger_verifications (organization_id)
     WHERE differences > 0
    """,
)

CONTRACT: Final[tuple[str, ...]] = ()
