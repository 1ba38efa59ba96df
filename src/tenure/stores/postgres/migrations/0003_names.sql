-- breaking: yes
-- since: 0.2.0

-- Columns named by the glossary. The log and archived documents keep the former names: see `core/former_names.py`.
ALTER TABLE task_hot RENAME COLUMN "answerable" TO "late_submit_open";
ALTER TABLE task_hot RENAME COLUMN "parked" TO "set_aside_for";
ALTER VIEW task RENAME COLUMN "answerable" TO "late_submit_open";
ALTER VIEW task RENAME COLUMN "parked" TO "set_aside_for";
ALTER TABLE project RENAME COLUMN "parked" TO "set_aside";
ALTER TABLE leader RENAME COLUMN "ticks" TO "duties_begun";
ALTER TABLE trigger RENAME COLUMN "told_at" TO "reported_at";
ALTER INDEX task_parked RENAME TO task_set_aside;
ALTER INDEX task_unpaid RENAME TO task_unaffordable;
