-- breaking: yes
-- since: 0.2.0

ALTER TABLE claim ADD COLUMN "metadata" text COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE claim ADD COLUMN "requests" text COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE agent ADD COLUMN "terminated_at" bigint;
ALTER TABLE agent ADD COLUMN "terminated_for" text COLLATE "C";
