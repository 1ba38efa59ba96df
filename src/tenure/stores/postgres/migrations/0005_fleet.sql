-- breaking: no
-- since: 0.2.0

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
