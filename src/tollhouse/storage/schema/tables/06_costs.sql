-- Sums of the ledger: reports read them, and they outlive the entries.

CREATE TABLE cost_daily (
    organization_id     uuid NOT NULL,
    day                 date NOT NULL,
    project_id          uuid NOT NULL,
    api_key_id          uuid NOT NULL,
    model               text NOT NULL,
    requests            bigint NOT NULL,
    input_tokens        numeric(38,0) NOT NULL,
    cached_input_tokens numeric(38,0) NOT NULL,
    output_tokens       numeric(38,0) NOT NULL,
    images              numeric(38,0) NOT NULL,
    input_pico          numeric(38,0) NOT NULL,
    cached_input_pico   numeric(38,0) NOT NULL,
    output_pico         numeric(38,0) NOT NULL,
    image_pico          numeric(38,0) NOT NULL,
    request_pico        numeric(38,0) NOT NULL,
    estimated_requests  bigint NOT NULL DEFAULT 0,
    cache_write_tokens  numeric(38,0) NOT NULL DEFAULT 0,
    cache_write_pico    numeric(38,0) NOT NULL DEFAULT 0,
    PRIMARY KEY (organization_id, day, project_id, api_key_id, model)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE cost_hourly (
    organization_id     uuid NOT NULL,
    hour                timestamptz NOT NULL,
    project_id          uuid NOT NULL,
    api_key_id          uuid NOT NULL,
    model               text NOT NULL,
    requests            bigint NOT NULL,
    input_tokens        numeric(38,0) NOT NULL,
    cached_input_tokens numeric(38,0) NOT NULL,
    output_tokens       numeric(38,0) NOT NULL,
    images              numeric(38,0) NOT NULL,
    input_pico          numeric(38,0) NOT NULL,
    cached_input_pico   numeric(38,0) NOT NULL,
    output_pico         numeric(38,0) NOT NULL,
    image_pico          numeric(38,0) NOT NULL,
    request_pico        numeric(38,0) NOT NULL,
    estimated_requests  bigint NOT NULL DEFAULT 0,
    cache_write_tokens  numeric(38,0) NOT NULL DEFAULT 0,
    cache_write_pico    numeric(38,0) NOT NULL DEFAULT 0,
    PRIMARY KEY (organization_id, hour, project_id, api_key_id, model)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE ledger_closings (
    organization_id     uuid NOT NULL,
    admitted_day        date NOT NULL,
    project_id          uuid NOT NULL,
    api_key_id          uuid NOT NULL,
    model               text NOT NULL,
    requests            bigint NOT NULL,
    input_tokens        numeric(38,0) NOT NULL,
    cached_input_tokens numeric(38,0) NOT NULL,
    output_tokens       numeric(38,0) NOT NULL,
    images              numeric(38,0) NOT NULL,
    input_pico          numeric(38,0) NOT NULL,
    cached_input_pico   numeric(38,0) NOT NULL,
    output_pico         numeric(38,0) NOT NULL,
    image_pico          numeric(38,0) NOT NULL,
    request_pico        numeric(38,0) NOT NULL,
    excess_pico         numeric(38,0) NOT NULL,
    unknown_pico        numeric(38,0) NOT NULL,
    estimated_requests  bigint NOT NULL DEFAULT 0,
    cache_write_tokens  numeric(38,0) NOT NULL DEFAULT 0,
    cache_write_pico    numeric(38,0) NOT NULL DEFAULT 0,
    PRIMARY KEY (organization_id, admitted_day, project_id, api_key_id, model)
);
COMMENT ON TABLE ledger_closings IS
    'The sums of a day whose entries were dropped; a rebuilt balance starts from these.';

CREATE TABLE closed_days (
    day       date PRIMARY KEY,
    closed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE verified_days (
    organization_id uuid NOT NULL,
    day             date NOT NULL,
    excess_pico     numeric(38,0) NOT NULL,
    unknown_pico    numeric(38,0) NOT NULL,
    costs_digest    text,
    verified_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (organization_id, day)
);
COMMENT ON TABLE verified_days IS
    'Days whose cost rows follow from their entries, as long as the rows have the digest.';
COMMENT ON COLUMN verified_days.costs_digest IS
    'NULL for a day with an open hold, whose entries must be read again';

CREATE TABLE ledger_verifications (
    organization_id uuid PRIMARY KEY,
    begun_at        timestamptz NOT NULL,
    verified_at     timestamptz,
    differences     integer NOT NULL DEFAULT 0 CHECK (differences >= 0),
    complete_until  date
);
COMMENT ON TABLE ledger_verifications IS
    'When each organization was last verified, and how many numbers differed then.';
COMMENT ON COLUMN ledger_verifications.complete_until IS
    'Days until then have no entries, or have a row in verified_days';
CREATE INDEX ledger_verifications_differing ON ledger_verifications (organization_id)
 WHERE differences > 0;
