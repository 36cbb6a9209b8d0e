"""Activity: one row per request by day, and sums by the hour. Days of any table by one function."""

from typing import Final

revision = "0006"
down_revision = "0005"

MAKE_DAY_PARTITION: Final = """
CREATE FUNCTION make_day_partition(p_parent text, p_day date) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_name text := p_parent || '_' || to_char(p_day, 'YYYYMMDD');
    v_column text;
BEGIN
    IF EXISTS (SELECT FROM pg_inherits
                WHERE inhparent = p_parent::regclass
                  AND inhrelid = to_regclass(quote_ident(v_name))) THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('make_day_partition'));
    SELECT a.attname INTO STRICT v_column
      FROM pg_partitioned_table t
      JOIN pg_attribute a ON a.attrelid = t.partrelid AND a.attnum = t.partattrs[0]
     WHERE t.partrelid = p_parent::regclass;
    IF to_regclass(quote_ident(v_name)) IS NULL THEN
        EXECUTE format(
            'CREATE TABLE %I (LIKE %I INCLUDING ALL,
                CONSTRAINT day_of_partition CHECK (%I >= %L AND %I < %L))',
            v_name, p_parent, v_column, p_day, v_column, p_day + 1);
    END IF;
    IF NOT EXISTS (SELECT FROM pg_inherits
                    WHERE inhparent = p_parent::regclass
                      AND inhrelid = to_regclass(quote_ident(v_name))) THEN
        EXECUTE format(
            'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
            p_parent, v_name, p_day, p_day + 1);
    END IF;
    RETURN true;
END
$$
"""
"""Made beside its parent and only then attached, which locks nobody out."""

STATEMENTS: Final = (
    MAKE_DAY_PARTITION,
    "DROP FUNCTION ledger_make_partition(date)",
    """
    CREATE TABLE requests (
        organization_id     uuid NOT NULL,
        day                 date NOT NULL,
        request_id          uuid NOT NULL,
        project_id          uuid NOT NULL,
        api_key_id          uuid NOT NULL,
        operation           text NOT NULL,
        started_at          timestamptz NOT NULL,
        status              smallint NOT NULL CHECK (status BETWEEN 100 AND 599),
        error_code          text,
        culprit             text CHECK (culprit IN ('caller', 'gateway', 'backend')),
        model               text,
        backend             text,
        replica             text,
        is_stream           boolean NOT NULL,
        input_tokens        bigint CHECK (input_tokens >= 0),
        cached_input_tokens bigint CHECK (cached_input_tokens >= 0),
        output_tokens       bigint CHECK (output_tokens >= 0),
        cost_pico           bigint CHECK (cost_pico >= 0),
        queue_ms            real,
        admission_ms        real,
        judging_ms          real,
        first_byte_ms       real,
        total_ms            real NOT NULL,
        PRIMARY KEY (organization_id, day, request_id)
    ) PARTITION BY RANGE (day)
    """,
    """
    COMMENT ON COLUMN requests.day IS
        'The UTC day in which the ID was minted: whoever knows the ID knows the partition.'
    """,
    """
    CREATE INDEX requests_by_id ON requests (request_id)
    """,
    """
    COMMENT ON INDEX requests_by_id IS
        'For the operator, who is told an ID and no organization.'
    """,
    """
    CREATE INDEX requests_of_key ON requests (organization_id, api_key_id, day, request_id)
    """,
    """
    CREATE INDEX requests_failed ON requests (organization_id, day, request_id)
     WHERE status >= 400
    """,
    "SELECT make_day_partition('requests', current_date + ahead) FROM generate_series(-1, 7) ahead",
    """
    CREATE TABLE request_hours (
        organization_id     uuid NOT NULL,
        hour                timestamptz NOT NULL,
        project_id          uuid NOT NULL,
        api_key_id          uuid NOT NULL,
        model               text NOT NULL,
        status              smallint NOT NULL,
        error_code          text NOT NULL,
        requests            bigint NOT NULL,
        input_tokens        numeric(38,0) NOT NULL,
        cached_input_tokens numeric(38,0) NOT NULL,
        output_tokens       numeric(38,0) NOT NULL,
        total_ms            double precision NOT NULL,
        latency_counts      bigint[] NOT NULL CHECK (cardinality(latency_counts) = 10),
        PRIMARY KEY (organization_id, hour, project_id, api_key_id, model, status, error_code)
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)
    """,
    """
    COMMENT ON COLUMN request_hours.latency_counts IS
        'Requests by total_ms: below 30, 100, 300, 1000, 3000, 10000, 30000, 100000, 300000, above.'
    """,
    """
    CREATE INDEX request_hours_by_age ON request_hours (hour)
    """,
)
