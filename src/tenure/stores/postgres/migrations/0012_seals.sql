-- breaking: no
-- since: 0.2.0

-- Since when a project's log is sealed, its seals, and the leaves of what retention has deleted; a retention preset.
ALTER TABLE project ADD COLUMN "audited_at" bigint NOT NULL DEFAULT 0;
ALTER TABLE project ADD COLUMN "compliance" text COLLATE "C" NOT NULL DEFAULT '';

CREATE TABLE seal (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "number" bigint NOT NULL,
    "first" bigint NOT NULL,
    "last" bigint NOT NULL,
    "count" bigint NOT NULL,
    "leaves" bytea NOT NULL,
    "sequences" bytea NOT NULL,
    "previous" bytea NOT NULL,
    "head" bytea NOT NULL,
    "sealed_at" bigint NOT NULL,
    "form" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE pruned_leaves (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "leaves" bytea NOT NULL,
    "at" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

-- The seals of a project in order: the key begins with their number, which every project has.
CREATE INDEX seal_in_order ON seal (project, tenant, id);
