-- Activity: one row per request by day, and sums by the hour.

CREATE TYPE request_record AS (
    organization_id     uuid,
    day                 date,
    request_id          uuid,
    project_id          uuid,
    api_key_id          uuid,
    operation           text,
    started_at          timestamptz,
    status              smallint,
    error_code          text,
    failed_by           text,
    model               text,
    backend             text,
    replica             text,
    is_stream           boolean,
    input_tokens        bigint,
    cached_input_tokens bigint,
    output_tokens       bigint,
    cost_pico           bigint,
    queue_ms            real,
    admission_ms        real,
    judging_ms          real,
    first_byte_ms       real,
    total_ms            real,
    is_estimated        boolean
);

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
    failed_by           text CHECK (failed_by IN ('caller', 'gateway', 'backend')),
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
    is_estimated        boolean NOT NULL DEFAULT false,
    error_param         text,
    requested_model     text,
    dropped_tools       text,
    attempts            text,
    label               text,
    PRIMARY KEY (organization_id, day, request_id)
) PARTITION BY RANGE (day);
COMMENT ON COLUMN requests.day IS
    'The UTC day in which the ID was minted, so that an ID leads to its partition.';
COMMENT ON COLUMN requests.is_estimated IS
    'The gateway counted part of the tokens, because the engine did not report them';
COMMENT ON COLUMN requests.error_param IS
    'The parameter that the error names, as the caller wrote it: redacted and shortened';
COMMENT ON COLUMN requests.requested_model IS
    'The model or alias that the caller named, if the column model has another one';
COMMENT ON COLUMN requests.dropped_tools IS
    'The types of the tools that were left out, as the caller wrote them, separated by commas';
COMMENT ON COLUMN requests.label IS
    'What the caller wrote into the header X-Tollhouse-Label: shortened, no key in it';
COMMENT ON COLUMN requests.attempts IS
    'A JSON list of model, replica, outcome and ms of each attempt, if there were several';
CREATE INDEX requests_by_id ON requests (request_id);
COMMENT ON INDEX requests_by_id IS
    'For the operator, who is told an ID and no organization.';
CREATE INDEX requests_of_key ON requests (organization_id, api_key_id, day, request_id);
CREATE INDEX requests_failed ON requests (organization_id, day, request_id)
 WHERE status >= 400;
CREATE INDEX requests_of_error ON requests (organization_id, error_code, day, request_id)
 WHERE error_code IS NOT NULL;

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
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
COMMENT ON COLUMN request_hours.latency_counts IS
    'Requests by total_ms: below 30, 100, 300, 1000, 3000, 10000, 30000, 100000, 300000, above.';
CREATE INDEX request_hours_by_day ON request_hours (((hour AT TIME ZONE 'UTC')::date));
COMMENT ON INDEX request_hours_by_day IS
    'For forgetting. On the hour itself, reports would take it for as good as the key.';

CREATE TABLE record_gaps (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    first_at timestamptz NOT NULL,
    last_at  timestamptz NOT NULL,
    records  bigint NOT NULL CHECK (records > 0)
);
COMMENT ON TABLE record_gaps IS
    'When requests began whose records a worker dropped, and how many it dropped.';
CREATE INDEX record_gaps_by_end ON record_gaps (last_at);
