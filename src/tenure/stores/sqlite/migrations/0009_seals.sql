-- breaking: no
-- since: 0.2.0

-- Since when a project's log is sealed, its seals, and the leaves of what retention has deleted; a retention preset.
ALTER TABLE project ADD COLUMN audited_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project ADD COLUMN compliance TEXT NOT NULL DEFAULT '';

CREATE TABLE seal (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    number INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    count INTEGER NOT NULL,
    leaves BLOB NOT NULL,
    sequences BLOB NOT NULL,
    previous BLOB NOT NULL,
    head BLOB NOT NULL,
    sealed_at INTEGER NOT NULL,
    form INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

CREATE TABLE pruned_leaves (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    leaves BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;
