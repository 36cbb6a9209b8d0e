-- Policies, their publications, where those in effect apply, and what they decided.

CREATE TABLE policies (
    organization_id              uuid NOT NULL REFERENCES organizations,
    id                           uuid NOT NULL,
    name                         text NOT NULL,
    description                  text NOT NULL,
    state                        text NOT NULL,
    revision                     integer NOT NULL CHECK (revision >= 1),
    rule                         text NOT NULL,
    direction                    text NOT NULL,
    mode                         text NOT NULL,
    scope                        text NOT NULL,
    project_ids                  uuid[] NOT NULL,
    match_threshold_basis_points integer,
    base_version                 integer NOT NULL,
    current_version              integer,
    created_at                   timestamptz NOT NULL,
    updated_at                   timestamptz NOT NULL,
    ends_answer_early            boolean NOT NULL DEFAULT false,
    PRIMARY KEY (organization_id, id),
    CHECK (state IN ('draft', 'monitoring', 'enforcing', 'paused')),
    CHECK (direction IN ('request', 'response', 'both')),
    CHECK (mode IN ('monitoring', 'enforcing')),
    CHECK (scope IN ('organization', 'projects', 'unattached')),
    CHECK ((state = 'draft') = (current_version IS NULL))
);
COMMENT ON TABLE policies IS 'From rule to base_version: the draft';

CREATE TABLE policy_versions (
    organization_id                 uuid NOT NULL,
    policy_id                       uuid NOT NULL,
    version                         integer NOT NULL CHECK (version >= 1),
    rule                            text NOT NULL,
    direction                       text NOT NULL,
    mode                            text NOT NULL,
    scope                           text NOT NULL,
    project_ids                     uuid[] NOT NULL,
    match_threshold_basis_points    integer,
    threshold_in_force_basis_points integer NOT NULL,
    published_at                    timestamptz NOT NULL,
    ends_answer_early               boolean NOT NULL DEFAULT false,
    PRIMARY KEY (organization_id, policy_id, version),
    FOREIGN KEY (organization_id, policy_id) REFERENCES policies,
    CHECK (direction IN ('request', 'response', 'both')),
    CHECK (mode IN ('monitoring', 'enforcing')),
    CHECK (scope IN ('organization', 'projects', 'unattached'))
);
COMMENT ON COLUMN policy_versions.match_threshold_basis_points IS
    'As drafted: NULL asked for the default that held at publication, and is now in force';
COMMENT ON COLUMN policy_versions.ends_answer_early IS
    'A match in the part of an answer that is there ends it; of use only for answers';

CREATE TABLE policy_targets (
    organization_id uuid NOT NULL,
    policy_id       uuid NOT NULL,
    project_id      uuid,
    UNIQUE NULLS NOT DISTINCT (organization_id, project_id, policy_id),
    FOREIGN KEY (organization_id, policy_id) REFERENCES policies,
    FOREIGN KEY (organization_id, project_id) REFERENCES projects
);
COMMENT ON TABLE policy_targets IS
    'Where policies in effect apply by themselves; no project means all of them. Paused '
    'policies have no rows: nothing deletes a policy, so they would gather for ever';
CREATE INDEX policy_targets_of_policy ON policy_targets (organization_id, policy_id);

CREATE TABLE evaluations (
    organization_id uuid NOT NULL,
    day             date NOT NULL,
    request_id      uuid NOT NULL,
    direction       text NOT NULL CHECK (direction IN ('request', 'response')),
    mode            text NOT NULL CHECK (mode IN ('monitoring', 'enforcing')),
    project_id      uuid NOT NULL,
    api_key_id      uuid NOT NULL,
    evaluated_at    timestamptz NOT NULL,
    judging_ms      real NOT NULL,
    characters      bigint NOT NULL CHECK (characters >= 0),
    content_digest  bytea,
    policy_ids      uuid[] NOT NULL,
    versions        integer[] NOT NULL,
    outcomes        text[] NOT NULL,
    scores          integer[] NOT NULL,
    PRIMARY KEY (organization_id, day, request_id, direction, mode)
) PARTITION BY RANGE (day);
COMMENT ON COLUMN evaluations.content_digest IS
    'Keyed with the gateway''s secret and the organization. NULL: it could not be shown.';
COMMENT ON COLUMN evaluations.policy_ids IS
    'With versions, outcomes and scores: one place for each policy that was asked.';

CREATE TABLE policy_decisions (
    organization_id uuid NOT NULL,
    policy_id       uuid NOT NULL,
    day             date NOT NULL,
    request_id      uuid NOT NULL,
    direction       text NOT NULL CHECK (direction IN ('request', 'response')),
    version         integer NOT NULL,
    mode            text NOT NULL CHECK (mode IN ('monitoring', 'enforcing')),
    outcome         text NOT NULL CHECK (outcome IN ('match', 'failed')),
    threshold       integer NOT NULL,
    score           integer CHECK (score BETWEEN 0 AND 10000),
    lowest          integer CHECK (lowest BETWEEN 0 AND 10000),
    highest         integer CHECK (highest BETWEEN 0 AND 10000),
    coverage        integer CHECK (coverage BETWEEN 0 AND 10000),
    reason          text,
    windows         integer NOT NULL,
    is_cached       boolean NOT NULL,
    project_id      uuid NOT NULL,
    api_key_id      uuid NOT NULL,
    evaluated_at    timestamptz NOT NULL,
    PRIMARY KEY (organization_id, policy_id, day, request_id, direction)
) PARTITION BY RANGE (day);
CREATE INDEX policy_decisions_of_request
    ON policy_decisions (organization_id, day, request_id);

CREATE TABLE policy_days (
    organization_id uuid NOT NULL,
    policy_id       uuid NOT NULL,
    day             date NOT NULL,
    version         integer NOT NULL,
    direction       text NOT NULL,
    mode            text NOT NULL,
    outcome         text NOT NULL,
    bin             smallint NOT NULL CHECK (bin BETWEEN -1 AND 99),
    decisions       bigint NOT NULL,
    PRIMARY KEY (organization_id, policy_id, day, version, direction, mode, outcome, bin)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
COMMENT ON COLUMN policy_days.bin IS
    'A hundredth of all scores, the last one with 10000; -1: without a score.';
CREATE INDEX policy_days_by_day ON policy_days (day);
COMMENT ON INDEX policy_days_by_day IS 'For forgetting.';
