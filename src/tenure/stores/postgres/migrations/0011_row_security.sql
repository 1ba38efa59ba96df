-- breaking: no
-- since: 0.2.0
--
-- Row-level security: see `stores/postgres/row_security.py`. Policies, roles and grants are an operator's choice
-- (`tenure db rls on`), so they are in no migration. Here is what statements need to meet them.

-- --- the fast path -------------------------------------------------------------------------------------------------
-- A call sets its tenant before it reads a table. No function is on the other side of an indexed column: a policy keeps
-- such a comparison from the index, except where the planner makes a parameter of it. And the last event has bounds on
-- both sides: a policy would walk over those of other tenants to the first that it shows.

-- What every call begins with: settings that hold to the commit, the locks, and only then the first look. `now` is the
-- clock's, never before the project's last event. Refuses a call by an older program, or on a project that has changed.
CREATE OR REPLACE FUNCTION begin_hot(p_tenant text, p_project text, p_given bigint, p_schema bigint, p_seen text, p_wait text,
    p_locks bigint[], p_shared boolean[], p_floor integer, OUT o_now bigint, OUT o_epoch text, OUT o_space integer)
LANGUAGE plpgsql AS $$
DECLARE
    v_breaking bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM unusual('isolation', NULL);
    END IF;
    PERFORM set_config('tenure.tenant', p_tenant, true), set_config('lock_timeout', p_wait, true),
        set_config('client_min_messages', 'warning', true),
        set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                   WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true);
    PERFORM CASE WHEN g.is_shared THEN pg_advisory_xact_lock_shared(g.key) ELSE pg_advisory_xact_lock(g.key) END
        FROM unnest(p_locks, p_shared) AS g (key, is_shared);
    SELECT m.breaking, coalesce(e.epoch, m.epoch) INTO v_breaking, o_epoch
        FROM meta AS m LEFT JOIN epoch AS e ON e.tenant = p_tenant;
    IF v_breaking > p_schema THEN
        PERFORM unusual('schema', NULL);
    END IF;
    IF strpos(o_epoch, '.') > 0 THEN  -- frozen by a move: see `core/tenant_moves.py`
        PERFORM unusual('epoch', NULL);
    END IF;
    IF p_seen IS DISTINCT FROM (SELECT p.xmin::text || p.ctid::text FROM project AS p
        WHERE p.tenant = p_tenant AND p.project = p_project AND p.id = p_project) THEN
        PERFORM unusual('project', NULL);
    END IF;
    o_space := (SELECT s.number FROM space AS s WHERE s.tenant = p_tenant AND s.project = p_project);
    o_now := greatest(coalesce(p_given, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
        (SELECT l.time FROM (SELECT e.project, e.tenant, e.time FROM event AS e
            WHERE (e.project, e.tenant, e.sequence) > (p_project, p_tenant, 0)
                AND (e.project, e.tenant, e.sequence) <= (p_project, p_tenant, 9223372036854775807)
            ORDER BY e.project DESC, e.tenant DESC, e.sequence DESC LIMIT 1) AS l
            WHERE l.project = p_project AND l.tenant = p_tenant),
        (SELECT l.time FROM (SELECT e.project, e.tenant, e.time FROM event_block AS e
            WHERE (e.project, e.tenant, e.last) > (p_project, p_tenant, 0)
                AND (e.project, e.tenant, e.last) <= (p_project, p_tenant, 9223372036854775807)
            ORDER BY e.project DESC, e.tenant DESC, e.last DESC LIMIT 1) AS l
            WHERE l.project = p_project AND l.tenant = p_tenant));
    IF has_due(p_tenant, p_project, o_now) THEN
        PERFORM unusual('due', NULL);
    END IF;
    -- Before the first sequence is drawn: see `log_cursor`.
    PERFORM pg_advisory_xact_lock_shared(p_floor, (last_value - (NOT is_called)::integer & 2147483647)::integer)
        FROM event_sequence_seq;
END $$;

-- Claim next, of one project. One item a task in every array; `p_n` has how many its command takes, at the command's first,
-- and `p_of` the place of that first. `p_sets`: which of the lanes fit, a digit each; `p_set`: the one of each command.
CREATE OR REPLACE FUNCTION claim_tasks(p_tenant text, p_project text, p_given bigint, p_schema bigint, p_seen text, p_wait text,
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
    v_page integer := least(v_total, greatest(8, 8 * v_total / greatest(v_lanes, 1)));
    v_now bigint;
    v_epoch text;
    v_space integer;
    v_which bigint[];
    v_agents text[];
    v_sessions text[];
    v_held text[];
    v_places tid[];
    v_numbers bigint[];
    v_lane integer[];
    v_plain boolean[];
    v_edge integer;
    v_full integer;
    v_all boolean := cardinality(p_sets) = 1 AND p_sets[1] !~ '0';
    v_fits boolean[] := ARRAY(SELECT f.digit = '1' FROM unnest(p_sets) WITH ORDINALITY AS s (digits, n),
        string_to_table(s.digits, NULL) WITH ORDINALITY AS f (digit, lane) ORDER BY s.n, f.lane);
    v_set integer;
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
    -- The heads of the lanes in the order of the claim, as far as the first lane of which more may be wanted: of none are
    -- more than all tasks of the call.
    LOOP
        SELECT array_agg(x.place), array_agg(x.number), array_agg(x.lane), array_agg(x.plain),
            min(x.at) FILTER (WHERE x.n = v_page AND v_page < v_total), count(*)
            INTO v_places, v_numbers, v_lane, v_plain, v_full, v_edge
            FROM (SELECT y.*, row_number() OVER ()::integer AS at FROM (
                SELECT q.place, q.number, q.plain, q.n, l.lane_number::integer AS lane
                FROM unnest(p_lanes, p_boosts) WITH ORDINALITY AS l (name, boost, lane_number), LATERAL (
                    SELECT k.ctid AS place, k.*, row_number() OVER () AS n FROM (SELECT k.ctid, k.* FROM queue AS k
                        WHERE k.space = v_space AND k.lane = l.name
                        ORDER BY k.band, k.rank, k.sequence, k.id LIMIT v_page) AS k) AS q
                ORDER BY q.band, q.rank - l.boost * v_now, q.sequence, q.id) AS y) AS x;
        v_edge := coalesce(v_full, v_edge);
        IF v_all THEN
            v_chosen := ARRAY(SELECT generate_series(1, least(v_total, v_edge)));
        ELSE
            v_taken := array_fill(false, ARRAY[v_edge]);
            v_next := array_fill(1, ARRAY[cardinality(p_sets)]);
            v_chosen := '{}';
            FOR v_slot IN 1 .. v_total LOOP
                v_set := p_set[v_slot];
                v_at := NULL;
                FOR v_try IN v_next[v_set] .. v_edge LOOP
                    IF v_fits[(v_set - 1) * v_lanes + v_lane[v_try]] AND NOT v_taken[v_try] THEN
                        v_at := v_try;
                        EXIT;
                    END IF;
                END LOOP;
                EXIT WHEN v_at IS NULL;
                v_next[v_set] := v_at + 1;
                v_taken[v_at] := true;
                v_chosen := v_chosen || v_at;
            END LOOP;
        END IF;
        EXIT WHEN cardinality(v_chosen) = v_total OR v_full IS NULL;
        v_page := least(v_total, 2 * v_page);
    END LOOP;
    v_count := cardinality(v_chosen);
    IF v_count < v_total THEN  -- the first command that would not get all that it asks for
        PERFORM unusual('few', ARRAY[p_of[v_count + 1]]);
    END IF;
    SELECT array_agg(v_places[c.at]), array_agg(v_numbers[c.at]), array_agg(v_plain[c.at])
        INTO v_places, v_numbers, v_plain FROM unnest(v_chosen) AS c (at);
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
CREATE OR REPLACE FUNCTION submit_results(p_tenant text, p_project text, p_given bigint, p_schema bigint, p_seen text, p_wait text,
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
        CROSS JOIN LATERAL (SELECT t.*, CASE WHEN t.granted IS NULL THEN b.id || '@' || t.generation END AS claim
            FROM task_hot AS t WHERE t.space = v_space AND t.number = b.number OFFSET 0) AS t
        LEFT JOIN LATERAL (SELECT * FROM claim_row AS c
            WHERE c.id = t.claim AND (c.project = p_project AND c.tenant = p_tenant) IS TRUE OFFSET 0) AS c ON true
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
CREATE OR REPLACE FUNCTION renew_claims(p_tenant text, p_project text, p_given bigint, p_schema bigint, p_seen text, p_wait text,
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
        CROSS JOIN LATERAL (SELECT t.*, CASE WHEN t.granted IS NULL THEN b.id || '@' || t.generation END AS claim
            FROM task_hot AS t WHERE t.space = v_space AND t.number = b.number OFFSET 0) AS t
        LEFT JOIN LATERAL (SELECT * FROM claim_row AS c
            WHERE c.id = t.claim AND (c.project = p_project AND c.tenant = p_tenant) IS TRUE OFFSET 0) AS c ON true
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

-- --- functions of the owner ----------------------------------------------------------------------------------------
-- The role of the application may not do these things itself. They run with the owner's rights, whom no policy
-- restricts: so each names its tenant in every statement, or returns nothing of a row but its tenant and its place.

-- The end of the log of each of these tenants, for one listener of many.
CREATE FUNCTION log_ends(p_tenants text[]) RETURNS TABLE (tenant text, last bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT t.name, coalesce(greatest(
        (SELECT e.sequence FROM event AS e
            WHERE (e.tenant, e.sequence) > (t.name, 0) AND (e.tenant, e.sequence) <= (t.name, 9223372036854775807)
            ORDER BY e.tenant DESC, e.sequence DESC LIMIT 1),
        (SELECT e.last FROM event_block AS e
            WHERE (e.tenant, e.last) > (t.name, 0) AND (e.tenant, e.last) <= (t.name, 9223372036854775807)
            ORDER BY e.tenant DESC, e.last DESC LIMIT 1)), 0) FROM unnest(p_tenants) AS t (name)
$$;

-- Those of these tenants with an event beyond their mark, or one that the snapshot of the mark did not include: it
-- committed late, so it does not lie far back.
CREATE FUNCTION tenants_changed(p_tenants text[], p_marks bigint[], p_snapshots text[], p_back bigint) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT g.tenant FROM unnest(p_tenants, p_marks, p_snapshots) AS g (tenant, mark, snapshot)
    WHERE EXISTS (SELECT FROM event AS e
            WHERE (e.tenant, e.sequence) > (g.tenant, CASE WHEN g.snapshot IS NULL THEN g.mark ELSE g.mark - p_back END)
                AND (e.tenant, e.sequence) <= (g.tenant, 9223372036854775807)
                AND (e.sequence > g.mark OR NOT pg_visible_in_snapshot(e.xid, g.snapshot::pg_snapshot)))
        OR EXISTS (SELECT FROM event_block AS e
            WHERE (e.tenant, e.last) > (g.tenant, CASE WHEN g.snapshot IS NULL THEN g.mark ELSE g.mark - p_back END)
                AND (e.tenant, e.last) <= (g.tenant, 9223372036854775807)
                AND (e.last > g.mark OR NOT pg_visible_in_snapshot(e.xid, g.snapshot::pg_snapshot)))
$$;

-- For a leader that begins: when the first task or schedule of each of these tenants falls due, if not after `p_until`, and
-- 0 where something reads its log; and whether its last event is later than `p_since`. The others have nothing for it.
CREATE FUNCTION tenants_due(p_tenants text[], p_until bigint, p_since bigint)
RETURNS TABLE (tenant text, at bigint, is_changed boolean) LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT d.tenant, min(d.at), bool_or(d.is_changed) FROM (
        SELECT s.tenant, (SELECT b.at FROM due_block AS b WHERE b.space = s.number AND b.at <= p_until
                AND EXISTS (SELECT FROM unnest(b.numbers) AS n (number), LATERAL (SELECT h.due_at FROM task_hot AS h
                    WHERE h.space = b.space AND h.number = n.number LIMIT 1) AS t WHERE t.due_at = b.at)
                ORDER BY b.at LIMIT 1), false
            FROM space AS s WHERE s.tenant = ANY (p_tenants)
        UNION ALL SELECT c.tenant, c.next_at, false FROM schedule AS c
            WHERE c.tenant = ANY (p_tenants) AND c.next_at <= p_until
        UNION ALL SELECT k.tenant, 0, false FROM sink AS k WHERE k.tenant = ANY (p_tenants)
        UNION ALL SELECT r.tenant, 0, false FROM log_cursor AS r WHERE r.tenant = ANY (p_tenants)
        UNION ALL SELECT g.tenant, NULL, true FROM unnest(p_tenants) AS g (tenant) WHERE greatest(
            (SELECT e.time FROM event AS e
                WHERE (e.tenant, e.sequence) > (g.tenant, 0) AND (e.tenant, e.sequence) <= (g.tenant, 9223372036854775807)
                ORDER BY e.tenant DESC, e.sequence DESC LIMIT 1),
            (SELECT e.time FROM event_block AS e
                WHERE (e.tenant, e.last) > (g.tenant, 0) AND (e.tenant, e.last) <= (g.tenant, 9223372036854775807)
                ORDER BY e.tenant DESC, e.last DESC LIMIT 1)) > p_since
    ) AS d (tenant, at, is_changed) WHERE d.at IS NOT NULL OR d.is_changed GROUP BY d.tenant
$$;

-- The names of all tenants, for the check of the store.
CREATE FUNCTION tenants_here() RETURNS SETOF text LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT DISTINCT tenant FROM project
$$;

-- On a copy of a store, and nowhere else: a new epoch for every tenant that has none of this place. A different one for
-- each, since the receipts of one must not be valid for another. The mark of a move stays: what is frozen stays frozen.
CREATE FUNCTION settle_epochs(p_epoch text, p_seed text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_place text := (SELECT system_identifier FROM pg_control_system())::text || '/'
        || (SELECT oid FROM pg_database WHERE datname = current_database())::text || '/'
        || (SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE c.oid = 'meta'::regclass);
BEGIN
    UPDATE meta SET epoch = p_epoch, place = v_place WHERE place <> v_place;
    UPDATE epoch SET epoch = substr(md5(tenant || p_seed), 1, 8) || substr(epoch, 9), place = v_place WHERE place <> v_place;
END $$;

-- Drops the events of these tasks, but never the project's last. `p_gone`: the sequences of theirs that are in blocks,
-- whose items are emptied. The only way to remove an event: the application's role may only append and read. From a
-- sealed log (0012) it drops what a seal covers, and nothing else: a log with a seal is sealed for good, whatever the
-- project's row says, which the role may change.
CREATE FUNCTION drop_events(p_tenant text, p_project text, p_tasks text[], p_gone bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_last bigint := (SELECT max(l.at) FROM (
        (SELECT e.project, e.tenant, e.sequence AS at FROM event AS e
            WHERE (e.project, e.tenant, e.sequence) > (p_project, p_tenant, 0)
                AND (e.project, e.tenant, e.sequence) <= (p_project, p_tenant, 9223372036854775807)
            ORDER BY e.project DESC, e.tenant DESC, e.sequence DESC LIMIT 1)
        UNION ALL
        (SELECT e.project, e.tenant, e.last FROM event_block AS e
            WHERE (e.project, e.tenant, e.last) > (p_project, p_tenant, 0)
                AND (e.project, e.tenant, e.last) <= (p_project, p_tenant, 9223372036854775807)
            ORDER BY e.project DESC, e.tenant DESC, e.last DESC LIMIT 1)) AS l
        WHERE l.project = p_project AND l.tenant = p_tenant);
    v_sealed bigint := (SELECT s.last FROM seal AS s WHERE s.tenant = p_tenant AND s.project = p_project
        ORDER BY s.id DESC LIMIT 1);
    v_empty bigint[];
BEGIN
    IF p_tenant IS DISTINCT FROM current_setting('tenure.tenant', true) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'events of another tenant cannot be dropped';
    END IF;
    IF v_sealed IS NULL AND EXISTS (
            SELECT FROM project AS p WHERE p.tenant = p_tenant AND p.id = p_project AND p.audited_at > 0) THEN
        v_sealed := 0;
    END IF;
    IF EXISTS (SELECT FROM event AS e WHERE e.tenant = p_tenant AND e.project = p_project AND e.task = ANY (p_tasks)
                AND e.sequence + 0 BETWEEN v_sealed + 1 AND v_last - 1)
            OR EXISTS (SELECT FROM unnest(p_gone) AS g (at) WHERE g.at BETWEEN v_sealed + 1 AND v_last - 1) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'events that no seal covers cannot be dropped';
    END IF;
    DELETE FROM event AS e WHERE e.tenant = p_tenant AND e.project = p_project AND e.task = ANY (p_tasks)
        AND e.sequence + 0 < v_last;
    WITH emptied AS (
        UPDATE event_block AS b SET
        "id" = kept."id", "task" = kept."task", "key" = kept."key", "version" = kept."version", "track" = kept."track",
        "generation" = kept."generation", "agent" = kept."agent", "session" = kept."session", "user" = kept."user",
        "address" = kept."address", "previous_state" = kept."previous_state", "trace_id" = kept."trace_id",
        "causation_id" = kept."causation_id", "claimer" = kept."claimer", "request_id" = kept."request_id",
        "request_hash" = kept."request_hash", "said" = kept."said", "facts" = kept."facts", "numbers" = kept."numbers",
        "summary" = kept."summary"
        FROM (
            SELECT b.last,
            array_agg(CASE WHEN gone.at IS NULL THEN e."id" END ORDER BY e.n) AS "id",
            array_agg(CASE WHEN gone.at IS NULL THEN e."task" END ORDER BY e.n) AS "task",
            array_agg(CASE WHEN gone.at IS NULL THEN e."key" END ORDER BY e.n) AS "key",
            array_agg(CASE WHEN gone.at IS NULL THEN e."version" END ORDER BY e.n) AS "version",
            array_agg(CASE WHEN gone.at IS NULL THEN e."track" END ORDER BY e.n) AS "track",
            array_agg(CASE WHEN gone.at IS NULL THEN e."generation" END ORDER BY e.n) AS "generation",
            array_agg(CASE WHEN gone.at IS NULL THEN e."agent" END ORDER BY e.n) AS "agent",
            array_agg(CASE WHEN gone.at IS NULL THEN e."session" END ORDER BY e.n) AS "session",
            array_agg(CASE WHEN gone.at IS NULL THEN e."user" END ORDER BY e.n) AS "user",
            array_agg(CASE WHEN gone.at IS NULL THEN e."address" END ORDER BY e.n) AS "address",
            array_agg(CASE WHEN gone.at IS NULL THEN e."previous_state" END ORDER BY e.n) AS "previous_state",
            array_agg(CASE WHEN gone.at IS NULL THEN e."trace_id" END ORDER BY e.n) AS "trace_id",
            array_agg(CASE WHEN gone.at IS NULL THEN e."causation_id" END ORDER BY e.n) AS "causation_id",
            array_agg(CASE WHEN gone.at IS NULL THEN e."claimer" END ORDER BY e.n) AS "claimer",
            array_agg(CASE WHEN gone.at IS NULL THEN e."request_id" END ORDER BY e.n) AS "request_id",
            array_agg(CASE WHEN gone.at IS NULL THEN e."request_hash" END ORDER BY e.n) AS "request_hash",
            array_agg(CASE WHEN gone.at IS NULL THEN e."said" END ORDER BY e.n) AS "said",
            array_agg(CASE WHEN gone.at IS NULL THEN e."facts" END ORDER BY e.n) AS "facts",
            array_agg(CASE WHEN gone.at IS NULL THEN e."numbers" END ORDER BY e.n) AS "numbers",
            array_agg(CASE WHEN gone.at IS NULL THEN e."summary" END ORDER BY e.n) AS "summary"
            FROM (SELECT DISTINCT ON (f.last) f.* FROM unnest(p_gone) AS gone (at), LATERAL (
                    SELECT * FROM event_block AS k WHERE (k.tenant, k.last) >= (p_tenant, gone.at)
                    ORDER BY k.tenant, k.last LIMIT 1) AS f
                WHERE f.tenant = p_tenant AND f.project = p_project) AS b
            CROSS JOIN unnest(
                b."id", b."task", b."key", b."version", b."track", b."generation", b."agent", b."session", b."user",
                b."address", b."previous_state", b."trace_id", b."causation_id", b."claimer", b."request_id",
                b."request_hash", b."said", b."facts", b."numbers", b."summary") WITH ORDINALITY AS e (
                "id", "task", "key", "version", "track", "generation", "agent", "session", "user", "address",
                "previous_state", "trace_id", "causation_id", "claimer", "request_id", "request_hash", "said", "facts",
                "numbers", "summary", n)
            LEFT JOIN unnest(p_gone) AS gone (at) ON gone.at = b.first + e.n - 1 AND gone.at < v_last
            GROUP BY b.last
        ) AS kept WHERE b.last = kept.last AND b.tenant = p_tenant
        RETURNING b.last, NOT EXISTS (SELECT FROM unnest(b.version) AS k (version) WHERE k.version IS NOT NULL) AS is_empty)
    SELECT array_agg(e.last) INTO v_empty FROM emptied AS e WHERE e.is_empty;
    DELETE FROM event_block AS b WHERE b.last = ANY (v_empty) AND b.tenant = p_tenant;
END $$;

-- Deletes the log that a tenant left here when it moved away, before its rows come back. Only while it is frozen: then it
-- is in use in another store, and this one has a former state of it.
CREATE FUNCTION clear_log(p_tenant text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF p_tenant IS DISTINCT FROM current_setting('tenure.tenant', true)
        OR NOT EXISTS (SELECT FROM epoch AS e WHERE e.tenant = p_tenant AND strpos(e.epoch, '.') > 0) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'only the log of a tenant that has moved away can be deleted';
    END IF;
    DELETE FROM event WHERE tenant = p_tenant;
    DELETE FROM event_block WHERE tenant = p_tenant;
END $$;

-- With the names of this schema and no others: a table that a caller has made for itself must not stand for one of ours.
DO $$
DECLARE
    v_function regprocedure;
BEGIN
    FOR v_function IN SELECT p.oid FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.nspname = current_schema() AND p.prosecdef
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', v_function, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', v_function);
    END LOOP;
END $$;
