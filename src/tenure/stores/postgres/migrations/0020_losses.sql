-- breaking: no
-- since: 0.2.0

-- How often in a row a task's holder lost it, since that session's last sign of work.
ALTER TABLE task_base ADD COLUMN "losses" bigint NOT NULL DEFAULT 0;

-- The views of tasks, with that column.
DROP VIEW task_listed, task_in_queue, task_holding, task_standing, task_of_session, task_of_agent, task_counted, task;
CREATE VIEW task AS SELECT
    b.tenant, b."project", b."id", b."key", b."ref", b."track", b."sequence", b."type", b."dag", b."parent",
    b."local_name", b."parent_run", b."depth", b."root", b."lineage", b."children", b."idempotency_key", h."state",
    b."state_before", b."pauses", b."cancelled", b."answers", h."run", h."generation", h."attempts", b."given_back",
    b."max_attempts", b."retry_at", b."last_error", b."troubled", b."failures", b."losses", b."cool_offs", b."priority",
    b."boost", b."estimate", b."length", b."order_turn", b."deadline", b."not_before", b."missed", b."height",
    b."waits_on", b."unmet", b."dependents", b."requires", b."region", b."agent_type", b."tags", b."guarded",
    b."capped", b."checked", b."sealed", b."brief_number", b."models", b."fallback_models", b."metered", h."agent", h."session",
    h."claimed_at", h."lease", h."lease_until", h."renewals", h."presented_at", h."claim_epoch", h."late_submit_open",
    b."wanted", h."percent", b."step", b."progress_at", b."done_by", b."warned_at", b."funded", b."reserved",
    b."unseen_since", b."max_duration", b."artifacts", b."offer_to", b."offer_until", b."offer_term",
    b."set_aside_for", b."price", h."work_product", b."created_by", b."trace_id", b."created_at", h."updated_at",
    h."ready_at", h."started_at", h."completed_at", b."failed_at", b."dead_lettered_at", b."archived_at", h."version",
    h."lane", b."band", b."rank", h."due_at", h."plain", h.number, h.space
    FROM task_base AS b JOIN task_hot AS h ON h.space = b.space AND h.number = b.number;
-- The same rows by their state, and by their holder; `place_id` is for bounds of ids. `OFFSET 0`: from the place to the row, whatever the planner expects.
CREATE VIEW task_of_session AS SELECT t.* FROM held AS s CROSS JOIN LATERAL (SELECT * FROM task AS k
    WHERE k.space = s.space AND k.number = s.number OFFSET 0) AS t WHERE t.session = s.session AND t.space = s.space;
CREATE VIEW task_of_agent AS SELECT t.* FROM held AS s CROSS JOIN LATERAL (SELECT * FROM task AS k
    WHERE k.space = s.space AND k.number = s.number OFFSET 0) AS t WHERE t.agent = s.agent AND t.space = s.space;
CREATE VIEW task_in_queue AS SELECT t.*, s.id AS place_id FROM queue AS s JOIN task AS t
    ON t.space = s.space AND t.number = s.number AND t.id = s.id WHERE t.state = 'ready';
CREATE VIEW task_holding AS SELECT t.*, t.id AS place_id FROM held AS s CROSS JOIN LATERAL (SELECT * FROM task AS k
    WHERE k.space = s.space AND k.number = s.number OFFSET 0) AS t
    WHERE t.state IN ('claimed', 'running') AND t.space = s.space;
CREATE VIEW task_standing AS SELECT t.*, s.id AS place_id FROM standing AS s JOIN task AS t
    ON t.space = s.space AND t.number = s.number AND t.id = s.id AND t.state = s.state;
CREATE VIEW task_listed AS SELECT * FROM task_in_queue UNION ALL SELECT * FROM task_standing
    UNION ALL SELECT * FROM task_holding;
CREATE VIEW task_counted AS SELECT p.tenant, p.project, c.state, c.space FROM space AS p JOIN (
    SELECT space, 'ready'::text COLLATE "C" AS state FROM queue
    UNION ALL SELECT space, state FROM standing
    UNION ALL SELECT s.space, h.state FROM held AS s CROSS JOIN LATERAL (SELECT k.state FROM task_hot AS k
        WHERE k.space = s.space AND k.number = s.number OFFSET 0) AS h
        WHERE h.state IN ('claimed', 'running')) AS c ON c.space = p.number;
