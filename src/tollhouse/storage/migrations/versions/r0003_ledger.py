"""Money: accounts, caps with counters that always run, and append-only entries by day.

Every writer locks the organization's account first, so the rows behind it need no locks of
their own and cannot deadlock. A list of keys is joined by `CROSS JOIN LATERAL (... LIMIT 1)`
and rows are then updated by their place: on a table without statistics, such as a young
partition, the planner would otherwise read the whole table to find sixty-four rows.
"""

from typing import Final

from tollhouse.storage.migrations.ledger_functions import FUNCTIONS

revision = "0003"
down_revision = "0002"

_USED = """
    requests             bigint NOT NULL,
    input_tokens         numeric(38,0) NOT NULL,
    cached_input_tokens  numeric(38,0) NOT NULL,
    output_tokens        numeric(38,0) NOT NULL,
    images               numeric(38,0) NOT NULL,
    input_pico           numeric(38,0) NOT NULL,
    cached_input_pico    numeric(38,0) NOT NULL,
    output_pico          numeric(38,0) NOT NULL,
    image_pico           numeric(38,0) NOT NULL,
    request_pico         numeric(38,0) NOT NULL
"""

TABLES: Final = (
    """
    CREATE TABLE accounts (
        organization_id       uuid PRIMARY KEY REFERENCES organizations,
        credit_pico           numeric(38,0) NOT NULL DEFAULT 0,
        settled_pico          numeric(38,0) NOT NULL DEFAULT 0,
        reserved_pico         numeric(38,0) NOT NULL DEFAULT 0,
        ceiling_pico          numeric(38,0) NOT NULL DEFAULT 0,
        absorbed_excess_pico  numeric(38,0) NOT NULL DEFAULT 0,
        absorbed_unknown_pico numeric(38,0) NOT NULL DEFAULT 0,
        is_alerted            boolean NOT NULL DEFAULT false,
        CONSTRAINT accounts_reserve_nothing_negative CHECK (reserved_pico >= 0),
        CONSTRAINT accounts_never_overspent CHECK (settled_pico + reserved_pico <= ceiling_pico)
    ) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.01)
    """,
    """
    COMMENT ON COLUMN accounts.ceiling_pico IS
        'The greater of the credit and what is used and held. Admission compares with the'
        ' credit; this only makes overspending impossible to store.'
    """,
    """
    INSERT INTO accounts (organization_id) SELECT id FROM organizations
    """,
    """
    CREATE FUNCTION open_account() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO accounts (organization_id) VALUES (NEW.id);
        RETURN NULL;
    END
    $$
    """,
    """
    CREATE TRIGGER organizations_open_account
    AFTER INSERT ON organizations
    FOR EACH ROW EXECUTE FUNCTION open_account()
    """,
    """
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
    )
    """,
    """
    CREATE TRIGGER credit_grants_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON credit_grants
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
    """,
    """
    CREATE TABLE spending_caps (
        organization_id uuid NOT NULL REFERENCES accounts,
        scope           text NOT NULL CHECK (scope IN ('organization', 'project', 'api_key')),
        scope_id        uuid NOT NULL,
        period          text NOT NULL CHECK (period IN ('month', 'lifetime')),
        limit_pico      numeric(38,0) NOT NULL CHECK (limit_pico >= 0),
        alert_percent   smallint NOT NULL CHECK (alert_percent BETWEEN 1 AND 100),
        PRIMARY KEY (organization_id, scope, scope_id, period)
    )
    """,
    """
    CREATE TABLE spending_counters (
        organization_id uuid NOT NULL,
        scope           text NOT NULL,
        scope_id        uuid NOT NULL,
        window_start    date NOT NULL,
        settled_pico    numeric(38,0) NOT NULL DEFAULT 0,
        reserved_pico   numeric(38,0) NOT NULL DEFAULT 0,
        limit_pico      numeric(38,0),
        ceiling_pico    numeric(38,0),
        alert_pico      numeric(38,0),
        is_alerted      boolean NOT NULL DEFAULT false,
        PRIMARY KEY (organization_id, scope, scope_id, window_start),
        CONSTRAINT counters_reserve_nothing_negative CHECK (reserved_pico >= 0),
        CONSTRAINT caps_never_crossed CHECK (settled_pico + reserved_pico <= ceiling_pico)
    ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01)
    """,
    """
    COMMENT ON TABLE spending_counters IS
        'One row per window that was ever spent in, capped or not: a cap that is set in'
        ' mid-month counts the whole month. A lifetime starts at -infinity. The limit is a copy'
        ' of the cap.'
    """,
    """
    CREATE TABLE spending_alerts (
        id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        organization_id uuid NOT NULL,
        scope           text NOT NULL,
        scope_id        uuid NOT NULL,
        window_start    date NOT NULL,
        raised_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
        noticed_at      timestamptz
    )
    """,
    """
    CREATE INDEX spending_alerts_unnoticed ON spending_alerts (id) WHERE noticed_at IS NULL
    """,
    """
    CREATE TABLE price_revisions (
        id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        digest     bytea NOT NULL UNIQUE,
        prices     jsonb NOT NULL,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    """
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
        PRIMARY KEY (organization_id, admitted_day, reservation_id, phase),
        CONSTRAINT entries_kind_fits_phase CHECK (
            CASE phase WHEN 0 THEN kind = 'reserve' ELSE kind IN ('post', 'void', 'absorb') END),
        CONSTRAINT entries_day_is_of_admission CHECK (
            admitted_day = (admitted_at AT TIME ZONE 'UTC')::date),
        CONSTRAINT entries_post_within_hold CHECK (posted_pico BETWEEN 0 AND held_pico),
        CONSTRAINT entries_parts_make_the_sum CHECK (
            posted_pico = input_pico + cached_input_pico + output_pico + image_pico + request_pico),
        CONSTRAINT entries_excess_above_hold CHECK (excess_pico = 0 OR posted_pico = held_pico),
        CONSTRAINT entries_void_costs_nothing CHECK (
            kind <> 'void' OR posted_pico + excess_pico = 0)
    ) PARTITION BY RANGE (admitted_day)
    """,
    """
    CREATE INDEX ledger_entries_by_deadline ON ledger_entries (deadline_at)
     INCLUDE (instance_id) WHERE kind = 'reserve'
    """,
    """
    CREATE FUNCTION refuse_row_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
    END
    $$
    """,
    """
    CREATE TRIGGER ledger_entries_append_only
    BEFORE UPDATE OR DELETE ON ledger_entries
    FOR EACH ROW EXECUTE FUNCTION refuse_row_change()
    """,
    """
    CREATE TABLE unsettled_holds (
        organization_id uuid NOT NULL,
        admitted_day    date NOT NULL,
        reservation_id  uuid NOT NULL,
        held_pico       bigint NOT NULL,
        admitted_at     timestamptz NOT NULL,
        project_id      uuid NOT NULL,
        api_key_id      uuid NOT NULL,
        unsettled_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
        decide_at       timestamptz NOT NULL,
        PRIMARY KEY (organization_id, admitted_day, reservation_id)
    )
    """,
    """
    CREATE INDEX unsettled_holds_to_decide ON unsettled_holds (decide_at)
    """,
    """
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
    )
    """,
    """
    COMMENT ON TABLE operator_decisions IS
        'Who entered or ended a hold by hand, and why; the entries say what.'
    """,
    """
    CREATE TRIGGER operator_decisions_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON operator_decisions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
    """,
    """
    CREATE TABLE reaper_progress (
        is_only       boolean PRIMARY KEY DEFAULT true CHECK (is_only),
        checked_until timestamptz NOT NULL
    )
    """,
    """
    COMMENT ON COLUMN reaper_progress.checked_until IS
        'Every hold with an earlier deadline is resolved or marked as unsettled.'
    """,
    """
    INSERT INTO reaper_progress (checked_until) VALUES ('-infinity')
    """,
    """
    CREATE TABLE reaped_instances (
        instance_id uuid PRIMARY KEY,
        reaped_at   timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    f"""
    CREATE TABLE cost_daily (
        organization_id uuid NOT NULL,
        day             date NOT NULL,
        project_id      uuid NOT NULL,
        api_key_id      uuid NOT NULL,
        model           text NOT NULL,
        {_USED},
        PRIMARY KEY (organization_id, day, project_id, api_key_id, model)
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)
    """,
    f"""
    CREATE TABLE cost_hourly (
        organization_id uuid NOT NULL,
        hour            timestamptz NOT NULL,
        project_id      uuid NOT NULL,
        api_key_id      uuid NOT NULL,
        model           text NOT NULL,
        {_USED},
        PRIMARY KEY (organization_id, hour, project_id, api_key_id, model)
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)
    """,
    f"""
    CREATE TABLE ledger_closings (
        organization_id uuid NOT NULL,
        admitted_day    date NOT NULL,
        project_id      uuid NOT NULL,
        api_key_id      uuid NOT NULL,
        model           text NOT NULL,
        {_USED},
        excess_pico     numeric(38,0) NOT NULL,
        unknown_pico    numeric(38,0) NOT NULL,
        PRIMARY KEY (organization_id, admitted_day, project_id, api_key_id, model)
    )
    """,
    """
    CREATE TABLE closed_days (
        day       date PRIMARY KEY,
        closed_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    """
    COMMENT ON TABLE ledger_closings IS
        'The sums of a day whose entries were dropped; a rebuilt balance starts from these.'
    """,
    """
    CREATE TRIGGER ledger_closings_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_closings
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
    """,
)

STATEMENTS: Final = (*TABLES, *FUNCTIONS)
