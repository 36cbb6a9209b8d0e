"""Traffic limits, as the operator and the organization have set them."""

from typing import Final

revision = "0005"
down_revision = "0004"

STATEMENTS: Final = (
    """
    CREATE TABLE rate_limits (
        organization_id     uuid NOT NULL REFERENCES organizations,
        scope               text NOT NULL CHECK (scope IN ('organization', 'project', 'api_key')),
        scope_id            uuid NOT NULL,
        owner               text NOT NULL CHECK (owner IN ('operator', 'organization')),
        requests_per_minute bigint CHECK (requests_per_minute >= 1),
        tokens_per_minute   bigint CHECK (tokens_per_minute >= 1),
        concurrent_requests bigint CHECK (concurrent_requests >= 1),
        PRIMARY KEY (organization_id, scope_id, scope, owner),
        CONSTRAINT rate_limits_bound_something
            CHECK (num_nonnulls(requests_per_minute, tokens_per_minute, concurrent_requests) > 0)
    )
    """,
    """
    COMMENT ON TABLE rate_limits IS
        'Of the rows of one scope the lower value holds, for each bound on its own'
    """,
)
