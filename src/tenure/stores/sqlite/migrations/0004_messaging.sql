-- breaking: no
-- since: 0.2.0

CREATE TABLE sink (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    url TEXT NOT NULL,
    projects TEXT NOT NULL,
    max_lag INTEGER NOT NULL,
    identity TEXT,
    paused_at INTEGER,
    paused_by TEXT,
    cut_off_at INTEGER,
    sent INTEGER NOT NULL,
    sent_at INTEGER,
    error TEXT,
    error_at INTEGER,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

ALTER TABLE task ADD COLUMN agent_type TEXT;
ALTER TABLE message ADD COLUMN action TEXT;
ALTER TABLE message ADD COLUMN expires_at INTEGER;

CREATE TABLE webhook (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    url TEXT NOT NULL,
    kinds TEXT NOT NULL,
    filter TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    disabled_for TEXT,
    disabled_at INTEGER,
    secret BLOB NOT NULL,
    previous BLOB NOT NULL,
    previous_until INTEGER,
    request_id TEXT,
    request_hash TEXT,
    since INTEGER NOT NULL,
    sequence INTEGER,
    parked INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    failing_since INTEGER,
    down_since INTEGER,
    up_at INTEGER,
    wait_until INTEGER,
    success_at INTEGER,
    failure_at INTEGER,
    status INTEGER,
    error TEXT,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

CREATE TABLE delivery (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    webhook TEXT NOT NULL,
    message TEXT NOT NULL,
    event TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    task TEXT,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    at INTEGER NOT NULL,
    parked_at INTEGER,
    tries INTEGER NOT NULL,
    first_at INTEGER,
    tried_at INTEGER,
    next_at INTEGER,
    status INTEGER,
    error TEXT,
    duration INTEGER,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

CREATE TABLE data_key (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    wrapped BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    retired_at INTEGER,
    PRIMARY KEY (tenant, project, id)
) STRICT;
-- A webhook's parked deliveries, and its log from the newest on.
CREATE INDEX delivery_of_webhook ON delivery (tenant, project, webhook, state, sequence, id);
