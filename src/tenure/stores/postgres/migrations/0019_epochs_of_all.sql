-- breaking: no
-- since: 0.2.0
--
-- `place` gets the OID of the table `meta` as its last part: a dump that was restored into the same schema of the same
-- database has another. A place without that part, which a process of before this step still writes, may be here: what is
-- missing is unknown, not different.
CREATE FUNCTION place_here() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
        (SELECT oid FROM pg_database WHERE datname = current_database()), n.nspname, c.oid)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = 'meta'::regclass
$$;
CREATE FUNCTION without_oid(p_place text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(p_place, '/[^/]*$', '')
$$;

-- Only where the other parts are those of here: no epoch begins, and a copy stays one.
UPDATE meta SET place = place_here() WHERE place = without_oid(place_here());
UPDATE epoch SET place = place_here() WHERE place = without_oid(place_here());

-- On a copy of a store, and nowhere else: a new epoch for every tenant that has none of this place. A different one for
-- each, since the receipts of one must not be valid for another. The mark of a move stays: what is frozen stays frozen.
-- Their names.
DROP FUNCTION settle_epochs;
CREATE FUNCTION settle_epochs(p_epoch text, p_seed text) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_place text := place_here();
BEGIN
    RETURN QUERY WITH whole AS (
        UPDATE meta SET epoch = p_epoch, place = v_place WHERE place NOT IN (v_place, without_oid(v_place)) RETURNING one
    ), own AS (
        UPDATE epoch AS e SET epoch = substr(md5(e.tenant || p_seed), 1, 8) || substr(e.epoch, 9), place = v_place
            WHERE e.place NOT IN (v_place, without_oid(v_place)) RETURNING e.tenant
    )
    SELECT o.tenant::text FROM own AS o
    UNION SELECT p.tenant::text FROM project AS p
        WHERE EXISTS (SELECT FROM whole) AND NOT EXISTS (SELECT FROM epoch AS e WHERE e.tenant = p.tenant);
END $$;

-- A new epoch of every tenant but `p_besides`, which begins its own with the events that go with it: their names.
CREATE FUNCTION begin_epochs(p_besides text, p_epoch text, p_seed text) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_place text := place_here();
BEGIN
    INSERT INTO epoch (tenant, epoch, place) SELECT p_besides, m.epoch, m.place FROM meta AS m ON CONFLICT DO NOTHING;
    UPDATE meta SET epoch = p_epoch, place = v_place;
    RETURN QUERY WITH own AS (
        UPDATE epoch AS e SET epoch = substr(md5(e.tenant || p_seed), 1, 8) || substr(e.epoch, 9), place = v_place
            WHERE e.tenant <> p_besides RETURNING e.tenant
    )
    SELECT o.tenant::text FROM own AS o UNION SELECT p.tenant::text FROM project AS p WHERE p.tenant <> p_besides;
END $$;

-- As in 0011, for what this step has made.
DO $$
DECLARE
    v_function regprocedure;
BEGIN
    FOR v_function IN SELECT p.oid FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.nspname = current_schema() AND p.proname IN ('settle_epochs', 'begin_epochs')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', v_function, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', v_function);
    END LOOP;
END $$;
