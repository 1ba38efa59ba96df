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

CREATE TABLE webhook (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "url" text COLLATE "C" NOT NULL,
    "kinds" text COLLATE "C" NOT NULL,
    "filter" text COLLATE "C" NOT NULL,
    "enabled" boolean NOT NULL,
    "disabled_for" text COLLATE "C",
    "disabled_at" bigint,
    "secret" bytea NOT NULL,
    "previous" bytea NOT NULL,
    "previous_until" bigint,
    "request_id" text COLLATE "C",
    "request_hash" text COLLATE "C",
    "since" bigint NOT NULL,
    "sequence" bigint,
    "parked" bigint NOT NULL,
    "delivered" bigint NOT NULL,
    "failed" bigint NOT NULL,
    "tries" bigint NOT NULL,
    "failing_since" bigint,
    "down_since" bigint,
    "up_at" bigint,
    "wait_until" bigint,
    "success_at" bigint,
    "failure_at" bigint,
    "status" bigint,
    "error" text COLLATE "C",
    "created_by" text COLLATE "C" NOT NULL,
    "created_at" bigint NOT NULL,
    "changed_at" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE delivery (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "webhook" text COLLATE "C" NOT NULL,
    "message" text COLLATE "C" NOT NULL,
    "event" text COLLATE "C" NOT NULL,
    "sequence" bigint NOT NULL,
    "task" text COLLATE "C",
    "kind" text COLLATE "C" NOT NULL,
    "state" text COLLATE "C" NOT NULL,
    "at" bigint NOT NULL,
    "parked_at" bigint,
    "tries" bigint NOT NULL,
    "first_at" bigint,
    "tried_at" bigint,
    "next_at" bigint,
    "status" bigint,
    "error" text COLLATE "C",
    "duration" bigint,
    "body" bytea NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE data_key (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "wrapped" bytea NOT NULL,
    "created_at" bigint NOT NULL,
    "retired_at" bigint,
    PRIMARY KEY (id, project, tenant)
);
-- A webhook's parked deliveries, and its log from the newest on.
CREATE INDEX delivery_of_webhook ON delivery (tenant, "project", "webhook", "state", "sequence", "id");
