-- breaking: no
-- since: 0.2.0

CREATE TABLE sink (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "sequence" bigint NOT NULL,
    "url" text COLLATE "C" NOT NULL,
    "projects" text COLLATE "C" NOT NULL,
    "max_lag" bigint NOT NULL,
    "identity" text COLLATE "C",
    "paused_at" bigint,
    "paused_by" text COLLATE "C",
    "cut_off_at" bigint,
    "sent" bigint NOT NULL,
    "sent_at" bigint,
    "error" text COLLATE "C",
    "error_at" bigint,
    "created_at" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

ALTER TABLE message ADD COLUMN "action" text COLLATE "C";
ALTER TABLE message ADD COLUMN "expires_at" bigint;
