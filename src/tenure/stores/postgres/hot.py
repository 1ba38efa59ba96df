"""The statements of the fused verbs: see `tenure.stores.fused`.

Rows come as one array a column. The planner sees a handful of rows and has one index for each step: a key, or
`task_ref`. Every patch and every detail is what the engine would have written, by the same names.
"""
# ruff: noqa: S608 - constants alone

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from tenure.core.records import Agent, Brief, Claim, Session, Task
from tenure.stores.fused import TOLD, TOLD_OF_BRIEF
from tenure.stores.postgres.values import shown
from tenure.stores.sql.clauses import Dialect
from tenure.stores.sql.codec import Codec, values_reader
from tenure.stores.sql.columns import HOT
from tenure.stores.sql.statements import table_of

# From receipts to who holds them, each a key of the next: as one array each, so that every step is a look by key.
_CLAIMS_OF = """ARRAY(
    SELECT b.id || '@' || g.generation FROM unnest($3::text[], $4::bigint[]) AS g (ref, generation)
        JOIN {s}task_base AS b ON b.tenant = $1 AND b.project = $2 AND b.ref = g.ref)"""
_HELD_BY = "ARRAY(SELECT {who} FROM {s}claim WHERE tenant = $1 AND project = $2 AND id = ANY({claims}))"
_HOLDERS = "{select} WHERE tenant = $1 AND project = $2 AND id = ANY({keys})"

# Of an asker whose agent or session is not as usual, or who was offered something, or who has asked before, nothing is
# told. Each look is for one row: a join would be free to walk.
_KNOWN = """
SELECT g.n, a.last_seen, s.last_activity, a.capabilities, a.tracks, a.region, (
    SELECT array_agg(first.id || ' ' || b.key) FROM (
        SELECT id FROM {s}task_hot WHERE tenant = $1 AND project = $2 AND session = g.session ORDER BY id LIMIT $6
    ) AS first JOIN {s}task_base AS b ON b.tenant = $1 AND b.project = $2 AND b.id = first.id)
FROM unnest($3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS g (agent, session, request, n)
    JOIN {s}agent AS a ON a.tenant = $1 AND a.project = $2 AND a.id = g.agent
    JOIN {s}session AS s ON s.tenant = $1 AND s.project = $2 AND s.id = g.session
WHERE NOT ({odd} OR a.draining OR a.max_concurrent_tasks IS NOT NULL OR a.cool_until IS NOT NULL
        OR s.ended_at IS NOT NULL)
    AND (SELECT true FROM {s}claim WHERE tenant = $1 AND project = $2 AND request_id = g.request LIMIT 1) IS NULL
    AND (SELECT true FROM {s}task_base WHERE tenant = $1 AND project = $2 AND offer_to = g.agent LIMIT 1) IS NULL
"""

_GRANT = """
WITH held AS (
    UPDATE {s}task_hot AS t SET
        state = 'claimed', generation = t.generation + 1, attempts = t.attempts + 1, agent = g.agent,
        session = g.session, claimed_at = $2, lease = g.lease, lease_until = $2 + g.lease, presented_at = $2,
        claim_epoch = $3, updated_at = $2, version = t.version + 1, lane = NULL, due_at = $2 + g.lease
    FROM unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::bytea[], $11::text[],
                $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[],
                $19::text[], $20::text[])
        AS g (project, task, agent, session, "user", lease, nonce, process, request_id, request_hash, event, command,
              trace_id, by_user, address, who, asked), {s}task_base AS b, {s}brief AS w
    WHERE t.tenant = $1 AND t.project = g.project AND t.id = g.task AND t.plain AND t.lane IS NOT NULL
        AND b.tenant = $1 AND b.project = g.project AND b.id = g.task
        AND w.tenant = $1 AND w.project = g.project AND w.id = g.task
    RETURNING g.*, {told}
), claims AS (
    INSERT INTO {s}claim (tenant, project, id, task, generation, run, attempt, nonce, epoch, agent, session, "user",
        acquired_at, lease, state, renewals, counted, continues, refused, process, request_id, request_hash)
    SELECT $1, project, task || '@' || generation, task, generation, run, attempts, nonce, $3, agent, session, "user",
        $2, lease, 'active', 0, true, false, 0, process, request_id, request_hash
    FROM held
), told AS (
    INSERT INTO {s}event (tenant, id, time, kind, level, project, task, key, version, track, generation, agent, session,
        "user", address, previous_state, new_state, message, details, patch, trace_id, causation_id, of_claim)
    SELECT $1, event, $2, 'task.claimed', 'info', project, task, key, version, track, generation, agent, session,
        by_user, address, 'ready', 'claimed', '',
        '{{"lease_until":' || lease_until || ',"attempt":' || attempts
            || ',"previous_generation":' || generation - 1 || '}}',
        '[["task","' || task || '",{{"state":"claimed","generation":' || generation || ',"attempts":' || attempts
            || ',' || who || ',"claimed_at":' || $2 || ',"claim_epoch":"' || $3 || '","updated_at":' || $2
            || ',"version":' || version || '}}],["claim","' || task || '@' || generation || '",{{"id":"' || task || '@'
            || generation || '","task":"' || task || '","generation":' || generation || ',"run":' || run
            || ',"attempt":' || attempts || ',"epoch":"' || $3 || '",' || who || ',"acquired_at":' || $2 || asked
            || '}}]]',
        trace_id, command, true
    FROM held
    RETURNING sequence
)
SELECT project, {told_names}, (SELECT bool_or(strpos(spec, 'context_refs') + strpos(spec, '$body')
    + strpos(description, '$body') > 0) FROM held), (SELECT max(sequence) FROM told), pg_current_xact_id()::text
FROM held
"""

# The guard of a holder's write: its receipt is the current one, and what it holds is plain. Only what is held has a
# claim's epoch.
_HOLDS = """
    WHERE b.tenant = $1 AND b.project = g.project AND b.ref = g.ref AND t.tenant = $1 AND t.project = b.project
        AND t.id = b.id AND t.plain AND t.generation = g.generation AND t.claim_epoch = $3
        AND c.tenant = $1 AND c.project = b.project AND c.id = b.id || '@' || g.generation AND c.epoch = $3
        AND c.nonce = g.nonce
"""

# Who holds it, and when it was last heard of: the engine writes a sign of life only now and then.
_HOLDER = """{s}claim AS c
        LEFT JOIN {s}agent AS a ON a.tenant = c.tenant AND a.project = c.project AND a.id = c.agent
        LEFT JOIN {s}session AS s ON s.tenant = c.tenant AND s.project = c.project AND s.id = c.session"""
_ODD = "a.stale OR a.left_at IS NOT NULL OR a.troubles > 0"
_SIGNS = f"a.last_seen AS agent_seen, {_ODD} AS agent_is_odd, s.last_activity AS session_seen"

_COMPLETE = (
    """
WITH found AS (
    SELECT g.*, b.id, t.ctid AS held_at, c.ctid AS claimed_at, b.key, b.track, t.state AS was, t.renewals,
        t.started_at, t.version + 1 AS next, b.dependents, b.children, b.dag, c.run, c.agent, c.session, c."user",
        c.acquired_at, {signs},
        'wp-' || b.key || '-gen' || t.generation || '-' || left(g.digest, 6) AS product
    FROM unnest($4::text[], $5::text[], $6::bigint[], $7::bytea[], $8::text[], $9::text[], $10::text[], $11::bigint[],
                $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[])
        AS g (project, ref, generation, nonce, result, data, summary, size, digest, request_id, event, command,
              trace_id, by_user, address, given), {s}task_base AS b, {s}task_hot AS t,
        {holder}
"""
    + _HOLDS
    + """
        AND t.percent IS DISTINCT FROM 100
        AND (c."user" IS NULL OR strpos(c."user", E'\\x01') = 0)
), done AS (
    UPDATE {s}task_hot AS t SET
        state = 'completed', agent = NULL, session = NULL, claimed_at = NULL, lease = NULL, lease_until = NULL,
        claim_epoch = NULL, presented_at = NULL, renewals = 0, completed_at = $2, work_product = f.product,
        percent = 100, started_at = coalesce(t.started_at, $2), updated_at = $2, version = f.next, due_at = NULL,
        plain = false
    FROM found AS f WHERE t.ctid = f.held_at
), ended AS (
    UPDATE {s}claim AS c SET
        state = 'released', reason = 'COMPLETED', released_at = $2, renewals = f.renewals, process = NULL,
        result_accepted = true, work_product = f.product
    FROM found AS f WHERE c.ctid = f.claimed_at
), results AS (
    INSERT INTO {s}result (tenant, project, id, task, run, generation, session, agent, "user", submitted_at, accepted,
        reason, data, summary, size, digest, processing, work_product, work_lost, late, request_id)
    SELECT $1, project, result, id, run, generation, session, agent, "user", $2, true, 'ACCEPTED', data, summary, size,
        digest, $2 - acquired_at, product, false, false, request_id
    FROM found
), told AS (
    INSERT INTO {s}event (tenant, id, time, kind, level, project, task, key, version, track, generation, agent, session,
        "user", address, previous_state, new_state, message, details, patch, trace_id, causation_id, of_claim)
    SELECT $1, event, $2, 'task.completed', 'info', project, id, key, next, track, generation, agent, session, by_user,
        address, was, 'completed', '',
        '{{"result":"' || result || '","work_product":"' || product || '","late":false,"duration_ms":'
            || ($2 - acquired_at) / 1000 || '}}',
        '[["task","' || id || '",{{"state":"completed","agent":null,"session":null,"claimed_at":null,"claim_epoch":null'
            || ',"percent":100,"work_product":"' || product || '","completed_at":' || $2 || ',"updated_at":' || $2
            || ',"version":' || next || CASE WHEN started_at IS NULL THEN ',"started_at":' || $2 ELSE '' END
            || '}}],["result","' || result || '",{{"id":"' || result || '","task":"' || id || '","run":' || run
            || ',"generation":' || generation || ',"submitted_at":' || $2 || ',"processing":' || $2 - acquired_at
            || ',"accepted":true,"reason":"ACCEPTED","work_product":"' || product || '","session":'
            || to_json(session) || ',"agent":' || to_json(agent)
            || CASE WHEN "user" IS NULL THEN '' ELSE ',"user":' || to_json("user") END || given
            || '}}],["claim","' || id || '@' || generation || '",{{"state":"released","reason":"COMPLETED"'
            || ',"released_at":' || $2 || CASE WHEN renewals > 0 THEN ',"renewals":' || renewals ELSE '' END
            || ',"result_accepted":true,"work_product":"' || product || '"}}]]',
        trace_id, command, true
    FROM found
    RETURNING sequence
)
SELECT project, ref, id, key, next, was, product, agent, session, agent_seen, agent_is_odd, session_seen, dag, children,
    dependents, (SELECT max(sequence) FROM told), pg_current_xact_id()::text
FROM found
"""
)

# The first renewal of a claim is the start of the work, and told of.
_RENEW = (
    """
WITH found AS (
    SELECT g.*, b.id, b.key, b.track, t.ctid AS held_at, t.version + 1 AS next, t.state = 'claimed' AS starts,
        $2 + coalesce(g.lease, t.lease) AS until, c.agent, c.session, {signs}
    FROM unnest($4::text[], $5::text[], $6::bigint[], $7::bytea[], $8::bigint[], $9::text[], $10::text[], $11::text[],
                $12::text[], $13::text[], $14::text[], $15::text[])
        AS g (project, ref, generation, nonce, lease, event, command, trace_id, by_agent, by_session, by_user,
              address), {s}task_base AS b, {s}task_hot AS t,
        {holder}
"""
    + _HOLDS
    + """
), renewed AS (
    UPDATE {s}task_hot AS t SET
        lease = coalesce(f.lease, t.lease), lease_until = f.until, renewals = t.renewals + 1, presented_at = $2,
        due_at = f.until, state = 'running', started_at = CASE WHEN f.starts THEN $2 ELSE t.started_at END,
        updated_at = CASE WHEN f.starts THEN $2 ELSE t.updated_at END,
        version = CASE WHEN f.starts THEN f.next ELSE t.version END
    FROM found AS f WHERE t.ctid = f.held_at
), told AS (
    INSERT INTO {s}event (tenant, id, time, kind, level, project, task, key, version, track, generation, agent, session,
        "user", address, previous_state, new_state, message, details, patch, trace_id, causation_id, of_claim)
    SELECT $1, event, $2, 'task.started', 'info', project, id, key, next, track, generation, coalesce(by_agent, agent),
        coalesce(by_session, session), by_user, address, 'claimed', 'running', '', '{{}}',
        '[["task","' || id || '",{{"state":"running","started_at":' || $2 || ',"updated_at":' || $2 || ',"version":'
            || next || '}}]]',
        trace_id, command, by_session IS NULL OR by_session = session
    FROM found WHERE starts
    RETURNING sequence
)
SELECT project, ref, until, agent, session, agent_seen, agent_is_odd, session_seen, (
    SELECT count(*) FROM (
        SELECT FROM {s}message AS m
        WHERE m.tenant = $1 AND m.project = f.project AND m.recipient = f.agent AND m.read_at IS NULL LIMIT $16
    ) AS unread), (SELECT max(sequence) FROM told), pg_current_xact_id()::text
FROM found AS f
"""
)


class Hot(NamedTuple):
    """The texts for one schema."""

    claims: str  # of receipts, and their agents and sessions
    agents: str
    sessions: str
    known: str
    grant: str
    complete: str
    renew: str


@cache
def hot_of(dialect: Dialect) -> Hot:
    schema = dialect.schema
    hot = {"id", *HOT["task"]}
    told = [*(f'{"t" if name in hot else "b"}."{name}"' for name in TOLD), *(f'w."{name}"' for name in TOLD_OF_BRIEF)]
    named = {
        "holder": _HOLDER.format(s=schema),
        "odd": _ODD,
        "signs": _SIGNS,
        "told": ", ".join(told),
        "told_names": ", ".join(f'"{name}"' for name in (*TOLD, *TOLD_OF_BRIEF)),
    }
    claims = _CLAIMS_OF.format(s=schema)
    keys = {Claim: claims} | {
        kind: _HELD_BY.format(s=schema, who=who, claims=claims)
        for kind, who in ((Agent, "agent"), (Session, "session"))
    }
    return Hot(
        *(_HOLDERS.format(select=table_of(kind, dialect).select, keys=keys[kind]) for kind in (Claim, Agent, Session)),
        *(text.format(s=schema, **named) for text in (_KNOWN, _GRANT, _COMPLETE, _RENEW)),
    )


def told_reader() -> Callable[[Sequence[Any]], list[Any]]:
    """Reads the values of TOLD and TOLD_OF_BRIEF."""
    task, brief = Codec(Task).by_name, Codec(Brief).by_name
    read = values_reader(Task, [*(task[name] for name in TOLD), *(brief[name] for name in TOLD_OF_BRIEF)])

    def read_shown(row: Sequence[Any]) -> list[Any]:
        if any("\x01" in value for value in row if type(value) is str):
            row = [shown(value) if type(value) is str else value for value in row]
        return read(row)

    return read_shown


def columns(rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """One array a column; one in which nothing is given is None, which unnest fills up with NULL."""
    return [None if all(value is None for value in column) else list(column) for column in zip(*rows, strict=True)]
