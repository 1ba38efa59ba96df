-- breaking: no
-- since: 0.2.0

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
