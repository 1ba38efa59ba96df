-- breaking: no
-- since: 0.2.0

-- Of a reported cost: the part that no budget counts until a person has decided, and what people decided.
ALTER TABLE usage ADD COLUMN doubtful bigint;
ALTER TABLE usage ADD COLUMN confirmed bigint NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN rejected bigint NOT NULL DEFAULT 0;
CREATE INDEX usage_doubtful ON usage (tenant, project) WHERE doubtful IS NOT NULL;
