-- breaking: no
-- since: 0.2.0

-- order and assignment
ALTER TABLE task_base ADD COLUMN "estimate" bigint;
ALTER TABLE task_base ADD COLUMN "length" bigint;
ALTER TABLE task_base ADD COLUMN "order_turn" bigint NOT NULL DEFAULT 0;
ALTER TABLE task_base ADD COLUMN "offer_term" bigint;
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
    h."plain", b."agent_type", b."estimate", b."length", b."order_turn", b."offer_term"
    FROM task_hot AS h JOIN task_base AS b ON b.tenant = h.tenant AND b.project = h.project AND b.id = h.id;

ALTER TABLE claim ADD COLUMN "term" bigint;
ALTER TABLE claim ADD COLUMN "lease_why" text COLLATE "C";
ALTER TABLE track ADD COLUMN "max_agents" bigint NOT NULL DEFAULT 1;
ALTER TABLE track ADD COLUMN "assigned" text COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE track ADD COLUMN "pinned" text COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE track ADD COLUMN "idle_since" text COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE project ADD COLUMN "router" boolean NOT NULL DEFAULT false;
ALTER TABLE project ADD COLUMN "ordering" text COLLATE "C" NOT NULL DEFAULT 'priority';
ALTER TABLE project ADD COLUMN "order_turn" bigint NOT NULL DEFAULT 0;
ALTER TABLE project ADD COLUMN "lead" text COLLATE "C" NOT NULL DEFAULT 'default';
ALTER TABLE leader ADD COLUMN "process" text COLLATE "C";
ALTER TABLE leader ADD COLUMN "is_auto" boolean NOT NULL DEFAULT false;
ALTER TABLE leader ADD COLUMN "is_lost" boolean NOT NULL DEFAULT false;

-- pools
CREATE TABLE pool (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "program" text COLLATE "C" NOT NULL,
    "spawner" text COLLATE "C" NOT NULL,
    "size" bigint NOT NULL,
    "idle" bigint NOT NULL,
    "capabilities" text COLLATE "C" NOT NULL,
    "types" text COLLATE "C" NOT NULL,
    "tracks" text COLLATE "C" NOT NULL,
    "models" text COLLATE "C" NOT NULL,
    "enabled" boolean NOT NULL,
    "disabled_for" text COLLATE "C",
    "created_by" text COLLATE "C" NOT NULL,
    "created_at" bigint NOT NULL,
    "changed_at" bigint NOT NULL,
    "spawned" bigint NOT NULL,
    "failures" bigint NOT NULL,
    "wait_until" bigint,
    "error" text COLLATE "C",
    "error_at" bigint,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE spawn (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "pool" text COLLATE "C" NOT NULL,
    "place" bigint NOT NULL,
    "agent" text COLLATE "C" NOT NULL,
    "task" text COLLATE "C" NOT NULL,
    "task_key" text COLLATE "C" NOT NULL,
    "spawner" text COLLATE "C" NOT NULL,
    "home" text COLLATE "C" NOT NULL,
    "state" text COLLATE "C" NOT NULL,
    "handle" text COLLATE "C",
    "remote_session" text COLLATE "C",
    "session" text COLLATE "C",
    "term" bigint NOT NULL,
    "started_at" bigint NOT NULL,
    "offer_until" bigint NOT NULL,
    "running_at" bigint,
    "claimed_at" bigint,
    "idle_at" bigint,
    "ended_at" bigint,
    "why" text COLLATE "C",
    "api_key" text COLLATE "C",
    "funds" text COLLATE "C" NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE INDEX spawn_state ON spawn (tenant, "state", "project", "id");

-- health
ALTER TABLE agent ADD COLUMN "managed" boolean NOT NULL DEFAULT false;
ALTER TABLE agent ADD COLUMN "task" text COLLATE "C";
ALTER TABLE agent ADD COLUMN "percent" bigint;
ALTER TABLE agent ADD COLUMN "metadata" text COLLATE "C" NOT NULL DEFAULT '{}';

CREATE TABLE health_minute (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "agent" text COLLATE "C" NOT NULL,
    "at" bigint NOT NULL,
    "health" text COLLATE "C" NOT NULL,
    "memory_mb" bigint,
    "cpu_percent" bigint,
    "percent" bigint,
    PRIMARY KEY (id, project, tenant)
) WITH (fillfactor = 70);
