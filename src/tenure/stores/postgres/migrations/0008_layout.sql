-- breaking: yes
-- since: 0.2.0
--
-- The layout of the fast path: see `stores/postgres/narrow_rows.py`.

-- --- numbers -------------------------------------------------------------------------------------------------------

-- A task's number never leaves the store: it is the key wherever claims and results write.
ALTER TABLE task_base ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY;
-- A project's number, of all tenants' projects: handed out once and never again. Keys begin with it, since numbers compare
-- several times as fast as texts; the tenant is a column of every table, for policies.
CREATE TABLE space (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    UNIQUE (tenant, project)
);
INSERT INTO space (tenant, project) SELECT DISTINCT tenant, project FROM task_base ORDER BY tenant, project;
CREATE FUNCTION space_of(p_tenant text, p_project text) RETURNS integer
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    v_number integer := (SELECT number FROM space WHERE tenant = p_tenant AND project = p_project);
BEGIN
    IF v_number IS NULL THEN
        INSERT INTO space (tenant, project) VALUES (p_tenant, p_project)
            ON CONFLICT (tenant, project) DO UPDATE SET project = excluded.project RETURNING number INTO v_number;
    END IF;
    RETURN v_number;
END $$;

-- --- tasks ---------------------------------------------------------------------------------------------------------

DROP VIEW task;
ALTER TABLE task_hot RENAME TO task_before;
ALTER INDEX task_hot_pkey RENAME TO task_before_pkey;
ALTER TABLE task_base ADD COLUMN space integer, ADD COLUMN "sequence" bigint, ADD COLUMN "band" bigint, ADD COLUMN "rank" bigint,
    ADD COLUMN "set_aside_for" text COLLATE "C", ADD COLUMN "price" bigint;
UPDATE task_base AS b SET space = s.number, "sequence" = h."sequence", "band" = h."band", "rank" = h."rank",
    "set_aside_for" = h."set_aside_for", "price" = h."price"
    FROM task_before AS h, space AS s WHERE h.tenant = b.tenant AND h.project = b.project AND h.id = b.id
        AND s.tenant = b.tenant AND s.project = b.project;
ALTER TABLE task_base ALTER space SET NOT NULL, ALTER "sequence" SET NOT NULL, ALTER "band" SET NOT NULL, ALTER "rank" SET NOT NULL;
CREATE UNIQUE INDEX task_number ON task_base (space, number);

-- The fence, and nothing else. Only the key is indexed, so that PostgreSQL rewrites a row in its page and touches no index.
-- `nonce`, `claim_user`, `granted` and `grant_event` belong to a claim that has no row of its own.
CREATE TABLE task_hot (
    space integer NOT NULL,
    number bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    "state" text COLLATE "C" NOT NULL,
    "run" bigint NOT NULL,
    "generation" bigint NOT NULL,
    "attempts" bigint NOT NULL,
    "agent" text COLLATE "C",
    "session" text COLLATE "C",
    "claimed_at" bigint,
    "lease" bigint,
    "lease_until" bigint,
    "renewals" bigint NOT NULL,
    "presented_at" bigint,
    "claim_epoch" text COLLATE "C",
    "late_submit_open" boolean NOT NULL,
    "percent" bigint,
    "work_product" text COLLATE "C",
    "updated_at" bigint NOT NULL,
    "ready_at" bigint,
    "started_at" bigint,
    "completed_at" bigint,
    "version" bigint NOT NULL,
    "lane" text COLLATE "C",
    "due_at" bigint,
    "plain" boolean NOT NULL,
    nonce bytea,
    claim_user text COLLATE "C",
    granted bigint,
    grant_event bigint,
    PRIMARY KEY (space, number)
) WITH (fillfactor = 50);
INSERT INTO task_hot (space, tenant, number,
    "state", "run", "generation", "attempts", "agent", "session", "claimed_at", "lease", "lease_until", "renewals",
    "presented_at", "claim_epoch", "late_submit_open", "percent", "work_product", "updated_at", "ready_at",
    "started_at", "completed_at", "version", "lane", "due_at", "plain")
    SELECT b.space, h.tenant, b.number,
    h."state", h."run", h."generation", h."attempts", h."agent", h."session", h."claimed_at", h."lease",
    h."lease_until", h."renewals", h."presented_at", h."claim_epoch", h."late_submit_open", h."percent",
    h."work_product", h."updated_at", h."ready_at", h."started_at", h."completed_at", h."version", h."lane",
    h."due_at", h."plain"
    FROM task_before AS h JOIN task_base AS b ON b.tenant = h.tenant AND b.project = h.project AND b.id = h.id;
DROP TABLE task_before;

-- What can be claimed, in the order of the claim; what is held; and the others by their state.
CREATE TABLE queue (
    space integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    lane text COLLATE "C" NOT NULL,
    band bigint NOT NULL,
    rank bigint NOT NULL,
    sequence bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    plain boolean NOT NULL,
    PRIMARY KEY (space, lane, band, rank, sequence, id)
);
CREATE INDEX queue_id ON queue (space, id);
CREATE TABLE held (
    space integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    agent text COLLATE "C" NOT NULL,
    process text COLLATE "C",
    PRIMARY KEY (space, session, number)
);
CREATE INDEX held_agent ON held (space, agent, number);
-- Of claims without a row of their own; the others have theirs in claim_process.
CREATE INDEX held_process ON held (space, process) WHERE process IS NOT NULL;
CREATE TABLE standing (
    space integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (space, state, id)
);
-- A number is due at `at` while its row says so too: a block outlives its tasks.
CREATE TABLE due_block (
    space integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    numbers bigint[] NOT NULL
);
ALTER TABLE due_block ALTER numbers SET STORAGE EXTERNAL;
CREATE INDEX due_block_at ON due_block (space, at);

CREATE VIEW task AS SELECT
    b.tenant, b."project", b."id", b."key", b."ref", b."track", b."sequence", b."type", b."dag", b."parent",
    b."local_name", b."parent_run", b."depth", b."root", b."lineage", b."children", b."idempotency_key", h."state",
    b."state_before", b."pauses", b."cancelled", b."answers", h."run", h."generation", h."attempts", b."given_back",
    b."max_attempts", b."retry_at", b."last_error", b."troubled", b."failures", b."cool_offs", b."priority",
    b."boost", b."estimate", b."length", b."order_turn", b."deadline", b."not_before", b."missed", b."height",
    b."waits_on", b."unmet", b."dependents", b."requires", b."region", b."agent_type", b."tags", b."guarded",
    b."capped", b."checked", b."brief_number", b."models", b."fallback_models", b."metered", h."agent", h."session",
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

INSERT INTO queue SELECT space, tenant, lane, band, rank, sequence, id, number, plain FROM task WHERE lane IS NOT NULL;
INSERT INTO held SELECT space, tenant, coalesce(session, ''), number, coalesce(agent, ''), NULL FROM task
    WHERE agent IS NOT NULL OR session IS NOT NULL;
INSERT INTO standing SELECT space, tenant, state, id, number FROM task
    WHERE CASE WHEN state = 'ready' THEN lane IS NULL
               WHEN state IN ('claimed', 'running') THEN agent IS NULL AND session IS NULL ELSE true END;
INSERT INTO due_block SELECT space, tenant, due_at, array_agg(number) FROM task
    WHERE due_at IS NOT NULL GROUP BY space, tenant, due_at;

CREATE INDEX task_set_aside ON task_base (set_aside_for, project, tenant, id) WHERE set_aside_for IS NOT NULL;
CREATE INDEX task_unaffordable ON task_base (set_aside_for, project, tenant, band, rank, id) WHERE price IS NOT NULL;

-- --- claims and results --------------------------------------------------------------------------------------------

ALTER TABLE claim RENAME TO claim_row;
ALTER TABLE result RENAME TO result_row;

-- One row a command that was granted tasks; `number` is the sequence of its first event.
CREATE TABLE granted (
    space integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    agent text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    lease bigint NOT NULL,
    epoch text COLLATE "C" NOT NULL,
    numbers bigint[] NOT NULL,
    "user" text COLLATE "C",
    request text COLLATE "C",
    hash text COLLATE "C",
    key text COLLATE "C",
    PRIMARY KEY (space, session, number)
);
CREATE INDEX granted_request ON granted (space, request) WHERE request IS NOT NULL;

-- One row a finished claim: the claim and its result. A task has at most one: also the second wall behind the rule "one
-- accepted result for a task and run".
CREATE TABLE done (
    space integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    session text COLLATE "C" NOT NULL,
    granted bigint NOT NULL,
    grant_event bigint NOT NULL,
    result_event bigint NOT NULL,
    generation bigint NOT NULL,
    run bigint NOT NULL,
    attempt bigint NOT NULL,
    renewals bigint NOT NULL,
    at bigint NOT NULL,
    size bigint NOT NULL,
    nonce bytea NOT NULL,
    result text COLLATE "C" NOT NULL,
    product text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    summary text COLLATE "C" NOT NULL,
    request text COLLATE "C",
    data text COLLATE "C",
    PRIMARY KEY (space, number)
);
CREATE INDEX done_result ON done (space, result);

CREATE VIEW claim_narrow AS SELECT
    b.tenant, b.project AS "project", (b.id || '@' || h.generation) COLLATE "C" AS "id", b.id AS "task", h.generation
    AS "generation", h.run AS "run", h.attempts AS "attempt", h.nonce AS "nonce", g.epoch AS "epoch", g.agent AS
    "agent", g.session AS "session", g."user" AS "user", g.at AS "acquired_at", g.lease AS "lease", 'active'::text
    COLLATE "C" AS "state", NULL::text COLLATE "C" AS "reason", NULL::bigint AS "released_at", 0::bigint AS
    "renewals", true AS "counted", false AS "continues", NULL::boolean AS "result_accepted", NULL::text COLLATE "C" AS
    "work_product", NULL::text COLLATE "C" AS "error_class", NULL::text COLLATE "C" AS "error", NULL::text COLLATE "C"
    AS "model", 0::bigint AS "refused", 0::bigint AS "invalid", '{}'::text COLLATE "C" AS "metadata", j.process AS
    "process", NULL::text COLLATE "C" AS "funds", g.request AS "request_id", g.hash AS "request_hash", '[]'::text
    COLLATE "C" AS "requests", g.key AS "key", NULL::bigint AS "term", NULL::text COLLATE "C" AS "lease_why",
    h.grant_event, NULL::bigint AS result_event, b.space, b.number
    FROM task_base AS b JOIN task_hot AS h ON h.space = b.space AND h.number = b.number
    JOIN granted AS g ON g.space = b.space AND g.session = h.session AND g.number = h.granted AND h.number = ANY (g.numbers)
    JOIN held AS j ON j.space = b.space AND j.session = g.session AND j.number = b.number
UNION ALL SELECT
    b.tenant, b.project AS "project", (b.id || '@' || d.generation) COLLATE "C" AS "id", b.id AS "task", d.generation
    AS "generation", d.run AS "run", d.attempt AS "attempt", d.nonce AS "nonce", g.epoch AS "epoch", g.agent AS
    "agent", g.session AS "session", g."user" AS "user", g.at AS "acquired_at", g.lease AS "lease", 'released'::text
    COLLATE "C" AS "state", 'COMPLETED'::text COLLATE "C" AS "reason", d.at AS "released_at", d.renewals AS
    "renewals", true AS "counted", false AS "continues", true AS "result_accepted", d.product AS "work_product",
    NULL::text COLLATE "C" AS "error_class", NULL::text COLLATE "C" AS "error", NULL::text COLLATE "C" AS "model",
    0::bigint AS "refused", 0::bigint AS "invalid", '{}'::text COLLATE "C" AS "metadata", NULL::text COLLATE "C" AS
    "process", NULL::text COLLATE "C" AS "funds", g.request AS "request_id", g.hash AS "request_hash", '[]'::text
    COLLATE "C" AS "requests", g.key AS "key", NULL::bigint AS "term", NULL::text COLLATE "C" AS "lease_why",
    d.grant_event, d.result_event, b.space, b.number
    FROM task_base AS b JOIN done AS d ON d.space = b.space AND d.number = b.number
    JOIN granted AS g ON g.space = b.space AND g.session = d.session AND g.number = d.granted AND d.number = ANY (g.numbers);
CREATE VIEW claim AS SELECT
    tenant, "project", "id", "task", "generation", "run", "attempt", "nonce", "epoch", "agent", "session", "user",
    "acquired_at", "lease", "state", "reason", "released_at", "renewals", "counted", "continues", "result_accepted",
    "work_product", "error_class", "error", "model", "refused", "invalid", "metadata", "process", "funds",
    "request_id", "request_hash", "requests", "key", "term", "lease_why", grant_event, result_event FROM claim_row
UNION ALL SELECT
    tenant, "project", "id", "task", "generation", "run", "attempt", "nonce", "epoch", "agent", "session", "user",
    "acquired_at", "lease", "state", "reason", "released_at", "renewals", "counted", "continues", "result_accepted",
    "work_product", "error_class", "error", "model", "refused", "invalid", "metadata", "process", "funds",
    "request_id", "request_hash", "requests", "key", "term", "lease_why", grant_event, result_event FROM claim_narrow;
CREATE VIEW result_narrow AS SELECT
    b.tenant, b.project AS "project", d.result AS "id", b.id AS "task", d.run AS "run", d.generation AS "generation",
    g.session AS "session", g.agent AS "agent", g."user" AS "user", d.at AS "submitted_at", true AS "accepted",
    'ACCEPTED'::text COLLATE "C" AS "reason", d.data AS "data", d.summary AS "summary", d.size AS "size", d.digest AS
    "digest", d.at - g.at AS "processing", d.product AS "work_product", false AS "work_lost", false AS "late",
    d.request AS "request_id", '[]'::text COLLATE "C" AS "artifacts", d.space, d.number
    FROM done AS d JOIN task_base AS b ON b.space = d.space AND b.number = d.number
    JOIN granted AS g ON g.space = d.space AND g.session = d.session AND g.number = d.granted;
CREATE VIEW result AS SELECT
    tenant, "project", "id", "task", "run", "generation", "session", "agent", "user", "submitted_at", "accepted",
    "reason", "data", "summary", "size", "digest", "processing", "work_product", "work_lost", "late", "request_id",
    "artifacts" FROM result_row
UNION ALL SELECT
    tenant, "project", "id", "task", "run", "generation", "session", "agent", "user", "submitted_at", "accepted",
    "reason", "data", "summary", "size", "digest", "processing", "work_product", "work_lost", "late", "request_id",
    "artifacts" FROM result_narrow;

-- Before the ordinary path changes a claim or a result of these tasks, it gives them rows of their own.
CREATE FUNCTION give_rows(p_tenant text, p_project text, p_tasks text[]) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    v_space integer := (SELECT number FROM space WHERE tenant = p_tenant AND project = p_project);
    v_numbers bigint[] := ARRAY(SELECT b.number FROM unnest(p_tasks) AS g (id)
        CROSS JOIN LATERAL (SELECT k.number FROM task_base AS k
            WHERE k.id = g.id AND (k.project = p_project AND k.tenant = p_tenant) IS TRUE OFFSET 0) AS b
        CROSS JOIN LATERAL (SELECT k.granted FROM task_hot AS k
            WHERE k.space = v_space AND k.number = b.number OFFSET 0) AS h
        LEFT JOIN LATERAL (SELECT k.number FROM done AS k
            WHERE k.space = v_space AND k.number = b.number OFFSET 0) AS d ON true
        WHERE h.granted IS NOT NULL OR d.number IS NOT NULL);
    v_granted bigint[];
    v_sessions text[];
BEGIN
    IF cardinality(v_numbers) = 0 THEN
        RETURN 0;
    END IF;
    SELECT array_agg(f.granted), array_agg(f.session) INTO v_granted, v_sessions FROM (
        SELECT DISTINCT k.session, k.granted FROM unnest(v_numbers) AS n (number) CROSS JOIN LATERAL (
            SELECT h.session, h.granted FROM task_hot AS h
            WHERE h.space = v_space AND h.number = n.number AND h.granted IS NOT NULL
            UNION ALL SELECT d.session, d.granted FROM done AS d WHERE d.space = v_space AND d.number = n.number) AS k) AS f;
    INSERT INTO claim_row (tenant, "project", "id", "task", "generation", "run", "attempt", "nonce", "epoch", "agent", "session", "user",
    "acquired_at", "lease", "state", "reason", "released_at", "renewals", "counted", "continues", "result_accepted",
    "work_product", "error_class", "error", "model", "refused", "invalid", "metadata", "process", "funds",
    "request_id", "request_hash", "requests", "key", "term", "lease_why", grant_event, result_event)
        SELECT tenant, "project", "id", "task", "generation", "run", "attempt", "nonce", "epoch", "agent", "session", "user",
    "acquired_at", "lease", "state", "reason", "released_at", "renewals", "counted", "continues", "result_accepted",
    "work_product", "error_class", "error", "model", "refused", "invalid", "metadata", "process", "funds",
    "request_id", "request_hash", "requests", "key", "term", "lease_why", grant_event, result_event FROM unnest(v_numbers) AS n (number)
        CROSS JOIN LATERAL (SELECT * FROM claim_narrow AS k WHERE k.space = v_space AND k.number = n.number OFFSET 0) AS c;
    INSERT INTO result_row (tenant, "project", "id", "task", "run", "generation", "session", "agent", "user", "submitted_at", "accepted",
    "reason", "data", "summary", "size", "digest", "processing", "work_product", "work_lost", "late", "request_id",
    "artifacts")
        SELECT tenant, "project", "id", "task", "run", "generation", "session", "agent", "user", "submitted_at", "accepted",
    "reason", "data", "summary", "size", "digest", "processing", "work_product", "work_lost", "late", "request_id",
    "artifacts" FROM unnest(v_numbers) AS n (number)
        CROSS JOIN LATERAL (SELECT * FROM result_narrow AS k WHERE k.space = v_space AND k.number = n.number OFFSET 0) AS r;
    DELETE FROM granted AS g USING unnest(v_granted, v_sessions) AS f (number, session)
        WHERE g.space = v_space AND g.session = f.session AND g.number = f.number AND (g.numbers <@ v_numbers) IS TRUE;
    UPDATE granted AS g SET numbers = ARRAY(SELECT n FROM unnest(g.numbers) AS n WHERE n <> ALL (v_numbers))
        FROM unnest(v_granted, v_sessions) AS f (number, session)
        WHERE g.space = v_space AND g.session = f.session AND g.number = f.number;
    UPDATE held AS j SET process = NULL FROM unnest(v_numbers) AS n (number) CROSS JOIN LATERAL (
            SELECT k.session FROM task_hot AS k WHERE k.space = v_space AND k.number = n.number OFFSET 0) AS h
        WHERE j.space = v_space AND j.session = h.session AND j.number = n.number AND j.process IS NOT NULL;
    UPDATE task_hot AS h SET nonce = NULL, claim_user = NULL, granted = NULL, grant_event = NULL
        FROM unnest(v_numbers) AS n (number) WHERE h.space = v_space AND h.number = n.number AND h.granted IS NOT NULL;
    DELETE FROM done AS d USING unnest(v_numbers) AS n (number) WHERE d.space = v_space AND d.number = n.number;
    RETURN cardinality(v_numbers);
END $$;

-- --- events --------------------------------------------------------------------------------------------------------

-- The events of a command lie in one millisecond. A block range index could only be read by a bitmap.
DROP INDEX event_time;
CREATE INDEX event_time ON event (time);

-- Form 1: every value of an event is in its arrays. Form 2, of first claims: tasks by their numbers, ids by the seed.
ALTER TABLE event_block ADD COLUMN form bigint NOT NULL DEFAULT 1, ADD COLUMN seed bytea, ADD COLUMN numbers bigint[],
    ADD COLUMN summary text[];
ALTER TABLE event_block ALTER "id" DROP NOT NULL, ALTER "task" DROP NOT NULL, ALTER "key" DROP NOT NULL,
    ALTER "track" DROP NOT NULL, ALTER "generation" DROP NOT NULL, ALTER "previous_state" DROP NOT NULL,
    ALTER "causation_id" DROP NOT NULL;
ALTER TABLE event_block ALTER numbers SET STORAGE EXTERNAL, ALTER summary SET STORAGE EXTERNAL;

-- --- the fast path: see `stores/postgres/hot_functions.py` ----------------------------------------------------------
-- Those that only other functions call have the search path of their callers: setting it costs as much as a lookup.
--
-- A session plans each statement once, perhaps on empty tables, and must not read whole tables for ever after. So the
-- three verbs count rows and nothing else as cost, join by nested loops alone, row by row (`OFFSET 0`), and hide tenant
-- and project (`IS TRUE`) where an id or a ref leads to the row: indexes that begin with them would look as good.

-- Ends the call with nothing written: the ordinary path decides, of all commands or of those that it names.
CREATE FUNCTION unusual(p_why text, p_which bigint[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TN001', MESSAGE = p_why, DETAIL = coalesce(array_to_string(p_which, ','), '');
END $$;

-- Whether a task of the project is due. Drops blocks behind `now` of which no task is due any more.
CREATE FUNCTION has_due(p_tenant text, p_project text, p_now bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    v_space integer := (SELECT number FROM space WHERE tenant = p_tenant AND project = p_project);
    v_block record;
BEGIN
    FOR v_block IN SELECT d.ctid AS place, d.numbers FROM due_block AS d
        WHERE d.space = v_space AND d.at <= p_now ORDER BY d.at
    LOOP
        IF EXISTS (SELECT FROM unnest(v_block.numbers) AS n (number), LATERAL (SELECT h.due_at FROM task_hot AS h
                   WHERE h.space = v_space AND h.number = n.number LIMIT 1) AS t WHERE t.due_at <= p_now) THEN
            RETURN true;
        END IF;
        DELETE FROM due_block AS d WHERE d.ctid = (SELECT k.ctid FROM due_block AS k WHERE k.ctid = v_block.place
            AND k.space = v_space AND k.numbers = v_block.numbers FOR UPDATE SKIP LOCKED);
    END LOOP;
    RETURN false;
END $$;

-- The earliest due time of the project. Drops blocks on the way of which no task is due at their time any more.
CREATE FUNCTION first_due(p_tenant text, p_project text, p_drops boolean) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    v_space integer := (SELECT number FROM space WHERE tenant = p_tenant AND project = p_project);
    v_block record;
BEGIN
    FOR v_block IN SELECT d.ctid AS place, d.at, d.numbers FROM due_block AS d
        WHERE d.space = v_space ORDER BY d.at
    LOOP
        IF EXISTS (SELECT FROM unnest(v_block.numbers) AS n (number), LATERAL (SELECT h.due_at FROM task_hot AS h
                   WHERE h.space = v_space AND h.number = n.number LIMIT 1) AS t WHERE t.due_at = v_block.at) THEN
            RETURN v_block.at;
        END IF;
        IF p_drops THEN
            DELETE FROM due_block AS d WHERE d.ctid = (SELECT k.ctid FROM due_block AS k WHERE k.ctid = v_block.place
                AND k.space = v_space AND k.numbers = v_block.numbers FOR UPDATE SKIP LOCKED);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- What every call begins with: settings that hold to the commit, the locks, and only then the first look. `now` is the
-- clock's, never before the project's last event. Refuses a call by an older program, or on a project that has changed.
CREATE FUNCTION begin_hot(p_tenant text, p_project text, p_given bigint, p_schema bigint, p_seen text, p_wait text,
    p_locks bigint[], p_shared boolean[], p_floor integer, OUT o_now bigint, OUT o_epoch text, OUT o_space integer)
LANGUAGE plpgsql AS $$
DECLARE
    v_breaking bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM unusual('isolation', NULL);
    END IF;
    PERFORM set_config('lock_timeout', p_wait, true), set_config('client_min_messages', 'warning', true),
        set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                   WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true);
    PERFORM CASE WHEN g.is_shared THEN pg_advisory_xact_lock_shared(g.key) ELSE pg_advisory_xact_lock(g.key) END
        FROM unnest(p_locks, p_shared) AS g (key, is_shared);
    SELECT m.breaking, coalesce(e.epoch, m.epoch) INTO v_breaking, o_epoch
        FROM meta AS m LEFT JOIN epoch AS e ON e.tenant = p_tenant;
    IF v_breaking > p_schema THEN
        PERFORM unusual('schema', NULL);
    END IF;
    IF p_seen IS DISTINCT FROM (SELECT p.xmin::text || p.ctid::text FROM project AS p
        WHERE p.tenant = p_tenant AND p.project = p_project AND p.id = p_project) THEN
        PERFORM unusual('project', NULL);
    END IF;
    o_space := (SELECT s.number FROM space AS s WHERE s.tenant = p_tenant AND s.project = p_project);
    o_now := greatest(coalesce(p_given, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
        (SELECT l.time FROM (SELECT e.project, e.tenant, e.time FROM event AS e
            WHERE (e.project, e.tenant, e.sequence) <= (p_project, p_tenant, 9223372036854775807)
            ORDER BY e.project DESC, e.tenant DESC, e.sequence DESC LIMIT 1) AS l
            WHERE l.project = p_project AND l.tenant = p_tenant),
        (SELECT l.time FROM (SELECT e.project, e.tenant, e.time FROM event_block AS e
            WHERE (e.project, e.tenant, e.last) <= (p_project, p_tenant, 9223372036854775807)
            ORDER BY e.project DESC, e.tenant DESC, e.last DESC LIMIT 1) AS l
            WHERE l.project = p_project AND l.tenant = p_tenant));
    IF has_due(p_tenant, p_project, o_now) THEN
        PERFORM unusual('due', NULL);
    END IF;
    -- Before the first sequence is drawn: see `log_cursor`.
    PERFORM pg_advisory_xact_lock_shared(p_floor, (last_value - (NOT is_called)::integer & 2147483647)::integer)
        FROM event_sequence_seq;
END $$;

-- The first of so many sequences in a row: drawn again where another transaction drew in between.
CREATE FUNCTION draw_sequences(p_many integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_first bigint;
    v_last bigint;
BEGIN
    FOR v_try IN 1 .. 100 LOOP
        SELECT min(d.s), max(d.s) INTO v_first, v_last
            FROM (SELECT nextval('event_sequence_seq') AS s FROM generate_series(1, p_many)) AS d;
        IF v_last - v_first + 1 = p_many THEN
            RETURN v_first;
        END IF;
    END LOOP;
    PERFORM unusual('sequences', NULL);
END $$;

-- The first digits of every id that is made at that time: its milliseconds, in base 32. One expression, which the planner
-- puts in the place of the call.
CREATE FUNCTION id_time(p_now bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (p_now / 1000 >> 45 & 31)::integer, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (p_now / 1000 >> 40 & 31)::integer, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (p_now / 1000 >> 35 & 31)::integer, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (p_now / 1000 >> 30 & 31)::integer, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (p_now / 1000 >> 25 & 31)::integer, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (p_now / 1000 >> 20 & 31)::integer, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (p_now / 1000 >> 15 & 31)::integer, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (p_now / 1000 >> 10 & 31)::integer, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (p_now / 1000 >> 5 & 31)::integer, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (p_now / 1000 & 31)::integer, 1)
$$;

-- Signs of life: at most every `presence`, and never where another transaction is writing the same.
CREATE FUNCTION note_presence(p_tenant text, p_project text, p_now bigint, p_agents text[], p_sessions text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE agent SET last_seen = p_now WHERE (tenant = p_tenant AND project = p_project) IS TRUE AND id = ANY (ARRAY(
        SELECT a.id FROM agent AS a WHERE (a.tenant = p_tenant AND a.project = p_project) IS TRUE AND a.id = ANY (p_agents)
        FOR NO KEY UPDATE SKIP LOCKED));
    UPDATE session SET last_activity = p_now WHERE (tenant = p_tenant AND project = p_project) IS TRUE AND id = ANY (ARRAY(
        SELECT s.id FROM session AS s WHERE (s.tenant = p_tenant AND s.project = p_project) IS TRUE AND s.id = ANY (p_sessions)
        FOR NO KEY UPDATE SKIP LOCKED));
END $$;

-- Claim next, of one project. One item a task in every array; `p_n` has how many its command takes, at the command's first,
-- and `p_of` the place of that first. `p_sets`: which of the lanes fit, a digit each; `p_set`: the one of each command.
CREATE FUNCTION claim_tasks(p_tenant text, p_project text, p_given bigint, p_schema bigint, p_seen text, p_wait text,
    p_locks bigint[], p_shared boolean[], p_floor integer, p_presence bigint, p_idle bigint,
    p_lanes text[], p_boosts bigint[], p_sets text[], p_set bigint[], p_n bigint[], p_of bigint[],
    p_agent text[], p_session text[], p_skills text[], p_user text[], p_lease bigint[], p_process text[], p_request text[],
    p_hash text[], p_key text[], p_by text[], p_address text[], p_trace text[], p_nonces bytea, p_seed bytea)
RETURNS TABLE (slot bigint, o_now bigint, o_last bigint, o_xid text, o_epoch text, o_held text,
    id text, key text, ref text, track text, type text, dag text, parent text, run bigint, max_attempts bigint,
    priority bigint, tags text, not_before bigint, created_by text, created_at bigint, ready_at bigint, version bigint,
    title text, description text, spec text, metadata text, constraints text, output text, touches text)
LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
    SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_memoize = off SET jit = off
    SET random_page_cost = 0 SET seq_page_cost = 0 SET cpu_tuple_cost = 1 SET cpu_index_tuple_cost = 1 AS $$
#variable_conflict use_column
DECLARE
    v_total integer := cardinality(p_of);
    v_lanes integer := cardinality(p_lanes);
    v_page integer := CASE WHEN cardinality(p_lanes) < 2 THEN v_total ELSE greatest(8, 4 * v_total / v_lanes) END;
    v_now bigint;
    v_epoch text;
    v_space integer;
    v_which bigint[];
    v_agents text[];
    v_sessions text[];
    v_held text[];
    v_places tid[];
    v_ids text[];
    v_numbers bigint[];
    v_lane integer[];
    v_plain boolean[];
    v_edge integer;
    v_full integer;
    v_all boolean := cardinality(p_sets) = 1 AND p_sets[1] !~ '0';
    v_at integer;
    v_taken boolean[];
    v_next integer[];
    v_chosen integer[];
    v_first bigint;
    v_count integer;
BEGIN
    SELECT b.o_now, b.o_epoch, b.o_space INTO v_now, v_epoch, v_space
        FROM begin_hot(p_tenant, p_project, p_given, p_schema, p_seen, p_wait, p_locks, p_shared, p_floor) AS b;
    -- Who asks: known, active, with the skills that the lanes were chosen for, without an offer, and asking this first.
    SELECT array_agg(c.n) FILTER (WHERE c.usual IS NOT TRUE AND c.takes IS NOT NULL), array_agg(c.agent) FILTER (WHERE c.agent_is_old),
        array_agg(c.session) FILTER (WHERE c.session_is_old), array_agg(c.held)
        INTO v_which, v_agents, v_sessions, v_held
        FROM (SELECT s.n, s.takes, s.agent, s.session,
            a.last_seen <= v_now - p_presence AS agent_is_old, t.last_activity <= v_now - p_presence AS session_is_old,
            NOT (a.stale OR a.left_at IS NOT NULL OR a.terminated_at IS NOT NULL OR a.troubles > 0 OR a.draining
                 OR a.max_concurrent_tasks IS NOT NULL OR a.cool_until IS NOT NULL)
            AND a.skills = s.skills AND t.agent = s.agent AND t.ended_at IS NULL AND t.last_activity > v_now - p_idle
            AND (SELECT true FROM granted AS g WHERE g.space = v_space
                 AND g.request = s.request LIMIT 1) IS NULL
            AND (SELECT true FROM claim_row AS c WHERE c.request_id = s.request AND c.project = p_project
                 AND c.tenant = p_tenant LIMIT 1) IS NULL
            AND (SELECT true FROM task_base AS b WHERE b.tenant = p_tenant AND b.project = p_project
                 AND b.offer_to = s.agent LIMIT 1) IS NULL AS usual,
            CASE WHEN s.takes IS NOT NULL THEN (SELECT string_agg(b.id || ' ' || b.key, ' ' ORDER BY b.id) FROM (
                SELECT h.number FROM held AS h WHERE h.space = v_space AND h.session = s.session
                ORDER BY h.number LIMIT 100) AS f
                JOIN task_base AS b ON b.space = v_space AND b.number = f.number) END AS held
            FROM unnest(p_agent, p_session, p_skills, p_request, p_n) WITH ORDINALITY
                AS s (agent, session, skills, request, takes, n)
            LEFT JOIN LATERAL (SELECT a.*, concat_ws(E'\x1e', a.capabilities, a.tracks, a.type, a.models, a.region) AS skills
                FROM agent AS a WHERE a.tenant = p_tenant AND a.project = p_project AND a.id = s.agent LIMIT 1) AS a ON true
            LEFT JOIN LATERAL (SELECT t.* FROM session AS t
                WHERE t.tenant = p_tenant AND t.project = p_project AND t.id = s.session LIMIT 1) AS t ON true
            ORDER BY s.n) AS c;
    IF v_which IS NOT NULL THEN
        PERFORM unusual('claimants', v_which);
    END IF;
    -- A lane that the caller does not know might have had the best task.
    IF EXISTS (WITH RECURSIVE found AS (
            (SELECT q.lane FROM queue AS q WHERE q.space = v_space ORDER BY q.lane LIMIT 1)
            UNION ALL SELECT f.lane FROM found, LATERAL (SELECT q.lane FROM queue AS q WHERE q.space = v_space
                AND q.lane > found.lane ORDER BY q.lane LIMIT 1) AS f)
        SELECT FROM found WHERE found.lane <> ALL (p_lanes)) THEN
        PERFORM unusual('lanes', NULL);
    END IF;
    -- The heads of the lanes in the order of the claim, as far as the first lane of which there may be more.
    LOOP
        SELECT array_agg(x.place ORDER BY x.at), array_agg(x.id ORDER BY x.at), array_agg(x.number ORDER BY x.at),
            array_agg(x.lane ORDER BY x.at), array_agg(x.plain ORDER BY x.at),
            min(x.at) FILTER (WHERE x.n = v_page), count(*)
            INTO v_places, v_ids, v_numbers, v_lane, v_plain, v_full, v_edge
            FROM (SELECT q.*, l.lane_number::integer AS lane,
                row_number() OVER (ORDER BY q.band, q.rank - l.boost * v_now, q.sequence, q.id)::integer AS at
                FROM unnest(p_lanes, p_boosts) WITH ORDINALITY AS l (name, boost, lane_number), LATERAL (
                    SELECT y.*, row_number() OVER () AS n FROM (SELECT k.ctid AS place, k.id, k.number, k.plain, k.band,
                        k.rank, k.sequence FROM queue AS k
                        WHERE k.space = v_space AND k.lane = l.name
                        ORDER BY k.band, k.rank, k.sequence, k.id LIMIT v_page) AS y) AS q) AS x;
        v_edge := coalesce(v_full, v_edge);
        IF v_all THEN
            v_chosen := ARRAY(SELECT generate_series(1, least(v_total, v_edge)));
        ELSE
            v_taken := array_fill(false, ARRAY[v_edge]);
            v_next := array_fill(1, ARRAY[cardinality(p_sets)]);
            v_chosen := '{}';
            FOR v_slot IN 1 .. v_total LOOP
                v_at := v_next[p_set[v_slot]];
                WHILE v_at <= v_edge AND (v_taken[v_at] OR substr(p_sets[p_set[v_slot]], v_lane[v_at], 1) = '0') LOOP
                    v_at := v_at + 1;
                END LOOP;
                v_next[p_set[v_slot]] := v_at;
                EXIT WHEN v_at > v_edge;
                v_taken[v_at] := true;
                v_chosen := v_chosen || v_at;
            END LOOP;
        END IF;
        EXIT WHEN cardinality(v_chosen) = v_total OR v_full IS NULL;
        v_page := v_page * 8;
    END LOOP;
    v_count := cardinality(v_chosen);
    IF v_count < v_total THEN  -- the first command that would not get all that it asks for
        PERFORM unusual('few', ARRAY[p_of[v_count + 1]]);
    END IF;
    IF v_all THEN
        v_places := v_places[1:v_total];
        v_ids := v_ids[1:v_total];
        v_numbers := v_numbers[1:v_total];
        v_plain := v_plain[1:v_total];
    ELSE
        SELECT array_agg(v_places[c.at] ORDER BY c.n), array_agg(i.id ORDER BY c.n), array_agg(v_numbers[c.at] ORDER BY c.n),
            array_agg(v_plain[c.at] ORDER BY c.n) INTO v_places, v_ids, v_numbers, v_plain
            FROM unnest(v_chosen) WITH ORDINALITY AS c (at, n)
            JOIN unnest(v_ids) WITH ORDINALITY AS i (id, at) ON i.at = c.at;
    END IF;
    v_which := ARRAY(SELECT o.of FROM unnest(p_of, v_plain) AS o (of, is_plain) WHERE NOT o.is_plain GROUP BY o.of);
    IF v_which <> '{}' THEN
        PERFORM unusual('tasks', v_which);
    END IF;
    IF v_agents IS NOT NULL OR v_sessions IS NOT NULL THEN
        PERFORM note_presence(p_tenant, p_project, v_now, v_agents, v_sessions);
    END IF;
    v_first := draw_sequences(v_total);
    DELETE FROM queue WHERE ctid = ANY (v_places) AND space = v_space AND number = ANY (v_numbers);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count <> v_total OR v_total > 1024 THEN
        PERFORM unusual('changed', NULL);
    END IF;
    INSERT INTO granted (space, tenant, session, number, agent, at, lease, epoch, numbers, "user", request, hash, key)
        SELECT v_space, p_tenant, s.session, v_first + s.n - 1, s.agent, v_now, s.lease, v_epoch,
            v_numbers[s.n : s.n + s.takes - 1], s."user", s.request, s.hash, s.key
        FROM unnest(p_session, p_agent, p_lease, p_user, p_request, p_hash, p_key, p_n) WITH ORDINALITY
            AS s (session, agent, lease, "user", request, hash, key, takes, n) WHERE s.takes IS NOT NULL;
    INSERT INTO held (space, tenant, session, number, agent, process)
        SELECT v_space, p_tenant, s.session, s.number, s.agent, s.process
        FROM unnest(p_session, v_numbers, p_agent, p_process) AS s (session, number, agent, process);
    INSERT INTO due_block (space, tenant, at, numbers)
        SELECT v_space, p_tenant, v_now + s.lease, array_agg(s.number)
        FROM unnest(v_numbers, p_lease) AS s (number, lease) GROUP BY s.lease;
    RETURN QUERY WITH given AS MATERIALIZED (
        SELECT s.* FROM unnest(v_numbers, p_agent, p_session, p_user, p_lease, p_of, v_held) WITH ORDINALITY
            AS s (number, agent, session, "user", lease, of, held, n)
    ), moved AS (
        UPDATE task_hot AS t SET
            state = 'claimed', generation = t.generation + 1, attempts = t.attempts + 1, agent = g.agent,
            session = g.session, claimed_at = v_now, lease = g.lease, lease_until = v_now + g.lease, presented_at = v_now,
            claim_epoch = v_epoch, updated_at = v_now, version = t.version + 1, lane = NULL, due_at = v_now + g.lease,
            nonce = substr(p_nonces, (g.n::integer - 1) * 16 + 1, 16), claim_user = g."user",
            granted = v_first + g.of - 1, grant_event = v_first + g.n - 1
        FROM given AS g
        WHERE t.space = v_space AND t.number = g.number AND t.plain AND t.lane IS NOT NULL AND t.state = 'ready'
            AND t.generation = 0 AND t.attempts = 0
        RETURNING g.n, g.of, g.lease, g.held, t.number, t.run, t.version, t.ready_at, t.work_product, t.started_at, t.completed_at
    ), block AS (
        INSERT INTO event_block (first, last, tenant, project, time, kind, new_state, epoch, form, seed, numbers, version,
            agent, session, "user", address, trace_id, claimer, request_id, request_hash, facts)
        SELECT v_first, v_first + v_total - 1, p_tenant, p_project, v_now, 'task.claimed', 'claimed', v_epoch,
            2, p_seed, v_numbers, array_agg(m.version ORDER BY m.n), p_agent, p_session, p_by, p_address, p_trace, p_user,
            p_request, p_hash, array_agg('1,' || m.run || ',' || m.lease || ',' || m.of ORDER BY m.n) FROM moved AS m
        HAVING count(*) = v_total
    )
    SELECT m.n, v_now, v_first + v_total - 1, pg_current_xact_id()::text, v_epoch, m.held, b.id, b.key, b.ref, b.track, b.type, b.dag, b.parent, m.run, b.max_attempts, b.priority, b.tags, b.not_before,
        b.created_by, b.created_at, m.ready_at, m.version, w.title, w.description, w.spec, w.metadata, w.constraints,
        w.output, w.touches
    FROM moved AS m
    JOIN task_base AS b ON b.space = v_space AND b.number = m.number
    JOIN brief AS w ON w.id = b.id AND w.project = p_project AND w.tenant = p_tenant
    WHERE CASE WHEN b.unmet > 0 OR b.last_error IS NOT NULL OR b.answers <> '[]' OR m.work_product IS NOT NULL
        OR m.started_at IS NOT NULL OR m.completed_at IS NOT NULL OR b.failed_at IS NOT NULL
        OR b.dead_lettered_at IS NOT NULL OR b.archived_at IS NOT NULL OR b.offer_to IS NOT NULL
        OR w.spec <> '{}' AND strpos(w.spec, 'context_refs') + strpos(w.spec, '$body') > 0
        OR strpos(w.description, '$body') > 0
        OR strpos(concat(b.key, b.type, b.created_by, w.title, w.description), E'\x01') > 0
        THEN unusual('tasks', ARRAY[m.of]) ELSE true END;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count <> v_total THEN
        PERFORM unusual('changed', NULL);
    END IF;
END $$;

-- Submits of one project, each the current holder's of a plain task. `p_follows`: the caller has the project to itself, and
-- does what follows for other tasks; else a task that concerns others is left to it. A claim has its nonce in the task's
-- row, or a row of its own. The guard is the WHERE of `moved`: what the receipt says against the row that is written.
CREATE FUNCTION submit_results(p_tenant text, p_project text, p_given bigint, p_schema bigint, p_seen text, p_wait text,
    p_locks bigint[], p_shared boolean[], p_floor integer, p_presence bigint, p_epoch text, p_ref text[],
    p_generation bigint[], p_nonces bytea, p_agent text[], p_result text[], p_data text[], p_summary text[],
    p_size bigint[], p_digest text[], p_request text[], p_by text[], p_address text[], p_trace text[], p_seed bytea,
    p_follows boolean)
RETURNS TABLE (slot bigint, o_now bigint, o_last bigint, o_xid text, key text, version bigint, product text, task text,
    state_before text)
LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
    SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_memoize = off SET jit = off
    SET random_page_cost = 0 SET seq_page_cost = 0 SET cpu_tuple_cost = 1 SET cpu_index_tuple_cost = 1 AS $$
#variable_conflict use_column
DECLARE
    v_total integer := cardinality(p_ref);
    v_now bigint;
    v_epoch text;
    v_space integer;
    v_time text;
    v_first bigint;
    v_count integer;
BEGIN
    SELECT b.o_now, b.o_epoch, b.o_space INTO v_now, v_epoch, v_space
        FROM begin_hot(p_tenant, p_project, p_given, p_schema, p_seen, p_wait, p_locks, p_shared, p_floor) AS b;
    IF v_epoch <> p_epoch OR v_total > 1024 THEN
        PERFORM unusual('epoch', NULL);
    END IF;
    v_time := 'result_' || id_time(v_now);
    v_first := draw_sequences(v_total);
    RETURN QUERY WITH found AS MATERIALIZED (
        SELECT g.n, g.generation, substr(p_nonces, g.n::integer * 16 - 15, 16) AS nonce, g.agent AS only_of,
            v_time || g.result AS result, g.data, g.summary, g.size, g.digest, g.request, b.id, b.key, t.number, t.state,
            t.renewals, t.run, t.attempts, t.version, t.agent, t.session, coalesce(t.claim_user, c."user") AS claim_user,
            coalesce(c.acquired_at, t.claimed_at) AS acquired_at, t.started_at, t.granted, t.grant_event, t.plain, c.id AS claim,
            c.nonce AS own_nonce, a.last_seen <= v_now - p_presence AS agent_is_old,
            x.last_activity <= v_now - p_presence AND x.ended_at IS NULL AS session_is_old,
            b.dependents > 0 OR b.children > 0 OR b.dag <> 'dag_' || substr(b.id, 6) OR b.id NOT LIKE 'task\_%' AS follows,
            'wp-' || b.key || '-gen' || t.generation || '-'
                || left(encode(sha256(convert_to(v_time || g.result, 'UTF8')), 'hex'), 6) AS product
        FROM unnest(p_ref, p_generation, p_agent, p_result, p_data, p_summary, p_size, p_digest, p_request)
            WITH ORDINALITY AS g (ref, generation, agent, result, data, summary, size, digest, request, n)
        CROSS JOIN LATERAL (SELECT * FROM task_base AS b
            WHERE b.ref = g.ref AND (b.project = p_project AND b.tenant = p_tenant) IS TRUE OFFSET 0) AS b
        CROSS JOIN LATERAL (SELECT * FROM task_hot AS t WHERE t.space = v_space AND t.number = b.number OFFSET 0) AS t
        LEFT JOIN LATERAL (SELECT * FROM claim_row AS c
            WHERE c.id = CASE WHEN t.granted IS NULL THEN b.id || '@' || t.generation END
                AND (c.project = p_project AND c.tenant = p_tenant) IS TRUE OFFSET 0) AS c ON true
        LEFT JOIN LATERAL (SELECT * FROM agent AS a
            WHERE a.id = t.agent AND (a.project = p_project AND a.tenant = p_tenant) IS TRUE OFFSET 0) AS a ON true
        LEFT JOIN LATERAL (SELECT * FROM session AS x
            WHERE x.id = t.session AND (x.project = p_project AND x.tenant = p_tenant) IS TRUE OFFSET 0) AS x ON true
        WHERE t.claim_epoch IS NOT NULL AND (t.granted IS NULL) = (c.id IS NOT NULL) AND t.percent IS DISTINCT FROM 100
            AND (a.stale OR a.left_at IS NOT NULL OR a.terminated_at IS NOT NULL OR a.troubles > 0) IS NOT TRUE
    ), moved AS (
        UPDATE task_hot AS t SET
            state = 'completed', agent = NULL, session = NULL, claimed_at = NULL, lease = NULL, lease_until = NULL,
            claim_epoch = NULL, presented_at = NULL, renewals = 0, completed_at = v_now, work_product = f.product,
            percent = 100, started_at = coalesce(t.started_at, v_now), updated_at = v_now, version = t.version + 1,
            due_at = NULL, plain = false, nonce = NULL, claim_user = NULL, granted = NULL, grant_event = NULL
        FROM found AS f
        WHERE t.space = v_space AND t.number = f.number AND t.generation = f.generation
            AND coalesce(t.nonce, f.own_nonce) = f.nonce AND t.claim_epoch = p_epoch
            AND (f.only_of IS NULL OR t.agent = f.only_of) AND t.state = f.state AND t.renewals = f.renewals AND t.plain
            AND (p_follows OR NOT f.follows)
        RETURNING f.n
    ), ended AS (
        UPDATE claim_row AS c SET
            state = 'released', reason = 'COMPLETED', released_at = v_now, renewals = f.renewals, process = NULL,
            result_accepted = true, work_product = f.product, result_event = v_first + f.n - 1
        FROM found AS f
        WHERE c.id = f.claim AND (c.project = p_project AND c.tenant = p_tenant) IS TRUE AND c.state = 'active'
        RETURNING f.n
    ), freed AS (
        DELETE FROM held AS h USING found AS f
        WHERE h.space = v_space AND h.session = f.session AND h.number = f.number
    ), placed AS (
        INSERT INTO standing (space, tenant, state, id, number)
        SELECT v_space, p_tenant, 'completed', f.id, f.number FROM found AS f
    ), kept AS (
        INSERT INTO done (space, tenant, number, session, granted, grant_event, result_event, generation, run, attempt,
            renewals, at, size, nonce, result, product, digest, summary, request, data)
        SELECT v_space, p_tenant, f.number, f.session, f.granted, f.grant_event, v_first + f.n - 1, f.generation,
            f.run, f.attempts, f.renewals, v_now, f.size, f.nonce, f.result, f.product, f.digest, f.summary, f.request,
            f.data FROM found AS f WHERE f.claim IS NULL
    ), results AS (
        INSERT INTO result_row (tenant, project, id, task, run, generation, session, agent, "user", submitted_at, accepted,
            reason, data, summary, size, digest, processing, work_product, work_lost, late, request_id, artifacts)
        SELECT p_tenant, p_project, f.result, f.id, f.run, f.generation, f.session, f.agent, f.claim_user, v_now, true,
            'ACCEPTED', f.data, f.summary, f.size, f.digest, v_now - f.acquired_at, f.product, false, false, f.request,
            '[]' FROM found AS f WHERE f.claim IS NOT NULL
    ), block AS (
        INSERT INTO event_block (first, last, tenant, project, time, kind, new_state, form, seed, numbers, version, agent,
            session, "user", address, trace_id, claimer, request_id, said, summary, facts, generation, previous_state)
        SELECT v_first, v_first + v_total - 1, p_tenant, p_project, v_now, 'task.completed', 'completed', 2,
            p_seed, array_agg(f.number ORDER BY f.n), array_agg(f.version + 1 ORDER BY f.n), array_agg(f.agent ORDER BY f.n),
            array_agg(f.session ORDER BY f.n), p_by, p_address, p_trace, array_agg(f.claim_user ORDER BY f.n), p_request,
            p_data, p_summary, array_agg(f.run || ',' || f.acquired_at || ',' || f.renewals || ','
                || (f.started_at IS NULL)::integer || ',' || right(f.product, 6) ORDER BY f.n),
            CASE WHEN count(f.claim) > 0 THEN array_agg(f.generation ORDER BY f.n) END,
            CASE WHEN count(f.claim) > 0 THEN array_agg(f.state ORDER BY f.n) END FROM found AS f
        HAVING count(*) = v_total
    ), presence AS (
        SELECT note_presence(p_tenant, p_project, v_now, array_agg(f.agent) FILTER (WHERE f.agent_is_old),
            array_agg(f.session) FILTER (WHERE f.session_is_old)) FROM found AS f HAVING bool_or(f.agent_is_old OR f.session_is_old)
    )
    SELECT f.n, v_now, v_first + v_total - 1, pg_current_xact_id()::text, f.key, f.version + 1, f.product,
        CASE WHEN f.follows THEN f.id END, f.state
    FROM found AS f
    WHERE CASE WHEN (SELECT count(*) FROM moved) < v_total THEN unusual(
            CASE WHEN (SELECT bool_or(o.follows AND o.plain) FROM found AS o) THEN 'follows' ELSE 'receipts' END, ARRAY(
            SELECT k FROM generate_series(1, v_total) AS k WHERE k NOT IN (SELECT m.n FROM moved AS m)))
        WHEN (SELECT count(*) FROM ended) < (SELECT count(o.claim) FROM found AS o) THEN unusual('changed', NULL)
        ELSE (SELECT count(*) FROM presence) < 2 END;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count <> v_total THEN
        PERFORM unusual('receipts', ARRAY(SELECT generate_series(1, v_total)));
    END IF;
END $$;

-- Renewals of one project, each the current holder's of a plain task. The first starts the work, with an event of its own.
CREATE FUNCTION renew_claims(p_tenant text, p_project text, p_given bigint, p_schema bigint, p_seen text, p_wait text,
    p_locks bigint[], p_shared boolean[], p_floor integer, p_presence bigint, p_epoch text, p_mail bigint, p_ref text[],
    p_generation bigint[], p_nonces bytea, p_agent text[], p_lease bigint[], p_by_agent text[], p_by_session text[],
    p_by text[], p_address text[], p_trace text[], p_event text[], p_command text[])
RETURNS TABLE (slot bigint, o_now bigint, o_last bigint, o_xid text, until bigint, mail bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
    SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_memoize = off SET jit = off
    SET random_page_cost = 0 SET seq_page_cost = 0 SET cpu_tuple_cost = 1 SET cpu_index_tuple_cost = 1 AS $$
#variable_conflict use_column
DECLARE
    v_total integer := cardinality(p_ref);
    v_now bigint;
    v_epoch text;
    v_space integer;
    v_time text;
    v_count integer;
BEGIN
    SELECT b.o_now, b.o_epoch, b.o_space INTO v_now, v_epoch, v_space
        FROM begin_hot(p_tenant, p_project, p_given, p_schema, p_seen, p_wait, p_locks, p_shared, p_floor) AS b;
    IF v_epoch <> p_epoch THEN
        PERFORM unusual('epoch', NULL);
    END IF;
    v_time := id_time(v_now);
    RETURN QUERY WITH found AS MATERIALIZED (
        SELECT g.*, substr(p_nonces, g.n::integer * 16 - 15, 16) AS nonce, c.nonce AS own_nonce, b.id, b.key, b.track,
            t.number, t.state, t.renewals, t.version, t.agent AS holder, t.session, v_now + coalesce(g.lease, t.lease) AS until, a.last_seen <= v_now - p_presence AS agent_is_old,
            x.last_activity <= v_now - p_presence AND x.ended_at IS NULL AS session_is_old
        FROM unnest(p_ref, p_generation, p_agent, p_lease, p_by_agent, p_by_session, p_by, p_address, p_trace,
            p_event, p_command) WITH ORDINALITY AS g (ref, generation, agent, lease, by_agent, by_session, "by",
            address, trace, event, command, n)
        CROSS JOIN LATERAL (SELECT * FROM task_base AS b
            WHERE b.ref = g.ref AND (b.project = p_project AND b.tenant = p_tenant) IS TRUE OFFSET 0) AS b
        CROSS JOIN LATERAL (SELECT * FROM task_hot AS t WHERE t.space = v_space AND t.number = b.number OFFSET 0) AS t
        LEFT JOIN LATERAL (SELECT * FROM claim_row AS c
            WHERE c.id = CASE WHEN t.granted IS NULL THEN b.id || '@' || t.generation END
                AND (c.project = p_project AND c.tenant = p_tenant) IS TRUE OFFSET 0) AS c ON true
        LEFT JOIN LATERAL (SELECT * FROM agent AS a
            WHERE a.id = t.agent AND (a.project = p_project AND a.tenant = p_tenant) IS TRUE OFFSET 0) AS a ON true
        LEFT JOIN LATERAL (SELECT * FROM session AS x
            WHERE x.id = t.session AND (x.project = p_project AND x.tenant = p_tenant) IS TRUE OFFSET 0) AS x ON true
        WHERE t.claim_epoch IS NOT NULL
            AND (a.stale OR a.left_at IS NOT NULL OR a.terminated_at IS NOT NULL OR a.troubles > 0) IS NOT TRUE
    ), moved AS (
        UPDATE task_hot AS t SET
            lease = coalesce(f.lease, t.lease), lease_until = f.until, renewals = t.renewals + 1, presented_at = v_now,
            due_at = f.until, state = 'running',
            started_at = CASE WHEN f.state = 'claimed' THEN v_now ELSE t.started_at END,
            updated_at = CASE WHEN f.state = 'claimed' THEN v_now ELSE t.updated_at END,
            version = CASE WHEN f.state = 'claimed' THEN t.version + 1 ELSE t.version END
        FROM found AS f
        WHERE t.space = v_space AND t.number = f.number AND t.generation = f.generation
            AND coalesce(t.nonce, f.own_nonce) = f.nonce AND t.claim_epoch = p_epoch
            AND (f.agent IS NULL OR t.agent = f.agent) AND t.state = f.state AND t.renewals = f.renewals AND t.plain
        RETURNING f.n
    ), due AS (
        INSERT INTO due_block (space, tenant, at, numbers)
        SELECT v_space, p_tenant, f.until, array_agg(f.number) FROM found AS f GROUP BY f.until
    ), started AS (
        INSERT INTO event (tenant, id, time, kind, level, project, task, key, version, track, generation, agent, session,
            "user", address, previous_state, new_state, message, details, patch, trace_id, causation_id, of_claim)
        SELECT p_tenant, 'evt_' || v_time || event, v_now, 'task.started', 'info', p_project, id, key, version + 1, track,
            generation, coalesce(by_agent, holder), coalesce(by_session, session), "by", address, 'claimed', 'running', '',
            '{}', '[["task","' || id || '",{"state":"running","started_at":' || v_now || ',"updated_at":' || v_now
                || ',"version":' || version + 1 || '}]]',
            trace, 'cmd_' || v_time || command, by_session IS NULL OR by_session = session
        FROM found WHERE state = 'claimed' ORDER BY n
        RETURNING sequence
    ), presence AS (
        SELECT note_presence(p_tenant, p_project, v_now, array_agg(f.holder) FILTER (WHERE f.agent_is_old),
            array_agg(f.session) FILTER (WHERE f.session_is_old)) FROM found AS f HAVING bool_or(f.agent_is_old OR f.session_is_old)
    )
    SELECT f.n, v_now, (SELECT max(s.sequence) FROM started AS s), pg_current_xact_id()::text, f.until,
        (SELECT count(*) FROM (SELECT FROM message AS m WHERE m.tenant = p_tenant AND m.project = p_project
            AND m.recipient = f.holder AND m.read_at IS NULL LIMIT p_mail) AS unread)
    FROM found AS f
    WHERE CASE WHEN (SELECT count(*) FROM moved) < v_total THEN unusual('receipts', ARRAY(
            SELECT k FROM generate_series(1, v_total) AS k WHERE k NOT IN (SELECT m.n FROM moved AS m)))
        ELSE (SELECT count(*) FROM presence) < 2 END;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count <> v_total THEN
        PERFORM unusual('receipts', ARRAY(SELECT generate_series(1, v_total)));
    END IF;
END $$;
