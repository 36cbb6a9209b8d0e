-- Workers and the texts of the schema that they know, jobs, the replicas that they call, and
-- files that jobs wrote.

CREATE TABLE instances (
    id              uuid PRIMARY KEY,
    started_at      timestamptz NOT NULL,
    heartbeat_at    timestamptz NOT NULL,
    master_ids      text[] NOT NULL DEFAULT '{}',
    newest_revision text NOT NULL
);
COMMENT ON COLUMN instances.master_ids IS
    'Digests that name the accepted master secrets, the preferred one first';
COMMENT ON COLUMN instances.newest_revision IS
    'The newest schema revision that the worker knows';

CREATE TABLE schema_texts (
    name   text PRIMARY KEY,
    digest text NOT NULL
);
COMMENT ON TABLE schema_texts IS
    'The SHA-256 of each text of the schema and of revisions, as of the last migration';

CREATE TABLE job_leases (
    name       text PRIMARY KEY,
    holder     uuid NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE TABLE replica_reports (
    instance_id uuid NOT NULL,
    backend     text NOT NULL,
    replica     text NOT NULL,
    model       text NOT NULL,
    state       text NOT NULL,
    why         text NOT NULL,
    trial_at    timestamptz
);
COMMENT ON TABLE replica_reports IS 'The replicas that each worker leaves out, and why';

CREATE TABLE replica_orders (
    backend    text NOT NULL,
    replica    text NOT NULL,
    is_ejected boolean NOT NULL,
    ordered_at timestamptz NOT NULL,
    PRIMARY KEY (backend, replica)
);
COMMENT ON TABLE replica_orders IS 'The replicas that an operator left out or returned by hand';

CREATE TABLE archived_days (
    archived_table text NOT NULL CHECK (archived_table IN ('requests', 'ledger_entries')),
    day            date NOT NULL,
    location       text NOT NULL,
    row_count      bigint NOT NULL,
    size_bytes     bigint NOT NULL,
    sums           jsonb NOT NULL,
    files          jsonb NOT NULL,
    archived_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (archived_table, day)
);
COMMENT ON TABLE archived_days IS
    'Days whose files were read back and had the sums of the database. Their rows may be gone.';
