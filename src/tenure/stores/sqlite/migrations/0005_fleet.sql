-- breaking: no
-- since: 0.2.0

-- order and assignment
ALTER TABLE task ADD COLUMN estimate INTEGER;
ALTER TABLE task ADD COLUMN length INTEGER;
ALTER TABLE task ADD COLUMN order_turn INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN offer_term INTEGER;
ALTER TABLE claim ADD COLUMN term INTEGER;
ALTER TABLE claim ADD COLUMN lease_why TEXT;
ALTER TABLE track ADD COLUMN max_agents INTEGER NOT NULL DEFAULT 1;
ALTER TABLE track ADD COLUMN assigned TEXT NOT NULL DEFAULT '{}';
ALTER TABLE track ADD COLUMN pinned TEXT NOT NULL DEFAULT '[]';
ALTER TABLE track ADD COLUMN idle_since TEXT NOT NULL DEFAULT '{}';
ALTER TABLE project ADD COLUMN router INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project ADD COLUMN ordering TEXT NOT NULL DEFAULT 'priority';
ALTER TABLE project ADD COLUMN order_turn INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project ADD COLUMN lead TEXT NOT NULL DEFAULT 'default';
ALTER TABLE leader ADD COLUMN process TEXT;
ALTER TABLE leader ADD COLUMN is_auto INTEGER NOT NULL DEFAULT 0;
ALTER TABLE leader ADD COLUMN is_lost INTEGER NOT NULL DEFAULT 0;

-- pools
CREATE TABLE pool (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    program TEXT NOT NULL,
    spawner TEXT NOT NULL,
    size INTEGER NOT NULL,
    idle INTEGER NOT NULL,
    capabilities TEXT NOT NULL,
    types TEXT NOT NULL,
    tracks TEXT NOT NULL,
    models TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    disabled_for TEXT,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    spawned INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    wait_until INTEGER,
    error TEXT,
    error_at INTEGER,
    PRIMARY KEY (tenant, project, id)
) STRICT;

CREATE TABLE spawn (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    pool TEXT NOT NULL,
    place INTEGER NOT NULL,
    agent TEXT NOT NULL,
    task TEXT NOT NULL,
    task_key TEXT NOT NULL,
    spawner TEXT NOT NULL,
    home TEXT NOT NULL,
    state TEXT NOT NULL,
    handle TEXT,
    remote_session TEXT,
    session TEXT,
    term INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    offer_until INTEGER NOT NULL,
    running_at INTEGER,
    claimed_at INTEGER,
    idle_at INTEGER,
    ended_at INTEGER,
    why TEXT,
    api_key TEXT,
    funds TEXT NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

CREATE INDEX spawn_state ON spawn (tenant, state, project, id);

-- health
ALTER TABLE agent ADD COLUMN managed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agent ADD COLUMN task TEXT;
ALTER TABLE agent ADD COLUMN percent INTEGER;
ALTER TABLE agent ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';

CREATE TABLE health_minute (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    at INTEGER NOT NULL,
    health TEXT NOT NULL,
    memory_mb INTEGER,
    cpu_percent INTEGER,
    percent INTEGER,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;
