-- breaking: no
-- since: 0.2.0

-- The phase of a validation, and what is to be landed once it has passed.
ALTER TABLE "validation" ADD COLUMN IF NOT EXISTS "phase" LONGTEXT NOT NULL DEFAULT 'judge';
ALTER TABLE "validation" ADD COLUMN IF NOT EXISTS "land" LONGTEXT;
