"""Continuous verification: when each organization was verified, and its days that are done."""

from typing import Final

revision = "0021"
down_revision = "0020"

STATEMENTS: Final = (
    """
    CREATE TABLE verified_days (
        organization_id uuid NOT NULL,
        day             date NOT NULL,
        entries         bigint NOT NULL,
        excess_pico     numeric(38,0) NOT NULL,
        unknown_pico    numeric(38,0) NOT NULL,
        costs_digest    text NOT NULL,
        verified_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (organization_id, day)
    )
    """,
    """
    COMMENT ON TABLE verified_days IS
        'Days whose cost rows follow from their entries, as long as the rows have the digest.'
    """,
    """
    CREATE TABLE ledger_verifications (
        organization_id uuid PRIMARY KEY,
        verified_at     timestamptz NOT NULL,
        differences     integer NOT NULL CHECK (differences >= 0)
    )
    """,
    """
    COMMENT ON TABLE ledger_verifications IS
        'When each organization was last verified, and how many numbers differed then.'
    """,
    "CREATE INDEX ledger_verifications_by_time ON ledger_verifications (verified_at)",
    """
    CREATE INDEX ledger_verifications_differing ON ledger_verifications (organization_id)
     WHERE differences > 0
    """,
)

CONTRACT: Final[tuple[str, ...]] = ()
