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

ALTER TABLE task_base ADD COLUMN "agent_type" text COLLATE "C";
CREATE OR REPLACE VIEW task AS SELECT h.tenant, h."project", h."id", b."key", b."ref", b."track", h."sequence", b."type",
    b."dag", b."parent", b."local_name", b."parent_run", b."depth", b."root", b."lineage", b."children",
    b."idempotency_key", h."state", b."state_before", b."pauses", b."cancelled", b."answers", h."run", h."generation",
    h."attempts", b."given_back", b."max_attempts", b."retry_at", b."last_error", b."troubled", b."failures",
    b."cool_offs", b."priority", b."boost", b."deadline", b."not_before", b."missed", b."height", b."waits_on",
    b."unmet", b."dependents", b."requires", b."region", b."tags", b."guarded", b."capped", b."checked",
    b."brief_number", b."models", b."fallback_models", b."metered", h."agent", h."session", h."claimed_at", h."lease",
    h."lease_until", h."renewals", h."presented_at", h."claim_epoch", h."late_submit_open", b."wanted", h."percent",
    b."step", b."progress_at", b."done_by", b."warned_at", b."funded", b."reserved", b."unseen_since",
    b."max_duration", b."artifacts", b."offer_to", b."offer_until", h."set_aside_for", h."price", h."work_product",
    b."created_by", b."trace_id", b."created_at", h."updated_at", h."ready_at", h."started_at", h."completed_at",
    b."failed_at", b."dead_lettered_at", b."archived_at", h."version", h."lane", h."band", h."rank", h."due_at",
    h."plain", b."agent_type" FROM task_hot AS h JOIN task_base AS b ON b.tenant = h.tenant AND b.project = h.project AND b.id = h.id;

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
