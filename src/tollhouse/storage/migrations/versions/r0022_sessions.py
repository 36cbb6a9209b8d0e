"""Sessions of the console, and people as authors of changes."""

from typing import Final

revision = "0022"
down_revision = "0021"

STATEMENTS: Final = (
    """
    CREATE TABLE console_sessions (
        id               uuid PRIMARY KEY,
        secret_digest    bytea NOT NULL UNIQUE,
        owner_id         uuid NOT NULL,
        key_digest       bytea,
        person_name      text,
        groups           text[] NOT NULL,
        organization_ids uuid[] NOT NULL,
        state_digest     bytea UNIQUE,
        created_at       timestamptz NOT NULL,
        expires_at       timestamptz NOT NULL,
        ended_at         timestamptz,
        CHECK ((key_digest IS NULL) <> (person_name IS NULL))
    )
    """,
    """
    COMMENT ON TABLE console_sessions IS
        'Sign-ins of browsers: by an Admin key, or by a person at the OpenID provider.'
    """,
    """
    COMMENT ON COLUMN console_sessions.owner_id IS 'The Admin key or the person'
    """,
    """
    COMMENT ON COLUMN console_sessions.key_digest IS
        'The secret of the Admin key as in key_directory: the session ends with it'
    """,
    """
    COMMENT ON COLUMN console_sessions.state_digest IS
        'The sign-in that made the session, which can make no second one'
    """,
    "CREATE INDEX console_sessions_owner ON console_sessions (owner_id, created_at)",
    "CREATE INDEX console_sessions_expiry ON console_sessions (expires_at)",
    "ALTER TABLE audit_log ADD COLUMN actor_name text",
    "ALTER TABLE audit_log DROP CONSTRAINT audit_log_actor_type_check",
    """
    ALTER TABLE audit_log
      ADD CONSTRAINT audit_log_actor_type_check
          CHECK (actor_type IN ('admin_api_key', 'operator', 'person')) NOT VALID
    """,
)

CONTRACT: Final[tuple[str, ...]] = ()
