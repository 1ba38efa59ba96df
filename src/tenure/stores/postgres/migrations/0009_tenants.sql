-- breaking: no
-- since: 0.2.0

CREATE TABLE tenant (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "tier" text COLLATE "C" NOT NULL,
    "limits" text COLLATE "C" NOT NULL,
    "created_by" text COLLATE "C" NOT NULL,
    "created_at" bigint NOT NULL,
    "changed_at" bigint NOT NULL,
    "closed_at" bigint,
    "closed_for" text COLLATE "C",
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE member (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "role" text COLLATE "C" NOT NULL,
    "projects" text COLLATE "C" NOT NULL,
    "invited_by" text COLLATE "C" NOT NULL,
    "invited_at" bigint NOT NULL,
    "changed_at" bigint NOT NULL,
    "joined_at" bigint,
    "left_at" bigint,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE claim_share (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "granted" bigint NOT NULL,
    "whole" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);
