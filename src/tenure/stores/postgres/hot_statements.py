"""The statements of the fast path: see `tenure.stores.fast_path`.

Rows are passed as one array per column. The planner sees a handful of rows and has one index for each step: a key, or
`task_ref`. Patches and details are those that the engine would have written, by the same names.
"""
# ruff: noqa: S608 - constants alone

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from msgspec import NODEFAULT
from msgspec.structs import fields

from tenure.core.records import KINDS, Agent, Brief, Claim, Result, Row, Session, Task
from tenure.stores.fast_path import TOLD, TOLD_OF_BRIEF
from tenure.stores.postgres.event_blocks import ITEMS
from tenure.stores.postgres.tables import HOT
from tenure.stores.sql.codec import Codec, columns_of, to_json, values_reader
from tenure.stores.sql.statements import Dialect, table_of

# From receipts to their holders, each the key of the next: as one array each, so that every step is a lookup by key.
_CLAIMS_OF = """ARRAY(
    SELECT b.id || '@' || g.generation FROM unnest($3::text[], $4::bigint[]) AS g (ref, generation)
        JOIN {s}task_base AS b ON b.tenant = $1 AND b.project = $2 AND b.ref = g.ref)"""
_HELD_BY = "ARRAY(SELECT {who} FROM {s}claim WHERE tenant = $1 AND project = $2 AND id = ANY({claims}))"
_HOLDERS = "{select} WHERE tenant = $1 AND project = $2 AND id = ANY({keys})"

# Leaves out a claimant whose agent or session is unusual, that has an offer, or whose request is a repetition. Each
# subquery is for one row: a join might scan. `IS TRUE` keeps the planner from using the agent to find the session,
# which is one row by its key, while an agent may have had many.
_KNOWN = """
SELECT g.n, a.last_seen, s.last_activity, a.capabilities, a.tracks, a.region, a.type, a.models, (
    SELECT array_agg(first.id || ' ' || b.key) FROM (
        SELECT id FROM {s}task_hot WHERE tenant = $1 AND project = $2 AND session = g.session ORDER BY id LIMIT $6
    ) AS first JOIN {s}task_base AS b ON b.tenant = $1 AND b.project = $2 AND b.id = first.id)
FROM unnest($3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS g (agent, session, request, n)
    JOIN {s}agent AS a ON a.tenant = $1 AND a.project = $2 AND a.id = g.agent
    JOIN {s}session AS s ON s.tenant = $1 AND s.project = $2 AND s.id = g.session
        AND (s.agent = g.agent) IS TRUE
WHERE NOT ({odd} OR a.draining OR a.max_concurrent_tasks IS NOT NULL OR a.cool_until IS NOT NULL
        OR s.ended_at IS NOT NULL)
    AND (SELECT true FROM {s}claim WHERE tenant = $1 AND project = $2 AND request_id = g.request LIMIT 1) IS NULL
    AND (SELECT true FROM {s}task_base WHERE tenant = $1 AND project = $2 AND offer_to = g.agent LIMIT 1) IS NULL
"""

# A batch draws the sequences of its events at once, and again where another transaction drew in between: a block has
# all sequences from its first to its last. If 100 attempts fail, it finds no rows, and the caller takes the slow path.
_DRAWN = """
WITH RECURSIVE drawn (try, first, last) AS (
    SELECT 1, min(s), max(s) FROM (SELECT nextval('{s}event_sequence_seq') FROM generate_series(1, {many})) AS one (s)
    UNION ALL
    SELECT try + 1, again.first, again.last FROM drawn, LATERAL (
        SELECT min(s) AS first, max(s) AS last
        FROM (SELECT nextval('{s}event_sequence_seq') FROM generate_series(try, {many} + try - 1)) AS one (s)) AS again
    WHERE drawn.last - drawn.first + 1 <> {many} AND try < 100
), numbers AS (
    SELECT first FROM drawn WHERE last - first + 1 = {many}
), """.replace("{many}", "cardinality($5::text[])")
# Appends the events as one block (see `event_blocks`), from the given arrays and the rows that were found.
_BLOCK = """
), block AS (
    INSERT INTO {s}event_block (first, last, tenant, project, time, kind, new_state, epoch, {items})
    SELECT min(at), max(at), $1, $4, $2, {of_all}, {whole} FROM (SELECT * FROM {rows} ORDER BY n) AS ordered
    HAVING count(*) = cardinality($5::text[])
    RETURNING last"""
# For a few rows one block per event is cheaper; and it is necessary where only some of the given rows were found.
_EACH_BLOCK = """
), {name} AS (
    INSERT INTO {s}event_block (first, last, tenant, project, time, kind, new_state, epoch, {items})
    SELECT at, at, $1, $4, $2, {of_all}, {single} FROM {rows}{where}
    RETURNING last"""
_SOME = " WHERE (SELECT count(*) FROM {rows}) < cardinality($5::text[])"
FEW = 3
_BATCH = {"drawn": _DRAWN, "at": "(SELECT first FROM numbers) + g.n - 1", "is_drawn": "(SELECT first FROM numbers) > 0"}
_EACH = {"drawn": "\nWITH ", "at": "nextval('{s}event_sequence_seq')", "is_drawn": "true"}


class _EventItems(NamedTuple):
    """Where a block's items come from. `given`: arrays of the call; `found`: expressions, if not the column."""

    rows: str
    of_all: str  # kind, new state, epoch
    given: dict[str, str]
    found: dict[str, str]

    def batch(self, *, is_partial: bool) -> dict[str, str]:
        """For a statement's text; with `is_partial` some rows may not have been found."""
        apart = self._filled(_EACH_BLOCK, name="blocks", where=_SOME) if is_partial else ""
        last = "(SELECT max(last) FROM block)"
        if is_partial:
            last = "coalesce((SELECT max(last) FROM block), (SELECT max(last) FROM blocks))"
        return _BATCH | {"events": self._filled(_BLOCK) + apart, "last": last}

    def each(self) -> dict[str, str]:
        return _EACH | {
            "events": self._filled(_EACH_BLOCK, name="block", where=""),
            "last": "(SELECT max(last) FROM block)",
        }

    def _filled(self, text: str, **more: str) -> str:
        spelt = {name: self.found.get(name, f'"{name}"') for name in ITEMS}
        more |= {
            "whole": ", ".join(self.given.get(name, f"array_agg({spelt[name]})") for name in ITEMS),
            "single": ", ".join(f"ARRAY[{spelt[name]}]" for name in ITEMS),
            "items": _names(ITEMS),
            "of_all": self.of_all,
        }
        return replaced(text, more | {"rows": self.rows})


def replaced(text: str, values: dict[str, str]) -> str:
    """As `format`, but leaves other braces for a later call."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


_GRANT = """{drawn}held AS (
    UPDATE {s}task_hot AS t SET
        state = 'claimed', generation = t.generation + 1, attempts = t.attempts + 1, agent = g.agent,
        session = g.session, claimed_at = $2, lease = g.lease, lease_until = $2 + g.lease, presented_at = $2,
        claim_epoch = $3, updated_at = $2, version = t.version + 1, lane = NULL, due_at = $2 + g.lease
    FROM unnest($5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::bytea[], $11::text[], $12::text[],
                $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[])
        WITH ORDINALITY
        AS g (task, agent, session, "user", lease, nonce, process, request_id, request_hash, event, command, trace_id,
              by_user, address, by_key, n), {s}task_base AS b, {s}brief AS w
    WHERE t.tenant = $1 AND t.project = $4 AND t.id = g.task AND t.plain AND t.lane IS NOT NULL
        AND b.tenant = $1 AND b.project = $4 AND b.id = g.task
        AND w.tenant = $1 AND w.project = $4 AND w.id = g.task AND {is_drawn}
    RETURNING g.*, {shown}, t.generation, t.attempts, {at} AS at, {unusual} AS is_unusual
), claims AS (
    INSERT INTO {s}claim (tenant, project, id, task, generation, run, attempt, nonce, epoch, agent, session, "user",
        acquired_at, lease, state, renewals, counted, continues, refused, process, request_id, request_hash,
        grant_event, key{more_of_claim})
    SELECT $1, $4, task || '@' || generation, task, generation, run, attempts, nonce, $3, agent, session, "user",
        $2, lease, 'active', 0, true, false, 0, process, request_id, request_hash, at,
        by_key{claim_begins_with}
    FROM held{events}
)
SELECT {shown_names}, {guard}, (SELECT bool_or(is_unusual) FROM held), {last}, pg_current_xact_id()::text FROM held
"""
_OF_GRANT = _EventItems(
    "held", "'task.claimed', 'claimed', $3",
    {"id": "$14", "task": "$5", "agent": "$6", "session": "$7", "user": "$17", "address": "$18", "trace_id": "$16",
     "causation_id": "$15", "claimer": "$8", "request_id": "$12", "request_hash": "$13", "said": "NULL"},
    {"id": "event", "user": "by_user", "previous_state": "'ready'::text", "causation_id": "command",
     "claimer": '"user"', "said": "NULL::text", "facts": "attempts || ',' || run || ',' || lease"},
)  # fmt: skip

# A task with more fields than `TOLD`, or that refers to other rows, or with an encoded NUL: see `values`.
_UNUSUAL = """(t.generation > 1 OR t.attempts > 1 OR b.unmet > 0 OR b.last_error IS NOT NULL OR b.answers <> '[]'
        OR NOT (t.work_product IS NULL AND t.started_at IS NULL AND t.completed_at IS NULL AND b.failed_at IS NULL
                AND b.dead_lettered_at IS NULL AND b.archived_at IS NULL AND b.offer_to IS NULL)
        OR strpos(w.spec, 'context_refs') + strpos(w.spec, '$body') + strpos(w.description, '$body') > 0
        OR strpos(concat(b.key, b.type, b.created_by, w.title, w.description), E'\\x01') > 0)"""

# The guard of a holder's write: its receipt is the current one, and its task is plain. Only a held task has a claim's
# epoch. A row that another transaction changes between this read and the write is left out of the write; so the number
# of written rows is returned, and must equal the number of found ones: see `_STILL_HELD`.
_HOLDS = """
    WHERE b.tenant = $1 AND b.project = $4 AND b.ref = g.ref AND t.tenant = $1 AND t.project = $4
        AND t.id = b.id AND t.plain AND t.generation = g.generation AND t.claim_epoch = $3
        AND c.tenant = $1 AND c.project = $4 AND c.id = b.id || '@' || g.generation AND c.epoch = $3
        AND c.nonce = g.nonce
"""

# The address (`ctid`) finds the row again at no cost. The server may have waited there for another writer, and not
# every minor version compares the address again afterwards. So the conditions are repeated for the newer row: each of
# these writes changes one of the columns.
_STILL_HELD = """t.ctid = f.held_at
        AND t.tenant = $1 AND t.project = $4 AND t.id = f.id AND t.generation = f.generation AND t.claim_epoch = $3
        AND t.state = f.was AND t.renewals = f.renewals AND t.plain"""
_STILL_CLAIMED = """c.ctid = f.claimed_at
        AND c.tenant = $1 AND c.project = $4 AND c.id = f.id || '@' || f.generation AND c.generation = f.generation
        AND c.nonce = f.nonce AND c.epoch = $3 AND c.state = 'active'"""

# The holder, and when it was last active: the engine updates that only now and then.
_HOLDER = """{s}claim AS c
        LEFT JOIN {s}agent AS a ON a.tenant = c.tenant AND a.project = c.project AND a.id = c.agent
        LEFT JOIN {s}session AS s ON s.tenant = c.tenant AND s.project = c.project AND s.id = c.session"""
_ODD = "a.stale OR a.left_at IS NOT NULL OR a.terminated_at IS NOT NULL OR a.troubles > 0"
_SIGNS = f"a.last_seen AS agent_seen, {_ODD} AS agent_is_odd, s.last_activity AS session_seen"

_COMPLETE = (
    """{drawn}found AS (
    SELECT g.*, b.id, t.ctid AS held_at, c.ctid AS claimed_at, b.key, b.track, t.state AS was, t.renewals,
        t.started_at, t.version + 1 AS next, b.dependents, b.children, b.dag, c.run, c.agent, c.session, c."user",
        c.acquired_at, {signs}, 'wp-' || b.key || '-gen' || t.generation || '-'
            || left(encode(sha256(convert_to(g.result, 'UTF8')), 'hex'), 6) AS product,
        {at} AS at
    FROM unnest($5::text[], $6::bigint[], $7::bytea[], $8::text[], $9::text[], $10::text[], $11::bigint[], $12::text[],
                $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[])
            WITH ORDINALITY
        AS g (ref, generation, nonce, result, data, summary, size, digest, request_id, event, command, trace_id,
              by_user, address, said, n), {s}task_base AS b, {s}task_hot AS t,
        {holder}
"""
    + _HOLDS
    + """
        AND t.percent IS DISTINCT FROM 100 AND {is_drawn}
), done AS (
    UPDATE {s}task_hot AS t SET
        state = 'completed', agent = NULL, session = NULL, claimed_at = NULL, lease = NULL, lease_until = NULL,
        claim_epoch = NULL, presented_at = NULL, renewals = 0, completed_at = $2, work_product = f.product,
        percent = 100, started_at = coalesce(t.started_at, $2), updated_at = $2, version = f.next, due_at = NULL,
        plain = false
    FROM found AS f WHERE {still_held} RETURNING 1
), ended AS (
    UPDATE {s}claim AS c SET
        state = 'released', reason = 'COMPLETED', released_at = $2, renewals = f.renewals, process = NULL,
        result_accepted = true, work_product = f.product, result_event = f.at
    FROM found AS f WHERE {still_claimed}
), results AS (
    INSERT INTO {s}result (tenant, project, id, task, run, generation, session, agent, "user", submitted_at, accepted,
        reason, data, summary, size, digest, processing, work_product, work_lost, late, request_id{more_of_result})
    SELECT $1, $4, result, id, run, generation, session, agent, "user", $2, true, 'ACCEPTED', data, summary, size,
        digest, $2 - acquired_at, product, false, false, request_id{result_begins_with}
    FROM found{events}
)
SELECT $4, ref, id, key, next, was, product, agent, session, agent_seen, agent_is_odd, session_seen, dag, children,
    dependents, {guard}, (SELECT count(*) FROM done), {last}, pg_current_xact_id()::text
FROM found
"""
)
_OF_RESULT = _EventItems(
    "found", "'task.completed', 'completed', NULL",
    {"id": "$14", "generation": "$6", "user": "$17", "address": "$18", "trace_id": "$16", "causation_id": "$15",
     "request_id": "NULL", "request_hash": "NULL", "said": "$19"},
    {"id": "event", "task": "id", "version": "next", "user": "by_user", "previous_state": "was",
     "causation_id": "command", "claimer": '"user"', "request_id": "NULL::text", "request_hash": "NULL::text",
     "facts": "run || ',' || acquired_at || ',' || renewals || ',' || (started_at IS NULL)::int || ',' "
     "|| right(product, 6)"},
)  # fmt: skip

# The first renewal of a claim starts the work, and appends an event.
_RENEW = (
    """
WITH found AS (
    SELECT g.*, b.id, b.key, b.track, t.ctid AS held_at, t.version + 1 AS next, t.state AS was, t.renewals,
        t.state = 'claimed' AS starts, $2 + coalesce(g.lease, t.lease) AS until, c.agent, c.session, {signs}
    FROM unnest($5::text[], $6::bigint[], $7::bytea[], $8::bigint[], $9::text[], $10::text[], $11::text[],
                $12::text[], $13::text[], $14::text[], $15::text[])
        AS g (ref, generation, nonce, lease, event, command, trace_id, by_agent, by_session, by_user,
              address), {s}task_base AS b, {s}task_hot AS t,
        {holder}
"""
    + _HOLDS
    + """
        AND a.terminated_at IS NULL
), renewed AS (
    UPDATE {s}task_hot AS t SET
        lease = coalesce(f.lease, t.lease), lease_until = f.until, renewals = t.renewals + 1, presented_at = $2,
        due_at = f.until, state = 'running', started_at = CASE WHEN f.starts THEN $2 ELSE t.started_at END,
        updated_at = CASE WHEN f.starts THEN $2 ELSE t.updated_at END,
        version = CASE WHEN f.starts THEN f.next ELSE t.version END
    FROM found AS f WHERE {still_held} RETURNING 1
), started AS (
    INSERT INTO {s}event (tenant, id, time, kind, level, project, task, key, version, track, generation, agent, session,
        "user", address, previous_state, new_state, message, details, patch, trace_id, causation_id, of_claim)
    SELECT $1, event, $2, 'task.started', 'info', $4, id, key, next, track, generation, coalesce(by_agent, agent),
        coalesce(by_session, session), by_user, address, 'claimed', 'running', '', '{}',
        '[["task","' || id || '",{"state":"running","started_at":' || $2 || ',"updated_at":' || $2 || ',"version":'
            || next || '}]]',
        trace_id, command, by_session IS NULL OR by_session = session
    FROM found WHERE starts
    RETURNING sequence
)
SELECT $4, ref, until, agent, session, agent_seen, agent_is_odd, session_seen, (
    SELECT count(*) FROM (
        SELECT FROM {s}message AS m
        WHERE m.tenant = $1 AND m.project = $4 AND m.recipient = f.agent AND m.read_at IS NULL LIMIT $16
    ) AS unread), {guard}, (SELECT count(*) FROM renewed), (SELECT max(sequence) FROM started),
    pg_current_xact_id()::text
FROM found AS f
"""
)


# With the commit right behind it, the statement aborts itself (division by zero) unless every row was written and is as
# usual: no effect that `fast_path/held_claims.py` would add is due. The name of a lone task's dag is `ids.lone_dag`.
_GUARD = """CASE WHEN {is_last} THEN 1 / ((SELECT count(*) FROM {written}) = cardinality($5::text[])
        AND (SELECT bool_and({usual}) FROM {rows}))::integer END"""
_IS_HEARD = (
    "NOT coalesce(agent_is_odd OR agent_seen <= {heard}, false) AND NOT coalesce(session_seen <= {heard}, false)"
)
_IS_LONE = "dependents = 0 AND children = 0 AND dag = 'dag_' || regexp_replace(id, '^task_', '')"
_GUARDS = {
    "held": {"is_last": "$20", "rows": "held", "usual": "NOT is_unusual"},
    "done": {"is_last": "$20", "rows": "found", "usual": f"{_IS_LONE} AND " + _IS_HEARD.replace("{heard}", "$21")},
    "renewed": {"is_last": "$17", "rows": "found", "usual": _IS_HEARD.replace("{heard}", "$18")},
}


class Hot(NamedTuple):
    """The texts for one schema."""

    claims: str  # of receipts, and their agents and sessions
    agents: str
    sessions: str
    known: str
    grant: str
    grant_each: str  # of a few
    complete: str
    complete_each: str
    renew: str


@cache
def hot_of(dialect: Dialect) -> Hot:
    schema = dialect.schema
    hot = {"id", *HOT["task"]}
    shown = [*(f'{"t" if name in hot else "b"}."{name}"' for name in TOLD), *(f'w."{name}"' for name in TOLD_OF_BRIEF)]
    named = {
        "holder": _HOLDER.format(s=schema),
        "odd": _ODD,
        "signs": _SIGNS,
        "still_held": _STILL_HELD,
        "still_claimed": _STILL_CLAIMED,
        "shown": ", ".join(shown),
        "unusual": _UNUSUAL,
        "shown_names": _names((*TOLD, *TOLD_OF_BRIEF)),
        **_rest_of(Claim, _GRANT),
        **_rest_of(Result, _COMPLETE),
    }
    claims = _CLAIMS_OF.format(s=schema)
    keys = {Claim: claims} | {
        kind: _HELD_BY.format(s=schema, who=who, claims=claims)
        for kind, who in ((Agent, "agent"), (Session, "session"))
    }
    guards = {written: {"guard": replaced(_GUARD, how | {"written": written})} for written, how in _GUARDS.items()}
    texts = (
        _KNOWN,
        *(replaced(_GRANT, how | guards["held"]) for how in (_OF_GRANT.batch(is_partial=False), _OF_GRANT.each())),
        *(replaced(_COMPLETE, how | guards["done"]) for how in (_OF_RESULT.batch(is_partial=True), _OF_RESULT.each())),
        replaced(_RENEW, guards["renewed"]),
    )
    return Hot(
        *(_HOLDERS.format(select=table_of(kind, dialect).select, keys=keys[kind]) for kind in (Claim, Agent, Session)),
        *(replaced(text, named | {"s": schema}) for text in texts),
    )


def _rest_of(kind: type[Row], text: str) -> dict[str, str]:
    """The NOT NULL columns that the INSERT of a statement does not name, and their values in new rows.

    So a field that is added to a row starts with its default here too, without a change of the statement.
    """
    table = KINDS[kind].table
    (columns,) = re.findall(rf"INSERT INTO {{s}}{table} \(tenant, (.*?){{", text, re.DOTALL)
    named = {name.strip(' "\n') for name in columns.split(",")}
    defaults = {f.name: f.default if f.default is not NODEFAULT else f.default_factory for f in fields(kind)}
    rest = {c.name: defaults[c.name] for c in columns_of(kind) if c.name not in named and not c.nullable}
    begun = [literal(value() if callable(value) else value) for value in rest.values()]
    return {
        f"more_of_{table}": "".join(f', "{name}"' for name in rest),
        f"{table}_begins_with": "".join(f", {value}" for value in begun),
    }


def literal(value: Any) -> str:
    """A default in SQL: a bool, a number, or a text that is plain or JSON."""
    if isinstance(value, (bool, int)):
        return str(value).lower()
    text = value if isinstance(value, str) else to_json(value)
    return "'" + text.replace("'", "''") + "'"


def grant_reader() -> Callable[[Sequence[Any]], list[Any]]:
    """Reads the values of `TOLD` and `TOLD_OF_BRIEF`."""
    task, brief = Codec(Task).by_name, Codec(Brief).by_name
    return values_reader(Task, [*(task[name] for name in TOLD), *(brief[name] for name in TOLD_OF_BRIEF)])


def columns(rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """One array per column; None where all its values are None, which unnest reads as NULLs."""
    return [None if all(value is None for value in column) else list(column) for column in zip(*rows, strict=True)]
