"""Which models an organization and its projects may use."""

from typing import Final

revision = "0004"
down_revision = "0003"

STATEMENTS: Final = (
    """
    CREATE TABLE organization_checks (
        organization_id uuid NOT NULL REFERENCES organizations,
        check_name      text NOT NULL,
        granted_at      timestamptz NOT NULL,
        PRIMARY KEY (organization_id, check_name)
    )
    """,
    """
    COMMENT ON TABLE organization_checks IS
        'What an organization was found to fulfil. Models of the configuration may require it.'
    """,
    """
    ALTER TABLE projects ADD COLUMN allowed_models text[]
    """,
    """
    COMMENT ON COLUMN projects.allowed_models IS 'NULL means all; a key may be narrower'
    """,
)
