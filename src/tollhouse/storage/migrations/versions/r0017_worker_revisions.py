"""Workers record the newest revision that they know, so that a contract step can wait for them."""

from typing import Final

revision = "0017"
down_revision = "0016"

STATEMENTS: Final = (
    """
    ALTER TABLE instances
      ADD COLUMN newest_revision text
    """,
    """
    COMMENT ON COLUMN instances.newest_revision IS
        'The newest schema revision that the worker knows; NULL for workers of 0.2.0'
    """,
)

# Afterwards a worker of 0.2.0 cannot register.
CONTRACT: Final = (
    """
    UPDATE instances
       SET newest_revision = '0016'
     WHERE newest_revision IS NULL
    """,
    """
    ALTER TABLE instances
      ALTER COLUMN newest_revision SET NOT NULL
    """,
)
