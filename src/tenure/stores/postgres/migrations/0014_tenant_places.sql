-- breaking: no
-- since: 0.2.0

-- Where a tenant's rows are, and its region; a move to another store; the term of the store's leader that serves a tenant.
ALTER TABLE tenant ADD COLUMN "isolation" text COLLATE "C" NOT NULL DEFAULT 'logical';
ALTER TABLE tenant ADD COLUMN "store" bytea NOT NULL DEFAULT '';
ALTER TABLE tenant ADD COLUMN "schema" text COLLATE "C";
ALTER TABLE tenant ADD COLUMN "region" text COLLATE "C";
ALTER TABLE tenant ADD COLUMN "moves" bigint NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN "moving" text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE tenant ADD COLUMN "other_isolation" text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE tenant ADD COLUMN "other_store" bytea NOT NULL DEFAULT '';
ALTER TABLE tenant ADD COLUMN "other_region" text COLLATE "C";
ALTER TABLE leader ADD COLUMN "store_term" bigint;
