-- breaking: no
-- since: 0.2.0

-- That a task has sealed values; and that a project has had such a task.
ALTER TABLE task ADD COLUMN sealed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project ADD COLUMN sealed INTEGER NOT NULL DEFAULT 0;
