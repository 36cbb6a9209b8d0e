"""Records of requests name the parameter that was wrong, and are found by their error code."""

from typing import Final

revision = "0016"
down_revision = "0015"

# The index comes first: requests can be read while it is built. The column locks them briefly.
STATEMENTS: Final = (
    """
    CREATE INDEX requests_of_error ON requests (organization_id, error_code, day, request_id)
     WHERE error_code IS NOT NULL
    """,
    """
    ALTER TABLE requests
      ADD COLUMN error_param text
    """,
    """
    COMMENT ON COLUMN requests.error_param IS
        'The parameter that the error names, as the caller wrote it: redacted and shortened'
    """,
)
