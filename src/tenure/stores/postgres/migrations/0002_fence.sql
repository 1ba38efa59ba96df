-- breaking: yes
-- since: 0.2.0

ALTER TABLE claim ADD COLUMN "metadata" text COLLATE "C" NOT NULL DEFAULT '{}';

ALTER TABLE claim ADD COLUMN "key" text COLLATE "C";
ALTER TABLE api_key ADD COLUMN "capabilities" text COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE api_key ADD COLUMN "used_at" bigint;

CREATE TABLE web_session (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "key" text COLLATE "C" NOT NULL,
    "key_digest" bytea NOT NULL,
    "created_at" bigint NOT NULL,
    "expires_at" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);
CREATE INDEX web_session_expires ON web_session (tenant, project, expires_at);
