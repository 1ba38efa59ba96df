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

ALTER TABLE message ADD COLUMN action TEXT;
ALTER TABLE message ADD COLUMN expires_at INTEGER;
