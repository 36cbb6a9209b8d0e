-- Secrets of the deployment, sealed answers and sessions of the console.

CREATE TABLE data_keys (
    day     date PRIMARY KEY,
    wrapped bytea NOT NULL
);

CREATE TABLE idempotency_records (
    organization_id uuid NOT NULL,
    idempotency_key text NOT NULL,
    fingerprint     bytea NOT NULL,
    resource_id     uuid NOT NULL,
    creator_id      uuid NOT NULL,
    created_at      timestamptz NOT NULL,
    sealed          bytea,
    sealed_day      date,
    PRIMARY KEY (organization_id, idempotency_key)
);
CREATE INDEX idempotency_records_sealed ON idempotency_records (created_at)
 WHERE sealed IS NOT NULL;
CREATE INDEX idempotency_records_by_age ON idempotency_records (created_at);

CREATE TABLE console_sessions (
    id               uuid PRIMARY KEY,
    secret_digest    bytea NOT NULL UNIQUE,
    owner_id         uuid NOT NULL,
    key_digest       bytea,
    person_name      text,
    groups           text[] NOT NULL,
    organization_ids uuid[] NOT NULL,
    state_digest     bytea UNIQUE,
    created_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    ended_at         timestamptz,
    CHECK ((key_digest IS NULL) <> (person_name IS NULL))
);
COMMENT ON TABLE console_sessions IS
    'Sign-ins of browsers: by an Admin key, or by a person at the OpenID provider.';
COMMENT ON COLUMN console_sessions.owner_id IS 'The Admin key or the person';
COMMENT ON COLUMN console_sessions.key_digest IS
    'The secret of the Admin key as in key_directory: the session ends with it';
COMMENT ON COLUMN console_sessions.state_digest IS
    'The sign-in that made the session, which can make no second one';
CREATE INDEX console_sessions_owner ON console_sessions (owner_id, created_at);
CREATE INDEX console_sessions_expiry ON console_sessions (expires_at);
