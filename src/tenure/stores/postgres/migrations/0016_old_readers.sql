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

DO $$
DECLARE
    v_text text := pg_get_functiondef('claim_tasks'::regproc);
    v_change text[];
BEGIN
    FOREACH v_change SLICE 1 IN ARRAY ARRAY [
        -- Lanes from the last to the first: the end of a lane has the tasks that nobody has claimed.
        ['WHERE q.space = v_space ORDER BY q.lane LIMIT 1', 'WHERE q.space = v_space ORDER BY q.lane DESC LIMIT 1'],
        ['AND q.lane > found.lane ORDER BY q.lane LIMIT 1', 'AND q.lane < found.lane ORDER BY q.lane DESC LIMIT 1'],
        -- A lane from its start.
        ['AS l (name, boost, lane_number), LATERAL (', 'AS l (name, boost, lane_number)
                LEFT JOIN LATERAL (SELECT b.band, b.rank, b.sequence FROM lane_start AS b
                    WHERE b.space = v_space AND b.lane = l.name LIMIT 1) AS b ON true, LATERAL ('],
        ['WHERE k.space = v_space AND k.lane = l.name
', 'WHERE k.space = v_space AND k.lane = l.name AND (k.band, k.rank, k.sequence)
                            >= (coalesce(b.band, v_least), coalesce(b.rank, v_least), coalesce(b.sequence, v_least))
'],
        ['    v_held text[];
', '    v_held text[];
    v_held_from bigint[];
    v_least bigint := -9223372036854775808;
'],
        -- About once in 1,024 claims: those that are chosen are the first of their lanes.
        ['    DELETE FROM queue WHERE ctid', '    IF (v_first + v_total - 1) / 1024 > (v_first - 1) / 1024 THEN
        INSERT INTO lane_start AS s (space, tenant, lane, band, rank, sequence)
            SELECT DISTINCT ON (k.lane) v_space, p_tenant, k.lane, k.band, k.rank, k.sequence
            FROM queue AS k WHERE k.ctid = ANY (v_places) AND k.space = v_space
            ORDER BY k.lane, k.band DESC, k.rank DESC, k.sequence DESC
            ON CONFLICT (space, lane) DO UPDATE SET band = excluded.band, rank = excluded.rank, sequence = excluded.sequence;
    END IF;
    DELETE FROM queue WHERE ctid'],
        -- What a session holds, from the first that it may hold.
        ['array_agg(c.held)
        INTO v_which, v_agents, v_sessions, v_held
', 'array_agg(c.held), array_agg(c.held_from)
        INTO v_which, v_agents, v_sessions, v_held, v_held_from
'],
        ['SELECT s.n, s.takes, s.agent, s.session,', 'SELECT s.n, s.takes, s.agent, s.session, t.held_from,'],
        ['h.session = s.session
', 'h.session = s.session AND h.number >= t.held_from
'],
        -- At once where a lower number is claimed; else about once in 32 claims.
        ['    INSERT INTO due_block', '    IF (SELECT bool_or(g.number < g.held_from OR (v_first + g.n) % 32 = 0)
        FROM unnest(v_numbers, v_held_from) WITH ORDINALITY AS g (number, held_from, n)) THEN
        UPDATE session AS s SET held_from = f.held_from FROM (SELECT g.session, (
                SELECT h.number FROM held AS h WHERE h.space = v_space AND h.session = g.session
                AND h.number >= least(min(g.number), min(g.held_from)) ORDER BY h.number LIMIT 1) AS held_from
            FROM unnest(p_session, v_numbers, v_held_from) WITH ORDINALITY AS g (session, number, held_from, n)
            GROUP BY g.session HAVING bool_or(g.number < g.held_from OR (v_first + g.n) % 32 = 0)) AS f
        WHERE s.id = f.session AND (s.tenant = p_tenant AND s.project = p_project) IS TRUE;
    END IF;
    INSERT INTO due_block']
    ] LOOP
        IF strpos(v_text, v_change[1]) = 0 THEN
            RAISE EXCEPTION 'claim_tasks has no %', v_change[1];
        END IF;
        v_text := replace(v_text, v_change[1], v_change[2]);
    END LOOP;
    EXECUTE v_text;
END $$;
