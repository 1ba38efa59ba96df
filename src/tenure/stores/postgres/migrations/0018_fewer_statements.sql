-- breaking: no
-- since: 0.2.0
--
-- The functions of the fast path, whole: a later step that changes one has all of its text again. A statement in a function
-- costs the server 5 to 10 µs before it does anything, an expression a tenth of that, and so each has few statements.

DROP FUNCTION begin_hot, claim_tasks, submit_results, renew_claims;

-- What every call begins with: settings that hold to the commit, the locks, and only then the first look. `now` is the
-- clock's, never before the project's last event. Refuses a call by an older program, or on a project that has changed.
-- `p_last`: the last event of the project that the caller knows, or null. Without it the server reads a page of the index to
-- find the end of the project's log.
CREATE FUNCTION begin_hot(p_tenant text, p_project text, p_given bigint, p_schema bigint, p_seen text, p_wait text,
    p_locks bigint[], p_shared boolean[], p_floor integer, p_last bigint, OUT o_now bigint, OUT o_epoch text, OUT o_space integer)
LANGUAGE plpgsql AS $$
DECLARE
    v_done text;
    v_breaking bigint;
    v_seen text;
    v_is_due boolean;
    v_last bigint;
    v_from bigint := coalesce(p_last, 0);
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM unusual('isolation', NULL);
    END IF;
    v_done := set_config('tenure.tenant', p_tenant, true);
    v_done := set_config('lock_timeout', p_wait, true);
    v_done := set_config('client_min_messages', 'warning', true);
    v_done := set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true);
    FOR v_at IN 1 .. cardinality(p_locks) LOOP
        v_done := CASE WHEN p_shared[v_at] THEN pg_advisory_xact_lock_shared(p_locks[v_at])
            ELSE pg_advisory_xact_lock(p_locks[v_at]) END;
    END LOOP;
    LOOP
        SELECT l.breaking, l.epoch, l.seen, l.space, l.last, l.now,
                EXISTS (SELECT FROM due_block AS d WHERE d.space = l.space AND d.at <= l.now),
                -- Before the first sequence is drawn, and in an earlier statement: see `log_cursor`.
                (SELECT pg_advisory_xact_lock_shared(p_floor, (last_value - (NOT is_called)::integer & 2147483647)::integer)
                    FROM event_sequence_seq)
            INTO v_breaking, o_epoch, v_seen, o_space, v_last, o_now, v_is_due, v_done
            FROM (SELECT t.*, greatest(coalesce(p_given, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), t.last) AS now
                FROM (SELECT m.breaking, coalesce((SELECT e.epoch FROM epoch AS e WHERE e.tenant = p_tenant), m.epoch) AS epoch,
                    (SELECT p.xmin::text || p.ctid::text FROM project AS p
                        WHERE p.tenant = p_tenant AND p.project = p_project AND p.id = p_project) AS seen,
                    (SELECT s.number FROM space AS s WHERE s.tenant = p_tenant AND s.project = p_project) AS space,
                    greatest((SELECT e.time FROM event AS e WHERE e.project = p_project AND e.tenant = p_tenant
                            AND e.sequence >= v_from ORDER BY e.sequence DESC LIMIT 1),
                        (SELECT e.time FROM event_block AS e WHERE e.project = p_project AND e.tenant = p_tenant
                            AND e.last >= v_from ORDER BY e.last DESC LIMIT 1)) AS last
                    FROM meta AS m OFFSET 0) AS t OFFSET 0) AS l;
        EXIT WHEN v_last IS NOT NULL OR v_from = 0;
        v_from := 0;  -- the store no longer has the event that the caller knew
    END LOOP;
    IF v_breaking > p_schema THEN
        PERFORM unusual('schema', NULL);
    END IF;
    IF strpos(o_epoch, '.') > 0 THEN  -- frozen by a move: see `core/tenant_moves.py`
        PERFORM unusual('epoch', NULL);
    END IF;
    IF p_seen IS DISTINCT FROM v_seen THEN
        PERFORM unusual('project', NULL);
    END IF;
    IF v_is_due AND has_due(p_tenant, p_project, o_now) THEN
        PERFORM unusual('due', NULL);
    END IF;
END $$;

-- Sequences without a gap: other projects draw from the same.
CREATE OR REPLACE FUNCTION draw_sequences(p_many integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_first bigint;
    v_last bigint;
BEGIN
    IF p_many = 1 THEN
        RETURN nextval('event_sequence_seq');
    END IF;
    FOR v_try IN 1 .. 100 LOOP
        SELECT min(d.s), max(d.s) INTO v_first, v_last
            FROM (SELECT nextval('event_sequence_seq') AS s FROM generate_series(1, p_many)) AS d;
        IF v_last - v_first + 1 = p_many THEN
            RETURN v_first;
        END IF;
    END LOOP;
    PERFORM unusual('sequences', NULL);
END $$;

-- Claim next, of one project. One item a task in every array; `p_n` has how many its command takes, at the command's first,
-- and `p_of` the place of that first. `p_sets`: which of the lanes fit, a digit each; `p_set`: the one of each command.
CREATE FUNCTION claim_tasks(p_tenant text, p_project text, p_given bigint, p_schema bigint, p_seen text, p_wait text,
    p_locks bigint[], p_shared boolean[], p_floor integer, p_last bigint, p_presence bigint, p_idle bigint,
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
    v_page integer := least(v_total, 8 + 2 * v_total / greatest(v_lanes, 1));
    v_begun record;
    v_now bigint;
    v_epoch text;
    v_space integer;
    v_which bigint[];
    v_agents text[];
    v_sessions text[];
    v_held text[];
    v_held_from bigint[];
    v_least bigint := -9223372036854775808;
    v_places tid[];
    v_numbers bigint[];
    v_lane integer[];
    v_plain boolean[];
    v_edge integer;
    v_last boolean[];
    v_lacks boolean;
    v_all boolean := cardinality(p_sets) = 1 AND p_sets[1] !~ '0';
    v_fits boolean[];
    v_set integer;
    v_at integer;
    v_taken boolean[];
    v_next integer[];
    v_chosen integer[];
    v_first bigint;
    v_count integer;
    v_moves boolean;
BEGIN
    v_begun := begin_hot(p_tenant, p_project, p_given, p_schema, p_seen, p_wait, p_locks, p_shared, p_floor, p_last);
    v_now := v_begun.o_now;
    v_epoch := v_begun.o_epoch;
    v_space := v_begun.o_space;
    -- Who asks: known, active, with the skills that the lanes were chosen for, without an offer, and asking this first.
    SELECT array_agg(c.n) FILTER (WHERE c.usual IS NOT TRUE), array_agg(c.agent) FILTER (WHERE c.agent_is_old),
        array_agg(c.session) FILTER (WHERE c.session_is_old), array_agg(c.held), array_agg(c.held_from)
        INTO v_which, v_agents, v_sessions, v_held, v_held_from
        FROM (SELECT s.n, s.agent, s.session, t.held_from,
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
            (SELECT string_agg(b.id || ' ' || b.key, ' ' ORDER BY b.id) FROM (
                SELECT h.number FROM held AS h WHERE h.space = v_space AND h.session = s.session AND h.number >= t.held_from
                ORDER BY h.number LIMIT 3) AS f
                JOIN task_base AS b ON b.space = v_space AND b.number = f.number) AS held
            FROM unnest(p_agent, p_session, p_skills, p_request, p_n) WITH ORDINALITY
                AS s (agent, session, skills, request, takes, n)
            LEFT JOIN LATERAL (SELECT a.last_seen, a.stale, a.left_at, a.terminated_at, a.troubles, a.draining,
                a.max_concurrent_tasks, a.cool_until, concat_ws(E'\x1e', a.capabilities, a.tracks, a.type, a.models, a.region) AS skills
                FROM agent AS a WHERE a.tenant = p_tenant AND a.project = p_project AND a.id = s.agent LIMIT 1) AS a ON true
            LEFT JOIN LATERAL (SELECT t.agent, t.ended_at, t.last_activity, t.held_from FROM session AS t
                WHERE t.tenant = p_tenant AND t.project = p_project AND t.id = s.session LIMIT 1) AS t ON true
            WHERE s.takes IS NOT NULL ORDER BY s.n) AS c;
    IF v_which IS NOT NULL THEN
        PERFORM unusual('claimants', v_which);
    END IF;
    IF cardinality(v_held) < v_total THEN
        SELECT array_agg(CASE WHEN s.takes IS NOT NULL THEN v_held[s.at] END ORDER BY s.n), array_agg(v_held_from[s.at] ORDER BY s.n)
            INTO v_held, v_held_from FROM (SELECT o.takes, o.n, count(o.takes) OVER (ORDER BY o.n) AS at
                FROM unnest(p_n) WITH ORDINALITY AS o (takes, n)) AS s;
    END IF;
    -- A lane that the caller does not know might have had the best task: one before, behind or between those it knows.
    IF (SELECT true FROM queue AS q WHERE q.space = v_space AND q.lane < p_lanes[1] LIMIT 1)
        OR (SELECT true FROM queue AS q WHERE q.space = v_space AND q.lane > p_lanes[v_lanes] LIMIT 1)
        OR v_lanes > 1 AND EXISTS (SELECT FROM generate_series(2, v_lanes) AS g (n), LATERAL (SELECT FROM queue AS q
            WHERE q.space = v_space AND q.lane > p_lanes[g.n - 1] AND q.lane < p_lanes[g.n] LIMIT 1) AS q) THEN
        PERFORM unusual('lanes', NULL);
    END IF;
    IF NOT v_all THEN
        v_fits := ARRAY(SELECT f.digit = '1' FROM unnest(p_sets) WITH ORDINALITY AS s (digits, n),
            string_to_table(s.digits, NULL) WITH ORDINALITY AS f (digit, lane) ORDER BY s.n, f.lane);
    END IF;
    -- The heads of the lanes in the order of the claim. Behind the last of a lane that may have more, nobody goes on who
    -- could take of that lane: then more of each lane is read. Those who cannot take of it choose beyond it.
    LOOP
        SELECT array_agg(q.place), array_agg(q.number), array_agg(q.lane), array_agg(q.plain),
                array_agg(q.n = v_page AND v_page < v_total)
            INTO v_places, v_numbers, v_lane, v_plain, v_last
            FROM (SELECT q.place, q.number, q.plain, q.n, l.lane_number::integer AS lane
                FROM unnest(p_lanes, p_boosts) WITH ORDINALITY AS l (name, boost, lane_number)
                LEFT JOIN LATERAL (SELECT b.band, b.rank, b.sequence FROM lane_start AS b
                    WHERE b.space = v_space AND b.lane = l.name LIMIT 1) AS b ON true, LATERAL (
                    SELECT k.*, row_number() OVER () AS n FROM (
                        SELECT k.ctid AS place, k.number, k.plain, k.band, k.rank, k.sequence, k.id FROM queue AS k
                        WHERE k.space = v_space AND k.lane = l.name AND (k.band, k.rank, k.sequence)
                            >= (coalesce(b.band, v_least), coalesce(b.rank, v_least), coalesce(b.sequence, v_least))
                        ORDER BY k.band, k.rank, k.sequence, k.id LIMIT v_page) AS k) AS q
                ORDER BY q.band, q.rank - l.boost * v_now, q.sequence, q.id) AS q;
        v_count := coalesce(cardinality(v_places), 0);
        v_edge := coalesce(array_position(v_last, true), v_count);
        v_lacks := false;
        IF v_all THEN
            v_count := least(v_total, v_edge);
            v_lacks := v_edge < v_total AND v_last[v_edge];
        ELSE
            v_taken := array_fill(false, ARRAY[v_count]);
            v_next := array_fill(1, ARRAY[cardinality(p_sets)]);
            v_chosen := '{}';
            <<slots>>
            FOR v_slot IN 1 .. v_total LOOP
                v_set := p_set[v_slot];
                v_at := v_next[v_set];
                LOOP
                    EXIT slots WHEN v_at > v_count;
                    IF v_fits[(v_set - 1) * v_lanes + v_lane[v_at]] THEN
                        EXIT WHEN NOT v_taken[v_at];
                        v_lacks := v_last[v_at];
                        EXIT slots WHEN v_lacks;
                    END IF;
                    v_at := v_at + 1;
                END LOOP;
                v_next[v_set] := v_at;
                v_taken[v_at] := true;
                v_chosen := v_chosen || v_at;
            END LOOP;
            v_count := cardinality(v_chosen);
        END IF;
        EXIT WHEN v_lacks IS NOT TRUE;
        v_page := least(v_total, 4 * v_page);
    END LOOP;
    IF v_count < v_total THEN
        IF v_count = 0 OR p_n[1] < v_total THEN  -- the first command that would not get all that it asks for
            PERFORM unusual('few', ARRAY[p_of[v_count + 1]]);
        END IF;
        v_total := v_count;
        p_n[1] := v_count;
        p_of := p_of[:v_count]; p_agent := p_agent[:v_count]; p_session := p_session[:v_count]; p_user := p_user[:v_count];
        p_lease := p_lease[:v_count]; p_process := p_process[:v_count]; p_request := p_request[:v_count];
        p_hash := p_hash[:v_count]; p_key := p_key[:v_count]; p_by := p_by[:v_count]; p_address := p_address[:v_count];
        p_trace := p_trace[:v_count]; p_n := p_n[:v_count];
        v_held := v_held[:v_count]; v_held_from := v_held_from[:v_count];
    END IF;
    IF v_all THEN
        v_places := v_places[:v_total]; v_numbers := v_numbers[:v_total]; v_plain := v_plain[:v_total];
    ELSE
        SELECT array_agg(v_places[c.at]), array_agg(v_numbers[c.at]), array_agg(v_plain[c.at])
            INTO v_places, v_numbers, v_plain FROM unnest(v_chosen) AS c (at);
    END IF;
    IF false = ANY (v_plain) THEN
        PERFORM unusual('tasks', ARRAY(
            SELECT o.of FROM unnest(p_of, v_plain) AS o (of, is_plain) WHERE NOT o.is_plain GROUP BY o.of));
    END IF;
    IF v_agents IS NOT NULL OR v_sessions IS NOT NULL THEN
        PERFORM note_presence(p_tenant, p_project, v_now, v_agents, v_sessions);
    END IF;
    v_first := draw_sequences(v_total);
    IF (v_first + v_total - 1) / 1024 > (v_first - 1) / 1024 THEN
        INSERT INTO lane_start AS s (space, tenant, lane, band, rank, sequence)
            SELECT DISTINCT ON (k.lane) v_space, p_tenant, k.lane, k.band, k.rank, k.sequence
            FROM queue AS k WHERE k.ctid = ANY (v_places) AND k.space = v_space
            ORDER BY k.lane, k.band DESC, k.rank DESC, k.sequence DESC
            ON CONFLICT (space, lane) DO UPDATE SET band = excluded.band, rank = excluded.rank, sequence = excluded.sequence;
    END IF;
    WITH taken AS (
        DELETE FROM queue WHERE ctid = ANY (v_places) AND space = v_space AND number = ANY (v_numbers) RETURNING number
    ), command AS (
        INSERT INTO granted (space, tenant, session, number, agent, at, lease, epoch, numbers, "user", request, hash, key)
        SELECT v_space, p_tenant, s.session, v_first + s.n - 1, s.agent, v_now, s.lease, v_epoch,
            v_numbers[s.n : s.n + s.takes - 1], s."user", s.request, s.hash, s.key
        FROM unnest(p_session, p_agent, p_lease, p_user, p_request, p_hash, p_key, p_n) WITH ORDINALITY
            AS s (session, agent, lease, "user", request, hash, key, takes, n) WHERE s.takes IS NOT NULL
    ), holding AS (
        INSERT INTO held (space, tenant, session, number, agent, process)
        SELECT v_space, p_tenant, s.session, s.number, s.agent, s.process
        FROM unnest(p_session, v_numbers, p_agent, p_process) AS s (session, number, agent, process)
    ), due AS (
        INSERT INTO due_block (space, tenant, at, numbers)
        SELECT v_space, p_tenant, v_now + s.lease, array_agg(s.number)
        FROM unnest(v_numbers, p_lease) AS s (number, lease) GROUP BY s.lease
    )
    -- A session's start moves at once where a lower number is claimed; else about once in 32 claims. The factor spreads
    -- them: the same agents may claim in the same order, again and again.
    SELECT (SELECT count(*) FROM taken), bool_or(g.number < g.held_from OR (v_first + g.n) % 65536 * 40503 / 2048 % 32 = 0)
        INTO v_count, v_moves FROM unnest(v_numbers, v_held_from) WITH ORDINALITY AS g (number, held_from, n);
    IF v_count <> v_total OR v_total > 1024 THEN
        PERFORM unusual('changed', NULL);
    END IF;
    IF v_moves THEN
        UPDATE session AS s SET held_from = f.held_from FROM (SELECT g.session, (
                SELECT h.number FROM held AS h WHERE h.space = v_space AND h.session = g.session
                AND h.number >= least(min(g.number), min(g.held_from)) ORDER BY h.number LIMIT 1) AS held_from
            FROM unnest(p_session, v_numbers, v_held_from) WITH ORDINALITY AS g (session, number, held_from, n)
            GROUP BY g.session HAVING bool_or(g.number < g.held_from OR (v_first + g.n) % 65536 * 40503 / 2048 % 32 = 0)) AS f
        WHERE s.id = f.session AND (s.tenant = p_tenant AND s.project = p_project) IS TRUE;
    END IF;
    RETURN QUERY WITH given AS MATERIALIZED (
        SELECT s.*, v_space AS space FROM unnest(v_numbers, p_agent, p_session, p_user, p_lease, p_of, v_held) WITH ORDINALITY
            AS s (number, agent, session, "user", lease, of, held, n)
    ), moved AS (
        UPDATE task_hot AS t SET
            state = 'claimed', generation = t.generation + 1, attempts = t.attempts + 1, agent = g.agent,
            session = g.session, claimed_at = v_now, lease = g.lease, lease_until = v_now + g.lease, presented_at = v_now,
            claim_epoch = v_epoch, updated_at = v_now, version = t.version + 1, lane = NULL, due_at = v_now + g.lease,
            nonce = substr(p_nonces, (g.n::integer - 1) * 16 + 1, 16), claim_user = g."user",
            granted = v_first + g.of - 1, grant_event = v_first + g.n - 1
        FROM given AS g
        WHERE t.space = ANY (ARRAY[g.space]) AND t.number = g.number AND t.plain AND t.lane IS NOT NULL AND t.state = 'ready'
            AND t.generation = 0 AND t.attempts = 0
        RETURNING t.space, g.n, g.of, g.lease, g.held, t.number, t.run, t.version, t.ready_at, t.work_product, t.started_at, t.completed_at
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
    JOIN task_base AS b ON b.space = ANY (ARRAY[m.space]) AND b.number = m.number
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
    p_locks bigint[], p_shared boolean[], p_floor integer, p_last bigint, p_presence bigint, p_epoch text, p_ref text[],
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
    v_begun record;
    v_now bigint;
    v_epoch text;
    v_space integer;
    v_time text;
    v_first bigint;
    v_count integer;
BEGIN
    v_begun := begin_hot(p_tenant, p_project, p_given, p_schema, p_seen, p_wait, p_locks, p_shared, p_floor, p_last);
    v_now := v_begun.o_now;
    v_epoch := v_begun.o_epoch;
    v_space := v_begun.o_space;
    IF v_epoch <> p_epoch OR v_total > 1024 THEN
        PERFORM unusual('epoch', NULL);
    END IF;
    v_time := 'result_' || id_time(v_now);
    v_first := draw_sequences(v_total);
    RETURN QUERY WITH found AS MATERIALIZED (
        SELECT g.n, g.generation, substr(p_nonces, g.n::integer * 16 - 15, 16) AS nonce, g.agent AS only_of,
            v_time || g.result AS result, g.data, g.summary, g.size, g.digest, g.request, b.id, b.key, t.space, t.number, t.state,
            t.renewals, t.run, t.attempts, t.version, t.agent, t.session, coalesce(t.claim_user, c."user") AS claim_user,
            coalesce(c.acquired_at, t.claimed_at) AS acquired_at, t.started_at, t.granted, t.grant_event, t.plain, c.id AS claim,
            c.nonce AS own_nonce, a.last_seen <= v_now - p_presence AS agent_is_old,
            x.last_activity <= v_now - p_presence AND x.ended_at IS NULL AS session_is_old,
            b.dependents > 0 OR b.children > 0 OR b.dag <> 'dag_' || substr(b.id, 6) OR b.id NOT LIKE 'task\_%' AS follows,
            'wp-' || b.key || '-gen' || t.generation || '-'
                || left(encode(sha256(convert_to(v_time || g.result, 'UTF8')), 'hex'), 6) AS product
        FROM unnest(p_ref, p_generation, p_agent, p_result, p_data, p_summary, p_size, p_digest, p_request)
            WITH ORDINALITY AS g (ref, generation, agent, result, data, summary, size, digest, request, n)
        CROSS JOIN LATERAL (SELECT b.id, b.key, b.number, b.dag, b.dependents, b.children FROM task_base AS b
            WHERE b.ref = g.ref AND (b.project = p_project AND b.tenant = p_tenant) IS TRUE OFFSET 0) AS b
        CROSS JOIN LATERAL (SELECT t.space, t.number, t.state, t.generation, t.renewals, t.run, t.attempts,
            t.version, t.agent, t.session, t.claim_user, t.claimed_at, t.started_at, t.granted, t.grant_event, t.plain,
            t.claim_epoch, t.percent, CASE WHEN t.granted IS NULL THEN b.id || '@' || t.generation END AS claim
            FROM task_hot AS t WHERE t.space = v_space AND t.number = b.number OFFSET 0) AS t
        LEFT JOIN LATERAL (SELECT c.id, c."user", c.acquired_at, c.nonce FROM claim_row AS c
            WHERE c.id = t.claim AND (c.project = p_project AND c.tenant = p_tenant) IS TRUE OFFSET 0) AS c ON true
        LEFT JOIN LATERAL (SELECT a.last_seen, a.stale, a.left_at, a.terminated_at, a.troubles FROM agent AS a
            WHERE a.id = t.agent AND (a.project = p_project AND a.tenant = p_tenant) IS TRUE OFFSET 0) AS a ON true
        LEFT JOIN LATERAL (SELECT x.last_activity, x.ended_at FROM session AS x
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
        WHERE t.space = ANY (ARRAY[f.space]) AND t.number = f.number AND t.lease_until > v_now AND t.generation = f.generation
            AND coalesce(t.nonce, f.own_nonce) = f.nonce AND t.claim_epoch = p_epoch
            AND (f.only_of IS NULL OR t.agent = f.only_of) AND t.state = f.state AND t.renewals = f.renewals AND t.plain
            AND (p_follows OR NOT f.follows)
        RETURNING f.n
    ), ended AS (
        UPDATE claim_row AS c SET
            state = 'released', reason = 'COMPLETED', released_at = v_now, renewals = f.renewals, process = NULL,
            result_accepted = true, work_product = f.product, result_event = v_first + f.n - 1
        FROM found AS f
        WHERE c.id = ANY (ARRAY[f.claim]) AND (c.project = p_project AND c.tenant = p_tenant) IS TRUE AND c.state = 'active'
        RETURNING f.n
    ), freed AS (
        DELETE FROM held AS h USING found AS f
        WHERE h.space = ANY (ARRAY[f.space]) AND h.session = f.session AND h.number = f.number
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
    p_locks bigint[], p_shared boolean[], p_floor integer, p_last bigint, p_presence bigint, p_epoch text, p_mail bigint, p_ref text[],
    p_generation bigint[], p_nonces bytea, p_agent text[], p_lease bigint[], p_by_agent text[], p_by_session text[],
    p_by text[], p_address text[], p_trace text[], p_event text[], p_command text[])
RETURNS TABLE (slot bigint, o_now bigint, o_last bigint, o_xid text, until bigint, mail bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
    SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_memoize = off SET jit = off
    SET random_page_cost = 0 SET seq_page_cost = 0 SET cpu_tuple_cost = 1 SET cpu_index_tuple_cost = 1 AS $$
#variable_conflict use_column
DECLARE
    v_total integer := cardinality(p_ref);
    v_begun record;
    v_now bigint;
    v_epoch text;
    v_space integer;
    v_time text;
    v_count integer;
BEGIN
    v_begun := begin_hot(p_tenant, p_project, p_given, p_schema, p_seen, p_wait, p_locks, p_shared, p_floor, p_last);
    v_now := v_begun.o_now;
    v_epoch := v_begun.o_epoch;
    v_space := v_begun.o_space;
    IF v_epoch <> p_epoch THEN
        PERFORM unusual('epoch', NULL);
    END IF;
    v_time := id_time(v_now);
    RETURN QUERY WITH found AS MATERIALIZED (
        SELECT g.*, substr(p_nonces, g.n::integer * 16 - 15, 16) AS nonce, c.nonce AS own_nonce, b.id, b.key, b.track,
            t.space, t.number, t.state, t.renewals, t.version, t.agent AS holder, t.session, v_now + coalesce(g.lease, t.lease) AS until, a.last_seen <= v_now - p_presence AS agent_is_old,
            x.last_activity <= v_now - p_presence AND x.ended_at IS NULL AS session_is_old
        FROM unnest(p_ref, p_generation, p_agent, p_lease, p_by_agent, p_by_session, p_by, p_address, p_trace,
            p_event, p_command) WITH ORDINALITY AS g (ref, generation, agent, lease, by_agent, by_session, "by",
            address, trace, event, command, n)
        CROSS JOIN LATERAL (SELECT b.id, b.key, b.track, b.number FROM task_base AS b
            WHERE b.ref = g.ref AND (b.project = p_project AND b.tenant = p_tenant) IS TRUE OFFSET 0) AS b
        CROSS JOIN LATERAL (SELECT t.space, t.number, t.state, t.generation, t.renewals, t.version, t.agent,
            t.session, t.lease, t.granted, t.claim_epoch, CASE WHEN t.granted IS NULL THEN b.id || '@' || t.generation END AS claim
            FROM task_hot AS t WHERE t.space = v_space AND t.number = b.number OFFSET 0) AS t
        LEFT JOIN LATERAL (SELECT c.id, c.nonce FROM claim_row AS c
            WHERE c.id = t.claim AND (c.project = p_project AND c.tenant = p_tenant) IS TRUE OFFSET 0) AS c ON true
        LEFT JOIN LATERAL (SELECT a.last_seen, a.stale, a.left_at, a.terminated_at, a.troubles FROM agent AS a
            WHERE a.id = t.agent AND (a.project = p_project AND a.tenant = p_tenant) IS TRUE OFFSET 0) AS a ON true
        LEFT JOIN LATERAL (SELECT x.last_activity, x.ended_at FROM session AS x
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
        WHERE t.space = ANY (ARRAY[f.space]) AND t.number = f.number AND t.lease_until > v_now AND t.generation = f.generation
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
