-- breaking: no
-- since: 0.2.0

-- A claim reads fewer rows of others.
DO $$
DECLARE
    v_text text := pg_get_functiondef('claim_tasks'::regproc);
    v_change text[];
    v_heads text := '    -- The heads of the lanes in the order';
    v_then text := '    v_count := cardinality(v_chosen);';
BEGIN
    FOREACH v_change SLICE 1 IN ARRAY ARRAY [
        -- It names three of the tasks that its session holds, and a batch that claims for many sessions reads no more of each.
        ['ORDER BY h.number LIMIT 100)', 'ORDER BY h.number LIMIT 3)'],
        -- Who asks for several is looked at once.
        ['            ORDER BY s.n) AS c;
    IF v_which IS NOT NULL THEN
        PERFORM unusual(''claimants'', v_which);
    END IF;
', '            WHERE s.takes IS NOT NULL ORDER BY s.n) AS c;
    IF v_which IS NOT NULL THEN
        PERFORM unusual(''claimants'', v_which);
    END IF;
    IF cardinality(v_held) < v_total THEN
        SELECT array_agg(CASE WHEN s.takes IS NOT NULL THEN v_held[s.at] END ORDER BY s.n), array_agg(v_held_from[s.at] ORDER BY s.n)
            INTO v_held, v_held_from FROM (SELECT o.takes, o.n, count(o.takes) OVER (ORDER BY o.n) AS at
                FROM unnest(p_n) WITH ORDINALITY AS o (takes, n)) AS s;
    END IF;
'],
        -- Of each lane twice its share of the batch at first.
        ['greatest(8, 8 * v_total / greatest(v_lanes, 1))', '8 + 2 * v_total / greatest(v_lanes, 1)'],
        ['    v_full integer;
', '    v_last boolean[];
    v_lacks boolean;
'],
        -- A command that is alone gets what there is, if that is not nothing.
        ['    IF v_count < v_total THEN  -- the first command that would not get all that it asks for
        PERFORM unusual(''few'', ARRAY[p_of[v_count + 1]]);
', '    IF v_count < v_total THEN
        IF v_count = 0 OR p_n[1] < v_total THEN  -- the first command that would not get all that it asks for
            PERFORM unusual(''few'', ARRAY[p_of[v_count + 1]]);
        END IF;
        v_total := v_count;
        p_n[1] := v_count;
        p_of := p_of[:v_count]; p_agent := p_agent[:v_count]; p_session := p_session[:v_count]; p_user := p_user[:v_count];
        p_lease := p_lease[:v_count]; p_process := p_process[:v_count]; p_request := p_request[:v_count];
        p_hash := p_hash[:v_count]; p_key := p_key[:v_count]; p_by := p_by[:v_count]; p_address := p_address[:v_count];
        p_trace := p_trace[:v_count]; p_n := p_n[:v_count];
        v_held := v_held[:v_count]; v_held_from := v_held_from[:v_count];
']
    ] LOOP
        IF strpos(v_text, v_change[1]) = 0 THEN
            RAISE EXCEPTION 'claim_tasks has no %', v_change[1];
        END IF;
        v_text := replace(v_text, v_change[1], v_change[2]);
    END LOOP;
    IF strpos(v_text, v_heads) = 0 OR strpos(v_text, v_then) = 0 THEN
        RAISE EXCEPTION 'claim_tasks has no choice of tasks';
    END IF;
    EXECUTE left(v_text, strpos(v_text, v_heads) - 1) || $choice$    -- The heads of the lanes in the order of the claim. Behind the last of a lane that may have more, nobody goes on who
    -- could take of that lane: then more of each lane is read. Those who cannot take of it choose beyond it.
    LOOP
        SELECT array_agg(x.place), array_agg(x.number), array_agg(x.lane), array_agg(x.plain), array_agg(x.is_last),
                coalesce(min(x.at) FILTER (WHERE x.is_last), count(*)), count(*)
            INTO v_places, v_numbers, v_lane, v_plain, v_last, v_edge, v_count
            FROM (SELECT y.*, y.n = v_page AND v_page < v_total AS is_last, row_number() OVER ()::integer AS at FROM (
                SELECT q.place, q.number, q.plain, q.n, l.lane_number::integer AS lane
                FROM unnest(p_lanes, p_boosts) WITH ORDINALITY AS l (name, boost, lane_number)
                LEFT JOIN LATERAL (SELECT b.band, b.rank, b.sequence FROM lane_start AS b
                    WHERE b.space = v_space AND b.lane = l.name LIMIT 1) AS b ON true, LATERAL (
                    SELECT k.ctid AS place, k.*, row_number() OVER () AS n FROM (SELECT k.ctid, k.* FROM queue AS k
                        WHERE k.space = v_space AND k.lane = l.name AND (k.band, k.rank, k.sequence)
                            >= (coalesce(b.band, v_least), coalesce(b.rank, v_least), coalesce(b.sequence, v_least))
                        ORDER BY k.band, k.rank, k.sequence, k.id LIMIT v_page) AS k) AS q
                ORDER BY q.band, q.rank - l.boost * v_now, q.sequence, q.id) AS y) AS x;
        v_lacks := false;
        IF v_all THEN
            v_chosen := ARRAY(SELECT generate_series(1, least(v_total, v_edge)));
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
        END IF;
        EXIT WHEN v_lacks IS NOT TRUE;
        v_page := least(v_total, 4 * v_page);
    END LOOP;
$choice$ || substr(v_text, strpos(v_text, v_then));
END $$;
