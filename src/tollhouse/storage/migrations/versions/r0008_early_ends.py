"""Policies that may end an answer while it is generated: only those that say so."""

from typing import Final

revision = "0008"
down_revision = "0007"

STATEMENTS: Final = (
    """
    ALTER TABLE policies
      ADD COLUMN ends_answer_early boolean NOT NULL DEFAULT false
    """,
    """
    ALTER TABLE policy_versions
      ADD COLUMN ends_answer_early boolean NOT NULL DEFAULT false
    """,
    """
    COMMENT ON COLUMN policy_versions.ends_answer_early IS
        'A match in the part of an answer that is there ends it; of use only for answers'
    """,
)
