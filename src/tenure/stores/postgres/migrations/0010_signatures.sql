-- breaking: no
-- since: 0.2.0

-- The public key of a session; and that a project has such a session, so that its claims take no fast path.
ALTER TABLE session ADD COLUMN "public_key" text COLLATE "C";
ALTER TABLE project ADD COLUMN "signs" boolean NOT NULL DEFAULT false;

CREATE TABLE signature (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "task" text COLLATE "C" NOT NULL,
    "generation" bigint NOT NULL,
    "session" text COLLATE "C" NOT NULL,
    "public_key" text COLLATE "C" NOT NULL,
    "value" text COLLATE "C" NOT NULL,
    "request_id" text COLLATE "C",
    "at" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE INDEX signature_task ON signature (task, generation, project, tenant);
