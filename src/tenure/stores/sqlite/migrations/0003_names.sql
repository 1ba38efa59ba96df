-- breaking: yes
-- since: 0.2.0

-- Columns named by the glossary. The log and archived documents keep the former names: see `core/former_names.py`.
DROP INDEX task_parked;
DROP INDEX task_unpaid;
ALTER TABLE task RENAME COLUMN answerable TO late_submit_open;
ALTER TABLE task RENAME COLUMN parked TO set_aside_for;
ALTER TABLE project RENAME COLUMN parked TO set_aside;
ALTER TABLE leader RENAME COLUMN ticks TO duties_begun;
ALTER TABLE trigger RENAME COLUMN told_at TO reported_at;
CREATE INDEX task_set_aside ON task (tenant, project, set_aside_for, id) WHERE set_aside_for IS NOT NULL;
-- The best of the tasks set aside for a budget are put back first.
CREATE INDEX task_unaffordable ON task (tenant, project, set_aside_for, band, boost, rank, id) WHERE price IS NOT NULL;

-- Statistics go with their index.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('task', 'task_set_aside', '1000 1000 200 2 1'),
    ('task', 'task_unaffordable', '100000 100000 20000 5000 3000 2000 1 1');
