-- breaking: yes
-- since: 0.2.0

ALTER TABLE claim ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE claim ADD COLUMN requests TEXT NOT NULL DEFAULT '[]';
ALTER TABLE agent ADD COLUMN terminated_at INTEGER;
ALTER TABLE agent ADD COLUMN terminated_for TEXT;

-- What the store keeps of its writers' clocks: see core/clock.py.
ALTER TABLE meta ADD COLUMN boot TEXT NOT NULL DEFAULT '';
ALTER TABLE meta ADD COLUMN clock_offset INTEGER NOT NULL DEFAULT 0;
ALTER TABLE meta ADD COLUMN ahead_at INTEGER;
ALTER TABLE meta ADD COLUMN ahead_uptime INTEGER;
