-- Money: accounts, caps with counters that always run, and append-only entries by day.
--
-- Every writer locks the organization's account first, so the rows behind it need no locks of
-- their own and cannot deadlock.

CREATE TABLE accounts (
    organization_id          uuid PRIMARY KEY REFERENCES organizations,
    credit_pico              numeric(38,0) NOT NULL DEFAULT 0,
    settled_pico             numeric(38,0) NOT NULL DEFAULT 0,
    reserved_pico            numeric(38,0) NOT NULL DEFAULT 0,
    ceiling_pico             numeric(38,0) NOT NULL DEFAULT 0,
    written_off_excess_pico  numeric(38,0) NOT NULL DEFAULT 0,
    written_off_unknown_pico numeric(38,0) NOT NULL DEFAULT 0,
    is_alerted               boolean NOT NULL DEFAULT false,
    frozen_until             timestamptz,
    CONSTRAINT accounts_reserve_nothing_negative CHECK (reserved_pico >= 0),
    CONSTRAINT accounts_never_overspent CHECK (settled_pico + reserved_pico <= ceiling_pico)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.01);
COMMENT ON COLUMN accounts.ceiling_pico IS
    'The greater of the credit and what is used and held. Admission compares with the'
    ' credit; this only makes overspending impossible to store.';
COMMENT ON COLUMN accounts.frozen_until IS
    'Until then nothing is admitted. As in organizations, here for admission alone.';

CREATE TABLE credit_grants (
    organization_id uuid NOT NULL REFERENCES accounts,
    id              uuid NOT NULL,
    kind            text NOT NULL,
    amount_pico     numeric(38,0) NOT NULL,
    reason          text NOT NULL,
    actor_type      text NOT NULL,
    actor_id        text,
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, id),
    CHECK (kind IN ('sandbox', 'test_payment', 'promotional', 'correction', 'backfill')),
    CHECK (amount_pico > 0 OR (kind = 'correction' AND amount_pico < 0))
);

CREATE TABLE spending_caps (
    organization_id uuid NOT NULL REFERENCES accounts,
    scope           text NOT NULL CHECK (scope IN ('organization', 'project', 'api_key')),
    scope_id        uuid NOT NULL,
    period          text NOT NULL CHECK (period IN ('day', 'week', 'month', 'lifetime')),
    limit_pico      numeric(38,0) NOT NULL CHECK (limit_pico >= 0),
    alert_percent   smallint NOT NULL CHECK (alert_percent BETWEEN 1 AND 100),
    PRIMARY KEY (organization_id, scope, scope_id, period)
);

CREATE TABLE spending_counters (
    organization_id        uuid NOT NULL,
    scope                  text NOT NULL,
    scope_id               uuid NOT NULL,
    window_start           date NOT NULL,
    settled_pico           numeric(38,0) NOT NULL DEFAULT 0,
    reserved_pico          numeric(38,0) NOT NULL DEFAULT 0,
    limit_pico             numeric(38,0),
    ceiling_pico           numeric(38,0),
    alert_pico             numeric(38,0),
    is_alerted             boolean NOT NULL DEFAULT false,
    short_start            date NOT NULL DEFAULT '-infinity',
    short_settled_pico     numeric(38,0) NOT NULL DEFAULT 0,
    short_reserved_pico    numeric(38,0) NOT NULL DEFAULT 0,
    short_limit_pico       numeric(38,0),
    short_ceiling_pico     numeric(38,0),
    short_alert_pico       numeric(38,0),
    short_is_alerted       boolean NOT NULL DEFAULT false,
    previous_settled_pico  numeric(38,0) NOT NULL DEFAULT 0,
    previous_reserved_pico numeric(38,0) NOT NULL DEFAULT 0,
    PRIMARY KEY (organization_id, scope, scope_id, window_start),
    CONSTRAINT counters_reserve_nothing_negative CHECK (reserved_pico >= 0),
    CONSTRAINT caps_never_crossed CHECK (settled_pico + reserved_pico <= ceiling_pico),
    CONSTRAINT short_windows_reserve_nothing_negative
        CHECK (short_reserved_pico >= 0 AND previous_reserved_pico >= 0),
    CONSTRAINT short_caps_never_crossed
        CHECK (short_settled_pico + short_reserved_pico <= short_ceiling_pico)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
COMMENT ON TABLE spending_counters IS
    'One row per window that was ever spent in, capped or not: a cap that is set in'
    ' mid-month counts the whole month. A lifetime starts at -infinity. The limit is a copy'
    ' of the cap.';
COMMENT ON COLUMN spending_counters.short_start IS
    'The newest day of a month''s row or week of a lifetime''s in which a hold was admitted;'
    ' the columns previous_* are of the day or week before.';

CREATE TABLE spending_alerts (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid NOT NULL,
    scope           text NOT NULL,
    scope_id        uuid NOT NULL,
    window_start    date NOT NULL,
    raised_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    noticed_at      timestamptz,
    period          text
);
COMMENT ON COLUMN spending_alerts.period IS
    'day or week; NULL for a month, a lifetime and the credit';
CREATE INDEX spending_alerts_unnoticed ON spending_alerts (id) WHERE noticed_at IS NULL;

CREATE TABLE price_revisions (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest     bytea NOT NULL UNIQUE,
    prices     jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TYPE ledger_hold AS (
    organization_id      uuid,
    reservation_id       uuid,
    admitted_at          timestamptz,
    deadline_at          timestamptz,
    amount_pico          bigint,
    project_id           uuid,
    api_key_id           uuid,
    model                text,
    price_revision       bigint,
    bills_without_answer boolean
);

CREATE TYPE ledger_resolution AS (
    organization_id     uuid,
    reservation_id      uuid,
    admitted_day        date,
    kind                text,
    excess_pico         bigint,
    input_tokens        bigint,
    cached_input_tokens bigint,
    output_tokens       bigint,
    images              bigint,
    input_pico          bigint,
    cached_input_pico   bigint,
    output_pico         bigint,
    image_pico          bigint,
    request_pico        bigint,
    delivered_tokens    bigint,
    is_estimated        boolean,
    operator_pays       text,
    model               text,
    cache_write_tokens  bigint,
    cache_write_pico    bigint
);
COMMENT ON COLUMN ledger_resolution.model IS
    'The model that answered, if it is not that of the hold';

CREATE TABLE ledger_entries (
    organization_id      uuid NOT NULL,
    admitted_day         date NOT NULL,
    reservation_id       uuid NOT NULL,
    phase                smallint NOT NULL CHECK (phase IN (0, 1)),
    kind                 text NOT NULL,
    is_backfill          boolean NOT NULL DEFAULT false,
    admitted_at          timestamptz NOT NULL,
    recorded_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    deadline_at          timestamptz NOT NULL,
    project_id           uuid NOT NULL,
    api_key_id           uuid NOT NULL,
    model                text NOT NULL,
    price_revision       bigint NOT NULL,
    instance_id          uuid NOT NULL,
    bills_without_answer boolean NOT NULL,
    held_pico            bigint NOT NULL CHECK (held_pico >= 0),
    posted_pico          bigint NOT NULL DEFAULT 0,
    excess_pico          bigint NOT NULL DEFAULT 0 CHECK (excess_pico >= 0),
    unknown_pico         bigint NOT NULL DEFAULT 0 CHECK (unknown_pico >= 0),
    input_tokens         bigint NOT NULL DEFAULT 0 CHECK (input_tokens >= 0),
    cached_input_tokens  bigint NOT NULL DEFAULT 0 CHECK (cached_input_tokens >= 0),
    output_tokens        bigint NOT NULL DEFAULT 0 CHECK (output_tokens >= 0),
    images               bigint NOT NULL DEFAULT 0 CHECK (images >= 0),
    input_pico           bigint NOT NULL DEFAULT 0 CHECK (input_pico >= 0),
    cached_input_pico    bigint NOT NULL DEFAULT 0 CHECK (cached_input_pico >= 0),
    output_pico          bigint NOT NULL DEFAULT 0 CHECK (output_pico >= 0),
    image_pico           bigint NOT NULL DEFAULT 0 CHECK (image_pico >= 0),
    request_pico         bigint NOT NULL DEFAULT 0 CHECK (request_pico >= 0),
    delivered_tokens     bigint,
    is_estimated         boolean NOT NULL DEFAULT false,
    operator_pays        text,
    cache_write_tokens   bigint NOT NULL DEFAULT 0,
    cache_write_pico     bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (organization_id, admitted_day, reservation_id, phase),
    CONSTRAINT entries_kind_fits_phase CHECK (
        CASE phase WHEN 0 THEN kind = 'reserve' ELSE kind IN ('post', 'void', 'write_off') END),
    CONSTRAINT entries_day_is_of_admission CHECK (
        admitted_day = (admitted_at AT TIME ZONE 'UTC')::date),
    CONSTRAINT entries_post_within_hold CHECK (posted_pico BETWEEN 0 AND held_pico),
    CONSTRAINT entries_parts_make_the_sum CHECK (
        posted_pico = input_pico + cached_input_pico + output_pico + image_pico + request_pico),
    -- Output above the caller's bound is an excess although the hold is not used up: what was
    -- held for the prompt does not pay for it.
    CONSTRAINT entries_excess_above_hold CHECK (
        excess_pico = 0 OR posted_pico = held_pico
        OR operator_pays IS NOT DISTINCT FROM 'above_hold'),
    CONSTRAINT entries_void_costs_nothing CHECK (
        kind <> 'void' OR posted_pico + excess_pico = 0),
    CONSTRAINT entries_hold_delivers_nothing CHECK (
        CASE phase WHEN 0 THEN delivered_tokens IS NULL AND NOT is_estimated
                               AND operator_pays IS NULL
                   ELSE delivered_tokens IS NULL OR delivered_tokens >= 0 END),
    CONSTRAINT cache_writes_are_input CHECK (
        cache_write_tokens BETWEEN 0 AND input_tokens
        AND cache_write_pico BETWEEN 0 AND input_pico)
) PARTITION BY RANGE (admitted_day);
COMMENT ON COLUMN ledger_entries.delivered_tokens IS
    'Counted output tokens that were sent to the caller. NULL: a hold, or not counted.';
COMMENT ON COLUMN ledger_entries.is_estimated IS
    'The engine reported no plausible usage, so Tollhouse counted it.';
COMMENT ON COLUMN ledger_entries.operator_pays IS
    'The rule under which the operator pays for a part. NULL: the caller pays for all of it.';
COMMENT ON COLUMN ledger_entries.cache_write_tokens IS
    'The part of input_tokens that was written to a cache, if the model has a price for it';
COMMENT ON COLUMN ledger_entries.cache_write_pico IS
    'The part of input_pico that cache_write_tokens cost';
CREATE INDEX ledger_entries_by_deadline ON ledger_entries (deadline_at)
 INCLUDE (instance_id) WHERE kind = 'reserve';

CREATE TABLE unsettled_holds (
    organization_id  uuid NOT NULL,
    admitted_day     date NOT NULL,
    reservation_id   uuid NOT NULL,
    held_pico        bigint NOT NULL,
    admitted_at      timestamptz NOT NULL,
    project_id       uuid NOT NULL,
    api_key_id       uuid NOT NULL,
    unsettled_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    decide_at        timestamptz NOT NULL,
    provable_charge  jsonb,
    delivered_tokens bigint,
    is_estimated     boolean NOT NULL DEFAULT false,
    PRIMARY KEY (organization_id, admitted_day, reservation_id)
);
COMMENT ON COLUMN unsettled_holds.provable_charge IS
    'The members of a charge, as its worker had counted them; null where a worker was lost';
CREATE INDEX unsettled_holds_to_decide ON unsettled_holds (decide_at);

CREATE TABLE operator_decisions (
    organization_id uuid NOT NULL,
    admitted_day    date NOT NULL,
    reservation_id  uuid NOT NULL,
    kind            text NOT NULL CHECK (kind IN ('settle', 'release', 'backfill')),
    reason          text NOT NULL,
    actor_type      text NOT NULL,
    actor_id        text,
    decided_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, admitted_day, reservation_id)
);
COMMENT ON TABLE operator_decisions IS
    'Who entered or ended a hold by hand, and why; the entries say what.';

CREATE TABLE reaper_progress (
    is_only       boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    checked_until timestamptz NOT NULL
);
COMMENT ON COLUMN reaper_progress.checked_until IS
    'Every hold with an earlier deadline is resolved or marked as unsettled.';
INSERT INTO reaper_progress (checked_until) VALUES ('-infinity');

CREATE TABLE reaped_instances (
    instance_id uuid PRIMARY KEY,
    reaped_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
