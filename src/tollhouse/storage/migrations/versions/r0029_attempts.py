"""Which replicas were called: attempts of a request, and what workers and operators leave out."""

from typing import Final

revision = "0029"
down_revision = "0028"

STATEMENTS: Final = (
    "ALTER TABLE requests ADD COLUMN attempts text",
    """
    COMMENT ON COLUMN requests.attempts IS
        'A JSON list of model, replica, outcome and ms of each attempt, if there were several'
    """,
    """
    CREATE TABLE replica_reports (
        instance_id uuid NOT NULL,
        backend     text NOT NULL,
        replica     text NOT NULL,
        model       text NOT NULL,
        state       text NOT NULL,
        why         text NOT NULL,
        trial_at    timestamptz
    )
    """,
    """
    COMMENT ON TABLE replica_reports IS 'The replicas that each worker leaves out, and why'
    """,
    """
    CREATE TABLE replica_orders (
        backend    text NOT NULL,
        replica    text NOT NULL,
        is_ejected boolean NOT NULL,
        ordered_at timestamptz NOT NULL,
        PRIMARY KEY (backend, replica)
    )
    """,
    """
    COMMENT ON TABLE replica_orders IS 'The replicas that an operator left out or returned by hand'
    """,
)

CONTRACT: Final[tuple[str, ...]] = ()
