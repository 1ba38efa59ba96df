-- breaking: yes
-- since: 0.2.0

ALTER TABLE claim ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';

ALTER TABLE claim ADD COLUMN key TEXT;
ALTER TABLE api_key ADD COLUMN capabilities TEXT NOT NULL DEFAULT '[]';
ALTER TABLE api_key ADD COLUMN used_at INTEGER;

CREATE TABLE web_session (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    key TEXT NOT NULL,
    key_digest BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;
CREATE INDEX web_session_expires ON web_session (tenant, project, expires_at);
