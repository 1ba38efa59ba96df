-- breaking: no
-- since: 0.2.0

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
