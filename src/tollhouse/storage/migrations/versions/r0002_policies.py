"""Policies, their publications, and where those in effect apply."""

from typing import Final

revision = "0002"
down_revision = "0001"

STATEMENTS: Final = (
    """
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
        PRIMARY KEY (organization_id, id),
        CHECK (state IN ('draft', 'monitoring', 'enforcing', 'paused')),
        CHECK (direction IN ('request', 'response', 'both')),
        CHECK (mode IN ('monitoring', 'enforcing')),
        CHECK (scope IN ('organization', 'projects', 'unattached')),
        CHECK ((state = 'draft') = (current_version IS NULL))
    )
    """,
    """
    COMMENT ON TABLE policies IS 'From rule to base_version: the draft'
    """,
    """
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
        PRIMARY KEY (organization_id, policy_id, version),
        FOREIGN KEY (organization_id, policy_id) REFERENCES policies,
        CHECK (direction IN ('request', 'response', 'both')),
        CHECK (mode IN ('monitoring', 'enforcing')),
        CHECK (scope IN ('organization', 'projects', 'unattached'))
    )
    """,
    """
    COMMENT ON COLUMN policy_versions.match_threshold_basis_points IS
        'As drafted: NULL asked for the default that held at publication, and is now in force'
    """,
    """
    ALTER TABLE policies
      ADD CONSTRAINT policies_current_version
          FOREIGN KEY (organization_id, id, current_version) REFERENCES policy_versions
    """,
    """
    CREATE TRIGGER policy_versions_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON policy_versions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
    """,
    """
    CREATE TABLE policy_targets (
        organization_id uuid NOT NULL,
        policy_id       uuid NOT NULL,
        project_id      uuid,
        UNIQUE NULLS NOT DISTINCT (organization_id, project_id, policy_id),
        FOREIGN KEY (organization_id, policy_id) REFERENCES policies,
        FOREIGN KEY (organization_id, project_id) REFERENCES projects
    )
    """,
    """
    COMMENT ON TABLE policy_targets IS
        'Where policies in effect apply by themselves; no project means all of them. Paused '
        'policies have no rows: nothing deletes a policy, so they would gather for ever'
    """,
    """
    CREATE INDEX policy_targets_of_policy ON policy_targets (organization_id, policy_id)
    """,
)
