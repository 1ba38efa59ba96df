-- breaking: no
-- since: 0.2.0

-- Renewals and results look for due tasks in one statement and write in the next. A shorter renewal that commits between
-- the two may end a lease before `now`: that lease's holder is then answered by the ordinary path.
DO $$
DECLARE
    v_name text;
    v_held text := 'WHERE t.space = v_space AND t.number = f.number';
BEGIN
    FOREACH v_name IN ARRAY ARRAY ['renew_claims', 'submit_results'] LOOP
        EXECUTE replace(pg_get_functiondef(v_name::regproc), v_held, v_held || ' AND t.lease_until > v_now');
    END LOOP;
END $$;
