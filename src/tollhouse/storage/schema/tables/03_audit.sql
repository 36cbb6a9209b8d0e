-- The audit log, and a hash chain of each organization's rows.

CREATE TABLE audit_log (
    organization_id uuid NOT NULL,
    id              uuid NOT NULL,
    occurred_at     timestamptz NOT NULL,
    actor_type      text NOT NULL
                    CHECK (actor_type IN ('admin_api_key', 'operator', 'person')),
    actor_id        text,
    action          text NOT NULL,
    resource_type   text NOT NULL,
    resource_id     text NOT NULL,
    changes         jsonb NOT NULL,
    digest_before   bytea,
    digest_after    bytea,
    request_id      uuid,
    actor_name      text,
    PRIMARY KEY (organization_id, id)
);

CREATE TABLE audit_heads (
    organization_id uuid PRIMARY KEY,
    number          bigint NOT NULL,
    hash            bytea NOT NULL
);
COMMENT ON TABLE audit_heads IS 'The last row of each organization''s audit chain';

CREATE TABLE audit_chain (
    organization_id uuid NOT NULL,
    number          bigint NOT NULL,
    audit_id        uuid NOT NULL,
    previous_hash   bytea NOT NULL,
    hash            bytea NOT NULL,
    PRIMARY KEY (organization_id, number)
);
COMMENT ON COLUMN audit_chain.hash IS
    'SHA-256 over the previous hash, the number and all columns of the audit row';
