-- breaking: no
-- since: 0.2.0

-- Where a tenant's rows are, and its region; a move to another store; the term of the store's leader that serves a tenant.
ALTER TABLE tenant ADD COLUMN isolation TEXT NOT NULL DEFAULT 'logical';
ALTER TABLE tenant ADD COLUMN store BLOB NOT NULL DEFAULT x'';
ALTER TABLE tenant ADD COLUMN schema TEXT;
ALTER TABLE tenant ADD COLUMN region TEXT;
ALTER TABLE tenant ADD COLUMN moves INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN moving TEXT NOT NULL DEFAULT '';
ALTER TABLE tenant ADD COLUMN other_isolation TEXT NOT NULL DEFAULT '';
ALTER TABLE tenant ADD COLUMN other_store BLOB NOT NULL DEFAULT x'';
ALTER TABLE tenant ADD COLUMN other_region TEXT;
ALTER TABLE leader ADD COLUMN store_term INTEGER;
