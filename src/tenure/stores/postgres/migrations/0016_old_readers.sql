-- breaking: yes
-- since: 0.2.0
--
-- Claims beside a transaction that stays open. The server cannot remove what that transaction may still see, so the
-- entries of claimed tasks stay at the front of a lane, and those of submitted ones in a session: a claim would pass all
-- of them, again and again. It begins behind them instead.

-- Where a lane begins: in front of it nothing is queued. Claims raise it, under the claim lock of the project. What queues
-- a task in front of it removes it in the same statement, with the project to itself, and so never beside a claim.
CREATE TABLE lane_start (
    space integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    lane text COLLATE "C" NOT NULL,
    band bigint NOT NULL,
    rank bigint NOT NULL,
    sequence bigint NOT NULL,
    PRIMARY KEY (space, lane)
);

-- No task with a lower number is held in the session.
ALTER TABLE session ADD COLUMN held_from bigint NOT NULL DEFAULT 0;

-- A statement that writes rows which it has found goes from those to the rows, by their key. Where the table was empty when
-- the server last looked at it, the planner expects one row whichever way it goes. So the key's first column comes with
-- what was found, in a form that no other way can use.
DO $$
DECLARE
    v_function text;
    v_text text;
    v_change text[];
BEGIN
    FOREACH v_change SLICE 1 IN ARRAY ARRAY [
        -- Lanes from the last to the first: the end of a lane has the tasks that nobody has claimed.
        ['claim_tasks', 'WHERE q.space = v_space ORDER BY q.lane LIMIT 1', 'WHERE q.space = v_space ORDER BY q.lane DESC LIMIT 1'],
        ['claim_tasks', 'AND q.lane > found.lane ORDER BY q.lane LIMIT 1', 'AND q.lane < found.lane ORDER BY q.lane DESC LIMIT 1'],
        -- A lane from its start.
        ['claim_tasks', 'AS l (name, boost, lane_number), LATERAL (', 'AS l (name, boost, lane_number)
                LEFT JOIN LATERAL (SELECT b.band, b.rank, b.sequence FROM lane_start AS b
                    WHERE b.space = v_space AND b.lane = l.name LIMIT 1) AS b ON true, LATERAL ('],
        ['claim_tasks', 'WHERE k.space = v_space AND k.lane = l.name
', 'WHERE k.space = v_space AND k.lane = l.name AND (k.band, k.rank, k.sequence)
                            >= (coalesce(b.band, v_least), coalesce(b.rank, v_least), coalesce(b.sequence, v_least))
'],
        ['claim_tasks', '    v_held text[];
', '    v_held text[];
    v_held_from bigint[];
    v_least bigint := -9223372036854775808;
'],
        -- About once in 1,024 claims: those that are chosen are the first of their lanes.
        ['claim_tasks', '    DELETE FROM queue WHERE ctid', '    IF (v_first + v_total - 1) / 1024 > (v_first - 1) / 1024 THEN
        INSERT INTO lane_start AS s (space, tenant, lane, band, rank, sequence)
            SELECT DISTINCT ON (k.lane) v_space, p_tenant, k.lane, k.band, k.rank, k.sequence
            FROM queue AS k WHERE k.ctid = ANY (v_places) AND k.space = v_space
            ORDER BY k.lane, k.band DESC, k.rank DESC, k.sequence DESC
            ON CONFLICT (space, lane) DO UPDATE SET band = excluded.band, rank = excluded.rank, sequence = excluded.sequence;
    END IF;
    DELETE FROM queue WHERE ctid'],
        -- What a session holds, from the first that it may hold.
        ['claim_tasks', 'array_agg(c.held)
        INTO v_which, v_agents, v_sessions, v_held
', 'array_agg(c.held), array_agg(c.held_from)
        INTO v_which, v_agents, v_sessions, v_held, v_held_from
'],
        ['claim_tasks', 'SELECT s.n, s.takes, s.agent, s.session,', 'SELECT s.n, s.takes, s.agent, s.session, t.held_from,'],
        ['claim_tasks', 'h.session = s.session
', 'h.session = s.session AND h.number >= t.held_from
'],
        -- At once where a lower number is claimed; else about once in 32 claims. The factor spreads them: the same
        -- agents may claim in the same order, again and again.
        ['claim_tasks', '    INSERT INTO due_block', '    IF (SELECT bool_or(g.number < g.held_from OR (v_first + g.n) % 65536 * 40503 / 2048 % 32 = 0)
        FROM unnest(v_numbers, v_held_from) WITH ORDINALITY AS g (number, held_from, n)) THEN
        UPDATE session AS s SET held_from = f.held_from FROM (SELECT g.session, (
                SELECT h.number FROM held AS h WHERE h.space = v_space AND h.session = g.session
                AND h.number >= least(min(g.number), min(g.held_from)) ORDER BY h.number LIMIT 1) AS held_from
            FROM unnest(p_session, v_numbers, v_held_from) WITH ORDINALITY AS g (session, number, held_from, n)
            GROUP BY g.session HAVING bool_or(g.number < g.held_from OR (v_first + g.n) % 65536 * 40503 / 2048 % 32 = 0)) AS f
        WHERE s.id = f.session AND (s.tenant = p_tenant AND s.project = p_project) IS TRUE;
    END IF;
    INSERT INTO due_block'],
        -- From what was found to its rows.
        ['claim_tasks', 'SELECT s.* FROM unnest(v_numbers', 'SELECT s.*, v_space AS space FROM unnest(v_numbers'],
        ['claim_tasks', 'WHERE t.space = v_space AND t.number = g.number', 'WHERE t.space = ANY (ARRAY[g.space]) AND t.number = g.number'],
        ['claim_tasks', 'RETURNING g.n,', 'RETURNING t.space, g.n,'],
        ['claim_tasks', 'ON b.space = v_space AND b.number = m.number', 'ON b.space = ANY (ARRAY[m.space]) AND b.number = m.number'],
        ['submit_results', 'b.id, b.key, t.number,', 'b.id, b.key, t.space, t.number,'],
        ['submit_results', 'WHERE t.space = v_space AND t.number = f.number', 'WHERE t.space = ANY (ARRAY[f.space]) AND t.number = f.number'],
        ['submit_results', 'WHERE h.space = v_space AND h.session = f.session', 'WHERE h.space = ANY (ARRAY[f.space]) AND h.session = f.session'],
        ['submit_results', 'WHERE c.id = f.claim', 'WHERE c.id = ANY (ARRAY[f.claim])'],
        ['renew_claims', '            t.number, t.state,', '            t.space, t.number, t.state,'],
        ['renew_claims', 'WHERE t.space = v_space AND t.number = f.number', 'WHERE t.space = ANY (ARRAY[f.space]) AND t.number = f.number']
    ] LOOP
        IF v_change[1] IS DISTINCT FROM v_function THEN
            v_function := v_change[1];
            v_text := pg_get_functiondef(v_function::regproc);
        END IF;
        IF strpos(v_text, v_change[2]) = 0 THEN
            RAISE EXCEPTION '% has no %', v_function, v_change[2];
        END IF;
        v_text := replace(v_text, v_change[2], v_change[3]);
        EXECUTE v_text;
    END LOOP;
END $$;
