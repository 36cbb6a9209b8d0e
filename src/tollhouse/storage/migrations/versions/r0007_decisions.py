"""What policies decided: all of a content in one row, matches and failures in rows of their own."""

from typing import Final

revision = "0007"
down_revision = "0006"

STATEMENTS: Final = (
    """
    CREATE TABLE examinations (
        organization_id uuid NOT NULL,
        day             date NOT NULL,
        request_id      uuid NOT NULL,
        direction       text NOT NULL CHECK (direction IN ('request', 'response')),
        mode            text NOT NULL CHECK (mode IN ('monitoring', 'enforcing')),
        project_id      uuid NOT NULL,
        api_key_id      uuid NOT NULL,
        examined_at     timestamptz NOT NULL,
        judging_ms      real NOT NULL,
        characters      bigint NOT NULL CHECK (characters >= 0),
        content_digest  bytea,
        policy_ids      uuid[] NOT NULL,
        versions        integer[] NOT NULL,
        outcomes        text[] NOT NULL,
        scores          integer[] NOT NULL,
        PRIMARY KEY (organization_id, day, request_id, direction, mode)
    ) PARTITION BY RANGE (day)
    """,
    """
    COMMENT ON COLUMN examinations.content_digest IS
        'Keyed with the gateway''s secret and the organization. NULL: it could not be shown.'
    """,
    """
    COMMENT ON COLUMN examinations.policy_ids IS
        'With versions, outcomes and scores: one place for each policy that was asked.'
    """,
    """
    CREATE TABLE policy_decisions (
        organization_id uuid NOT NULL,
        policy_id       uuid NOT NULL,
        day             date NOT NULL,
        request_id      uuid NOT NULL,
        direction       text NOT NULL CHECK (direction IN ('request', 'response')),
        version         integer NOT NULL,
        mode            text NOT NULL CHECK (mode IN ('monitoring', 'enforcing')),
        outcome         text NOT NULL CHECK (outcome IN ('match', 'failed')),
        threshold       integer NOT NULL,
        score           integer CHECK (score BETWEEN 0 AND 10000),
        lowest          integer CHECK (lowest BETWEEN 0 AND 10000),
        highest         integer CHECK (highest BETWEEN 0 AND 10000),
        coverage        integer CHECK (coverage BETWEEN 0 AND 10000),
        reason          text,
        windows         integer NOT NULL,
        is_cached       boolean NOT NULL,
        project_id      uuid NOT NULL,
        api_key_id      uuid NOT NULL,
        examined_at     timestamptz NOT NULL,
        PRIMARY KEY (organization_id, policy_id, day, request_id, direction)
    ) PARTITION BY RANGE (day)
    """,
    """
    CREATE INDEX policy_decisions_of_request
        ON policy_decisions (organization_id, day, request_id)
    """,
    """
    SELECT make_day_partition(parent, current_date + ahead)
      FROM unnest(ARRAY['examinations', 'policy_decisions']) parent,
           generate_series(-1, 7) ahead
    """,
    """
    CREATE TABLE policy_days (
        organization_id uuid NOT NULL,
        policy_id       uuid NOT NULL,
        day             date NOT NULL,
        version         integer NOT NULL,
        direction       text NOT NULL,
        mode            text NOT NULL,
        outcome         text NOT NULL,
        bin             smallint NOT NULL CHECK (bin BETWEEN -1 AND 99),
        decisions       bigint NOT NULL,
        PRIMARY KEY (organization_id, policy_id, day, version, direction, mode, outcome, bin)
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)
    """,
    """
    COMMENT ON COLUMN policy_days.bin IS
        'A hundredth of all scores, the last one with 10000; -1: without a score.'
    """,
    """
    CREATE INDEX policy_days_by_day ON policy_days (day)
    """,
    """
    COMMENT ON INDEX policy_days_by_day IS 'For forgetting.'
    """,
)
