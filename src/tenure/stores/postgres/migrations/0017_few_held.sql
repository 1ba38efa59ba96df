-- breaking: no
-- since: 0.2.0

-- A claim names three of the tasks that its session holds, and a batch that claims for many sessions reads no more of each.
DO $$
DECLARE
    v_text text := pg_get_functiondef('claim_tasks'::regproc);
    v_limit text := 'ORDER BY h.number LIMIT 100)';
BEGIN
    IF strpos(v_text, v_limit) = 0 THEN
        RAISE EXCEPTION 'claim_tasks has no %', v_limit;
    END IF;
    EXECUTE replace(v_text, v_limit, 'ORDER BY h.number LIMIT 3)');
END $$;
