-- breaking: no
-- since: 0.2.0

-- The public key of a session; and that a project has such a session.
ALTER TABLE session ADD COLUMN public_key TEXT;
ALTER TABLE project ADD COLUMN signs INTEGER NOT NULL DEFAULT 0;

CREATE TABLE signature (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    task TEXT NOT NULL,
    generation INTEGER NOT NULL,
    session TEXT NOT NULL,
    public_key TEXT NOT NULL,
    value TEXT NOT NULL,
    request_id TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

CREATE INDEX signature_task ON signature (tenant, project, task, generation);
