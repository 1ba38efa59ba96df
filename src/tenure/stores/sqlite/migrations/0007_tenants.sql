-- breaking: no
-- since: 0.2.0

CREATE TABLE tenant (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    tier TEXT NOT NULL,
    limits TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    closed_at INTEGER,
    closed_for TEXT,
    PRIMARY KEY (tenant, project, id)
) STRICT;

CREATE TABLE member (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    projects TEXT NOT NULL,
    invited_by TEXT NOT NULL,
    invited_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    joined_at INTEGER,
    left_at INTEGER,
    PRIMARY KEY (tenant, project, id)
) STRICT;

CREATE TABLE claim_share (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    granted INTEGER NOT NULL,
    whole INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;
