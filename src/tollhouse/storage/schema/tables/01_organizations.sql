-- Organizations, their projects and keys, and what they may use.

CREATE TABLE organizations (
    id              uuid PRIMARY KEY,
    name            text NOT NULL,
    status          text NOT NULL CHECK (status IN ('active', 'suspended', 'closed')),
    policy_version  bigint NOT NULL DEFAULT 0,
    catalog_version bigint NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL,
    move_state      text,
    move_id         uuid,
    move_cell       text,
    frozen_until    timestamptz,
    CONSTRAINT organizations_move_state CHECK (move_state IN ('leaving', 'moved', 'arriving'))
);
COMMENT ON COLUMN organizations.frozen_until IS
    'Until then no key works. A freeze that is not released ends by itself.';

CREATE TABLE organization_checks (
    organization_id uuid NOT NULL REFERENCES organizations,
    check_name      text NOT NULL,
    granted_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, check_name)
);
COMMENT ON TABLE organization_checks IS
    'What an organization was found to fulfil. Models of the configuration may require it.';

CREATE TABLE projects (
    organization_id uuid NOT NULL REFERENCES organizations,
    id              uuid NOT NULL,
    name            text NOT NULL,
    created_at      timestamptz NOT NULL,
    archived_at     timestamptz,
    allowed_models  text[],
    PRIMARY KEY (organization_id, id)
);
COMMENT ON COLUMN projects.allowed_models IS 'NULL means all; a key may be narrower';

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
);
CREATE INDEX project_keys_of_project ON project_keys (organization_id, project_id, id);

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
);
COMMENT ON COLUMN admin_keys.permissions IS 'NULL means all, also those that come later';

CREATE TABLE key_directory (
    digest          bytea PRIMARY KEY,
    organization_id uuid NOT NULL,
    key_kind        text NOT NULL CHECK (key_kind IN ('project', 'admin')),
    key_id          uuid NOT NULL,
    expires_at      timestamptz
);
COMMENT ON TABLE key_directory IS
    'One row per secret, over all organizations. A rotated key has two for a while.';
CREATE INDEX key_directory_of_key ON key_directory (organization_id, key_id);
CREATE INDEX key_directory_expiring ON key_directory (expires_at)
 WHERE expires_at IS NOT NULL;

CREATE TABLE rate_limits (
    organization_id     uuid NOT NULL REFERENCES organizations,
    scope               text NOT NULL CHECK (scope IN ('organization', 'project', 'api_key')),
    scope_id            uuid NOT NULL,
    owner               text NOT NULL CHECK (owner IN ('operator', 'organization')),
    requests_per_minute bigint CHECK (requests_per_minute >= 1),
    tokens_per_minute   bigint CHECK (tokens_per_minute >= 1),
    concurrent_requests bigint CHECK (concurrent_requests >= 1),
    PRIMARY KEY (organization_id, scope_id, scope, owner),
    CONSTRAINT rate_limits_bound_something
        CHECK (num_nonnulls(requests_per_minute, tokens_per_minute, concurrent_requests) > 0)
);
COMMENT ON TABLE rate_limits IS
    'Of the rows of one scope the lower value holds, for each bound on its own';
