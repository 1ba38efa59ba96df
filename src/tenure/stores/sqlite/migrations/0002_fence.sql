-- breaking: yes
-- since: 0.2.0

ALTER TABLE claim ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE claim ADD COLUMN requests TEXT NOT NULL DEFAULT '[]';
ALTER TABLE agent ADD COLUMN terminated_at INTEGER;
ALTER TABLE agent ADD COLUMN terminated_for TEXT;
