-- breaking: no
-- since: 0.2.0
--
-- What the role of the application may do with the log and with epochs: see `stores/postgres/row_security.py`. `clear_log`
-- is the owner's alone; the rights are given and taken with the policies.

-- Drops the events of these tasks, but never the project's last. `p_gone`: the sequences of theirs that are in blocks,
-- whose items are emptied. The only way to remove an event: the application's role may only append and read. From a
-- sealed log (0012) it drops what a seal covers, and nothing else: a log with a seal is sealed for good, whatever the
-- project's row says, which the role may change. A role that does not own the tables needs the document of each task, with
-- as many events as are dropped.
CREATE OR REPLACE FUNCTION drop_events(p_tenant text, p_project text, p_tasks text[], p_gone bigint[]) RETURNS void
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
    IF NOT pg_has_role(session_user, (SELECT c.relowner FROM pg_class AS c WHERE c.oid = 'event'::regclass), 'USAGE') AND (
        EXISTS (SELECT FROM event AS e WHERE e.tenant = p_tenant AND e.project = p_project AND e.task = ANY (p_tasks)
            AND e.sequence + 0 < v_last AND NOT EXISTS (SELECT FROM archived AS a
                WHERE a.tenant = p_tenant AND a.project = p_project AND a.id = e.task AND NOT a.out))
        OR (SELECT count(*) FROM event AS e WHERE e.tenant = p_tenant AND e.project = p_project AND e.task = ANY (p_tasks))
            + cardinality(p_gone) > (SELECT coalesce(sum(a.events), 0) FROM archived AS a
                WHERE a.tenant = p_tenant AND a.project = p_project AND a.id = ANY (p_tasks) AND NOT a.out)) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'events of a task that is not archived cannot be dropped';
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

-- An epoch that the role writes is one that the program makes: of this place, in its form, and with another value before the
-- mark of a move than the one in force, so that a tenant is not frozen or opened under receipts that stay valid. The owner,
-- and functions with its rights, may write any.
CREATE FUNCTION check_epoch() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    v_before text := (SELECT coalesce((SELECT e.epoch FROM epoch AS e WHERE e.tenant = NEW.tenant), m.epoch) FROM meta AS m);
BEGIN
    IF pg_has_role(current_user, (SELECT c.relowner FROM pg_class AS c WHERE c.oid = TG_RELID), 'USAGE') THEN
        RETURN NEW;
    END IF;
    IF NEW.epoch !~ '^[0-9a-f]{8}([.][0-9]{1,18})?$'
        OR (NEW.epoch <> v_before AND substr(NEW.epoch, 1, 8) = substr(v_before, 1, 8))
        OR NEW.place NOT IN (place_here(), without_oid(place_here())) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'this epoch cannot be put in force by the role';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER check_epoch BEFORE INSERT OR UPDATE ON epoch FOR EACH ROW EXECUTE FUNCTION check_epoch();

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
