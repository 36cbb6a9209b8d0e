"""Organizations, projects, keys and what stands beside every room: audit, idempotency, leases."""

from typing import Final

revision = "0001"
down_revision = None

STATEMENTS: Final = (
    """
    CREATE TABLE organizations (
        id              uuid PRIMARY KEY,
        name            text NOT NULL,
        status          text NOT NULL CHECK (status IN ('active', 'suspended', 'closed')),
        policy_version  bigint NOT NULL DEFAULT 0,
        catalog_version bigint NOT NULL DEFAULT 0,
        created_at      timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE projects (
        organization_id uuid NOT NULL REFERENCES organizations,
        id              uuid NOT NULL,
        name            text NOT NULL,
        created_at      timestamptz NOT NULL,
        archived_at     timestamptz,
        PRIMARY KEY (organization_id, id)
    )
    """,
    """
    CREATE TABLE project_keys (
        organization_id uuid NOT NULL,
        id              uuid NOT NULL,
        project_id      uuid NOT NULL,
        name            text NOT NULL,
        redacted_value  text NOT NULL,
        permissions     text[] NOT NULL,
        allowed_models  text[],
        created_at      timestamptz NOT NULL,
        last_used_at    timestamptz,
        expires_at      timestamptz,
        suspended_at    timestamptz,
        revoked_at      timestamptz,
        PRIMARY KEY (organization_id, id),
        FOREIGN KEY (organization_id, project_id) REFERENCES projects
    )
    """,
    """
    CREATE INDEX project_keys_of_project ON project_keys (organization_id, project_id, id)
    """,
    """
    CREATE TABLE admin_keys (
        organization_id uuid NOT NULL REFERENCES organizations,
        id              uuid NOT NULL,
        name            text NOT NULL,
        redacted_value  text NOT NULL,
        permissions     text[],
        created_at      timestamptz NOT NULL,
        last_used_at    timestamptz,
        expires_at      timestamptz,
        revoked_at      timestamptz,
        PRIMARY KEY (organization_id, id)
    )
    """,
    """
    COMMENT ON COLUMN admin_keys.permissions IS 'NULL means all, also those that come later'
    """,
    """
    CREATE TABLE key_directory (
        digest          bytea PRIMARY KEY,
        pepper_version  smallint NOT NULL,
        organization_id uuid NOT NULL,
        key_kind        text NOT NULL CHECK (key_kind IN ('project', 'admin')),
        key_id          uuid NOT NULL,
        expires_at      timestamptz
    )
    """,
    """
    COMMENT ON TABLE key_directory IS
        'One row per secret, over all organizations. A rotated key has two for a while.'
    """,
    """
    CREATE INDEX key_directory_of_key ON key_directory (organization_id, key_id)
    """,
    """
    CREATE INDEX key_directory_expiring ON key_directory (expires_at)
     WHERE expires_at IS NOT NULL
    """,
    """
    CREATE TABLE peppers (
        version       smallint PRIMARY KEY,
        check_digest  bytea NOT NULL,
        first_used_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    """
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
    )
    """,
    """
    CREATE INDEX idempotency_records_sealed ON idempotency_records (created_at)
     WHERE sealed IS NOT NULL
    """,
    """
    CREATE INDEX idempotency_records_by_age ON idempotency_records (created_at)
    """,
    """
    CREATE TABLE data_keys (
        day     date PRIMARY KEY,
        wrapped bytea NOT NULL
    )
    """,
    """
    CREATE TABLE audit_log (
        organization_id uuid NOT NULL,
        id              uuid NOT NULL,
        occurred_at     timestamptz NOT NULL,
        actor_type      text NOT NULL CHECK (actor_type IN ('admin_api_key', 'operator')),
        actor_id        text,
        action          text NOT NULL,
        resource_type   text NOT NULL,
        resource_id     text NOT NULL,
        changes         jsonb NOT NULL,
        digest_before   bytea,
        digest_after    bytea,
        request_id      uuid,
        PRIMARY KEY (organization_id, id)
    )
    """,
    """
    CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
    END
    $$
    """,
    """
    CREATE TRIGGER audit_log_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
    """,
    """
    CREATE TABLE job_leases (
        name       text PRIMARY KEY,
        holder     uuid NOT NULL,
        expires_at timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE instances (
        id              uuid PRIMARY KEY,
        started_at      timestamptz NOT NULL,
        heartbeat_at    timestamptz NOT NULL,
        pepper_versions smallint[] NOT NULL
    )
    """,
)
