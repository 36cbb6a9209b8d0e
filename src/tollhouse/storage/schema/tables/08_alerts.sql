-- Alerts: who is told about what, and the outbox of what is to be delivered.

CREATE TABLE alert_subscriptions (
    organization_id         uuid NOT NULL REFERENCES organizations,
    id                      uuid NOT NULL,
    name                    text NOT NULL,
    url                     text,
    emails                  text[] NOT NULL,
    cap_percents            smallint[] NOT NULL,
    credit_percents         smallint[] NOT NULL,
    credit_below_pico       numeric(38,0),
    policy_matches_per_hour integer CHECK (policy_matches_per_hour > 0),
    unsettled_requests      integer CHECK (unsettled_requests > 0),
    backend_down            boolean NOT NULL,
    secret                  bytea,
    previous_secret         bytea,
    previous_secret_until   timestamptz,
    created_at              timestamptz NOT NULL,
    PRIMARY KEY (organization_id, id),
    CONSTRAINT subscriptions_have_one_destination CHECK (
        (url IS NULL) = (cardinality(emails) > 0))
);
CREATE INDEX alert_subscriptions_backend_down ON alert_subscriptions (organization_id)
 WHERE backend_down;

CREATE TABLE alert_deliveries (
    organization_id uuid NOT NULL,
    id              uuid NOT NULL,
    subscription_id uuid NOT NULL,
    type            text NOT NULL,
    dedup_key       text NOT NULL,
    details         jsonb NOT NULL,
    raised_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    state           text NOT NULL DEFAULT 'pending'
                    CHECK (state IN ('pending', 'delivered', 'failed', 'withheld')),
    attempts        smallint NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_attempt_at timestamptz,
    last_status     smallint,
    last_error      text,
    PRIMARY KEY (organization_id, id),
    UNIQUE (organization_id, subscription_id, dedup_key)
);
COMMENT ON COLUMN alert_deliveries.dedup_key IS
    'Subject, window and threshold: a subscription is told of the three once.';
CREATE INDEX alert_deliveries_due ON alert_deliveries (next_attempt_at) WHERE state = 'pending';
CREATE INDEX alert_deliveries_by_age ON alert_deliveries (raised_at);

CREATE TABLE alert_reached (
    organization_id uuid NOT NULL,
    subscription_id uuid NOT NULL,
    subject         text NOT NULL,
    PRIMARY KEY (organization_id, subscription_id, subject),
    FOREIGN KEY (organization_id, subscription_id) REFERENCES alert_subscriptions ON DELETE CASCADE
);
COMMENT ON TABLE alert_reached IS
    'Thresholds that the latest look found reached, with their windows. They are told once.';

CREATE TABLE alert_hours (
    organization_id uuid PRIMARY KEY,
    hour            timestamptz NOT NULL,
    attempts        integer NOT NULL
);
COMMENT ON TABLE alert_hours IS
    'Attempts in the latest hour. Kept apart from deliveries, which go with their subscription.';
