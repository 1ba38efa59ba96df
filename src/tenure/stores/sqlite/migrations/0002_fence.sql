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

-- What holds a task back and why it was cancelled are typed; `core/former.py` says the same of the log.
ALTER TABLE task ADD COLUMN pauses TEXT NOT NULL DEFAULT '[]';
ALTER TABLE task ADD COLUMN cancelled TEXT;
ALTER TABLE task ADD COLUMN failures TEXT NOT NULL DEFAULT '[]';
ALTER TABLE task ADD COLUMN brief_number INTEGER NOT NULL DEFAULT 1;
ALTER TABLE task ADD COLUMN reserved INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN unseen_since INTEGER;
ALTER TABLE brief ADD COLUMN seen TEXT;

UPDATE task SET pauses = json_array(CASE
    WHEN reason = 'budget exceeded' THEN json_object('cause', 'budget', 'reason', reason)
    WHEN substr(reason, 1, 7) = 'budget ' AND instr(reason, ': ') > 0 THEN json_object('cause', 'budget',
        'reason', reason, 'source', substr(reason, 8, instr(reason, ': ') - 8), 'until', resume_at)
    WHEN substr(reason, 1, 10) = 'question: ' THEN json_object('cause', 'question', 'reason', reason)
    WHEN substr(reason, 1, 8) = 'review: ' OR instr(reason, ' could not be decided, ') > 0
        THEN json_object('cause', 'review', 'reason', reason)
    WHEN reason = 'drained: paused when its holder let go' THEN json_object('cause', 'drain', 'reason', reason)
    WHEN substr(reason, -16) = '; on_lost = hold' THEN json_object('cause', 'lost', 'reason', reason)
    ELSE json_object('cause', 'person', 'reason', reason) END)
    WHERE state = 'paused' AND reason IS NOT NULL;
UPDATE task SET pauses = json_array(json_object('cause', 'drain', 'reason', 'drained: paused when its holder let go'))
    WHERE state IN ('claimed', 'running') AND wanted = 'pause';
-- Some were to be resumed at a time that an earlier budget's pause had left behind.
UPDATE task SET due_at = CASE WHEN missed THEN NULL ELSE deadline END
    WHERE state = 'paused' AND due_at = resume_at AND json_extract(pauses, '$[0].until') IS NULL;
UPDATE task SET cancelled = CASE
    WHEN substr(reason, 1, 8) = 'cascade:' THEN json_object('cause', 'cascade', 'source', substr(reason, 9))
    WHEN substr(reason, 1, 7) = 'parent:' THEN json_object('cause', 'parent', 'source', substr(reason, 8))
    WHEN reason = 'undo' THEN json_object('cause', 'undo')
    WHEN reason = 'pruned' THEN json_object('cause', 'prune')
    ELSE json_object('cause', 'person', 'reason', coalesce(reason, '')) END
    WHERE state = 'cancelled';
UPDATE task SET reserved = 1 WHERE state IN ('claimed', 'running') AND EXISTS (
    SELECT 1 FROM reservation AS r WHERE r.tenant = task.tenant AND r.project = task.project AND r.task = task.id);
UPDATE task SET plain = 0 WHERE reserved = 1;
ALTER TABLE task DROP COLUMN reason;
ALTER TABLE task DROP COLUMN resume_at;

ALTER TABLE claim ADD COLUMN key TEXT;
ALTER TABLE api_key ADD COLUMN capabilities TEXT NOT NULL DEFAULT '[]';
ALTER TABLE api_key ADD COLUMN used_at INTEGER;

CREATE TABLE web_session (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    key TEXT NOT NULL,
    key_digest BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;
CREATE INDEX web_session_expires ON web_session (tenant, project, expires_at);
