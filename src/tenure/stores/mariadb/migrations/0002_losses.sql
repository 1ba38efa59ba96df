-- breaking: no
-- since: 0.2.0

-- How often in a row a task's holder lost it, since that session's last sign of work.
ALTER TABLE "task" ADD COLUMN IF NOT EXISTS "losses" BIGINT NOT NULL DEFAULT 0;
