-- breaking: yes
-- since: 0.2.0

ALTER TABLE claim ADD COLUMN "metadata" text COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE claim ADD COLUMN "requests" text COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE agent ADD COLUMN "terminated_at" bigint;
ALTER TABLE agent ADD COLUMN "terminated_for" text COLLATE "C";

-- What holds a task back and why it was cancelled are typed; `core/former.py` says the same of the log.
DROP VIEW task;
ALTER TABLE task_base ADD COLUMN "pauses" text COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE task_base ADD COLUMN "cancelled" text COLLATE "C";
ALTER TABLE task_base ADD COLUMN "failures" text COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE task_base ADD COLUMN "brief_number" bigint NOT NULL DEFAULT 1;
ALTER TABLE task_base ADD COLUMN "reserved" boolean NOT NULL DEFAULT false;
ALTER TABLE task_base ADD COLUMN "unseen_since" bigint;
ALTER TABLE brief ADD COLUMN "seen" text COLLATE "C";

UPDATE task_base AS b SET pauses = json_build_array(CASE
    WHEN b.reason = 'budget exceeded' THEN json_build_object('cause', 'budget', 'reason', b.reason)
    WHEN left(b.reason, 7) = 'budget ' AND strpos(b.reason, ': ') > 0 THEN json_build_object('cause', 'budget',
        'reason', b.reason, 'source', substr(b.reason, 8, strpos(b.reason, ': ') - 8), 'until', b.resume_at)
    WHEN left(b.reason, 10) = 'question: ' THEN json_build_object('cause', 'question', 'reason', b.reason)
    WHEN left(b.reason, 8) = 'review: ' OR strpos(b.reason, ' could not be decided, ') > 0
        THEN json_build_object('cause', 'review', 'reason', b.reason)
    WHEN b.reason = 'drained: paused when its holder let go' THEN json_build_object('cause', 'drain', 'reason', b.reason)
    WHEN right(b.reason, 16) = '; on_lost = hold' THEN json_build_object('cause', 'lost', 'reason', b.reason)
    ELSE json_build_object('cause', 'person', 'reason', b.reason) END)::text
    FROM task_hot AS h WHERE h.tenant = b.tenant AND h.project = b.project AND h.id = b.id
        AND h.state = 'paused' AND b.reason IS NOT NULL;
UPDATE task_base AS b SET pauses = '[{"cause":"drain","reason":"drained: paused when its holder let go"}]'
    FROM task_hot AS h WHERE h.tenant = b.tenant AND h.project = b.project AND h.id = b.id
        AND h.state IN ('claimed', 'running') AND b.wanted = 'pause';
-- Some were to be resumed at a time that an earlier budget's pause had left behind.
UPDATE task_hot AS h SET due_at = CASE WHEN b.missed THEN NULL ELSE b.deadline END
    FROM task_base AS b WHERE h.tenant = b.tenant AND h.project = b.project AND h.id = b.id
        AND h.state = 'paused' AND h.due_at = b.resume_at AND b.pauses::json -> 0 ->> 'until' IS NULL;
UPDATE task_base AS b SET cancelled = (CASE
    WHEN left(b.reason, 8) = 'cascade:' THEN json_build_object('cause', 'cascade', 'source', substr(b.reason, 9))
    WHEN left(b.reason, 7) = 'parent:' THEN json_build_object('cause', 'parent', 'source', substr(b.reason, 8))
    WHEN b.reason = 'undo' THEN json_build_object('cause', 'undo')
    WHEN b.reason = 'pruned' THEN json_build_object('cause', 'prune')
    ELSE json_build_object('cause', 'person', 'reason', coalesce(b.reason, '')) END)::text
    FROM task_hot AS h WHERE h.tenant = b.tenant AND h.project = b.project AND h.id = b.id AND h.state = 'cancelled';
UPDATE task_base AS b SET reserved = true
    FROM task_hot AS h WHERE h.tenant = b.tenant AND h.project = b.project AND h.id = b.id
        AND h.state IN ('claimed', 'running') AND EXISTS (
            SELECT 1 FROM reservation AS r WHERE r.tenant = b.tenant AND r.project = b.project AND r.task = b.id);
UPDATE task_hot AS h SET plain = false FROM task_base AS b
    WHERE h.tenant = b.tenant AND h.project = b.project AND h.id = b.id AND b.reserved AND h.plain;
ALTER TABLE task_base DROP COLUMN "reason";
ALTER TABLE task_base DROP COLUMN "resume_at";

CREATE VIEW task AS SELECT h.tenant, h."project", h."id", b."key", b."ref", b."track", h."sequence", b."type",
    b."dag", b."parent", b."local_name", b."parent_run", b."depth", b."root", b."lineage", b."children",
    b."idempotency_key", h."state", b."state_before", b."pauses", b."cancelled", b."answers", h."run", h."generation",
    h."attempts", b."given_back", b."max_attempts", b."retry_at", b."last_error", b."troubled", b."failures",
    b."cool_offs", b."priority", b."boost", b."deadline", b."not_before", b."missed", b."height", b."waits_on",
    b."unmet", b."dependents", b."requires", b."region", b."tags", b."guarded", b."capped", b."checked",
    b."brief_number", b."models", b."fallback_models", b."metered", h."agent", h."session", h."claimed_at", h."lease",
    h."lease_until", h."renewals", h."presented_at", h."claim_epoch", h."answerable", b."wanted", h."percent",
    b."step", b."progress_at", b."done_by", b."warned_at", b."funded", b."reserved", b."unseen_since",
    b."max_duration", b."artifacts", b."offer_to", b."offer_until", h."parked", h."price", h."work_product",
    b."created_by", b."trace_id", b."created_at", h."updated_at", h."ready_at", h."started_at", h."completed_at",
    b."failed_at", b."dead_lettered_at", b."archived_at", h."version", h."lane", h."band", h."rank", h."due_at",
    h."plain" FROM task_hot AS h JOIN task_base AS b ON b.tenant = h.tenant AND b.project = h.project AND b.id = h.id;

ALTER TABLE claim ADD COLUMN "key" text COLLATE "C";
ALTER TABLE api_key ADD COLUMN "capabilities" text COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE api_key ADD COLUMN "used_at" bigint;

CREATE TABLE web_session (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "key" text COLLATE "C" NOT NULL,
    "key_digest" bytea NOT NULL,
    "created_at" bigint NOT NULL,
    "expires_at" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);
CREATE INDEX web_session_expires ON web_session (tenant, project, expires_at);
