"""Attribution: what callers say a request is for, if their organization stores it."""

from typing import Final

revision = "0026"
down_revision = "0025"

STATEMENTS: Final = (
    """
    ALTER TABLE organizations ADD COLUMN attribution jsonb
    """,
    """
    COMMENT ON COLUMN organizations.attribution IS
        'NULL, or the dimensions that are stored and the days for which: personal data'
    """,
    """
    CREATE INDEX organizations_with_attribution ON organizations (id)
     WHERE attribution IS NOT NULL
    """,
    """
    CREATE TABLE attribution_values (
        organization_id uuid NOT NULL,
        id              uuid NOT NULL DEFAULT gen_random_uuid(),
        day             date NOT NULL,
        dimension       text NOT NULL,
        value           text,
        PRIMARY KEY (organization_id, id)
    )
    """,
    """
    COMMENT ON COLUMN attribution_values.value IS
        'NULL after the organization deleted the value'
    """,
    """
    CREATE UNIQUE INDEX attribution_values_by_value
        ON attribution_values (organization_id, day, dimension, value)
    """,
    """
    CREATE TABLE request_attributions (
        organization_id uuid NOT NULL,
        dimension       text NOT NULL,
        request_id      uuid NOT NULL,
        day             date NOT NULL,
        value_id        uuid NOT NULL,
        PRIMARY KEY (organization_id, dimension, request_id)
    )
    """,
    """
    COMMENT ON TABLE request_attributions IS
        'The value of a dimension that a request named. Its cost is in the ledger alone.'
    """,
    """
    CREATE INDEX request_attributions_by_day ON request_attributions (organization_id, day)
    """,
)

CONTRACT: Final[tuple[str, ...]] = ()
