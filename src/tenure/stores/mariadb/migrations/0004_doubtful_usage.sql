-- breaking: no
-- since: 0.2.0

-- Of a reported cost: the part that no budget counts until a person has decided, and what people decided.
ALTER TABLE "usage" ADD COLUMN IF NOT EXISTS "doubtful" BIGINT;
ALTER TABLE "usage" ADD COLUMN IF NOT EXISTS "confirmed" BIGINT NOT NULL DEFAULT 0;
ALTER TABLE "usage" ADD COLUMN IF NOT EXISTS "rejected" BIGINT NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS usage_doubtful ON "usage" ("tenant", "project", "doubtful");
