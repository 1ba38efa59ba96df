"""The calls of the fast path: one function of the schema for each verb, one round trip for all of them.

The functions are in the migration that creates them; here are their arguments. A single call is one statement without
BEGIN, so that the server commits it by itself; several are one transaction. What each function checks, in this order:

- all: isolation READ COMMITTED; the locks, in separate statements before the first read (`project` shared, for
  claims also `claim`, then the epoch's shared); no newer schema; the project's row is the one that the caller judged;
  `now` is not before the project's last event, which is looked for from the last that this store has appended; no task
  of the project is due; the floor of the log's cursor.
- claim_tasks: agent and session are known, active, usual, and have the skills that the caller chose lanes by; no offer
  to the agent; the request is new; no lane that the caller does not know; enough tasks, all of them plain; each row
  still in its lane, ready, plain, never claimed, and without a field that the answer does not show.
- submit_results: the epoch; for each receipt its task by reference, and a usual holder; no dependents, no children, its
  own dag, unless the caller does what follows for others. Then, in the WHERE of the UPDATE and nowhere else: the
  receipt's generation, nonce and epoch, the agent that the caller has proven, a lease that has not ended, plain, and
  not changed meanwhile. The nonce is the row's, or that of the claim's own row.
- renew_claims: the same without what concerns other tasks.

Nothing here lasts beyond a transaction: settings are set by `set_config(…, true)` in the body, names are those of the
schema that the function was created in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from tenure.core import limits, team
from tenure.core.records import Project
from tenure.stores.fast_path import Call, Claims, Look, Renewals, Rows, Submits, Unusual
from tenure.stores.postgres import statement_texts
from tenure.stores.postgres.connection import Answer, Connection, Statement
from tenure.stores.postgres.errors import AGAIN, NO_SUCH, UNIQUE, Failed, translated
from tenure.stores.sql.nul import reader
from tenure.stores.sql.server_errors import BAD_VALUES, Lost, bad_value, unknown
from tenure.stores.sql.statements import table_of

if TYPE_CHECKING:
    from tenure.stores.postgres.store import Postgres

UNUSUAL = "TN001"
# What the ordinary path may still do, or can report better: conflicts, and functions or tables of a newer schema.
_LEFT_TO_OTHERS = frozenset({UNIQUE, *AGAIN, *NO_SUCH, "25006"})
_FUNCTIONS: dict[type[Any], str] = {Claims: "claim_tasks", Submits: "submit_results", Renewals: "renew_claims"}

# From the last lane to the first: the front of a lane is where the entries of claimed tasks are.
_LOOK = """
SELECT p.xmin::text || p.ctid::text, ARRAY(
    WITH RECURSIVE found AS (
        (SELECT q.lane FROM {s}queue AS q WHERE q.space = n.number ORDER BY q.lane DESC LIMIT 1)
        UNION ALL SELECT f.lane FROM found, LATERAL (SELECT q.lane FROM {s}queue AS q
            WHERE q.space = n.number AND q.lane < found.lane ORDER BY q.lane DESC LIMIT 1) AS f)
    SELECT lane FROM found ORDER BY lane), {columns}
FROM {s}project AS p LEFT JOIN {s}space AS n ON n.tenant = $1 AND n.project = $2
WHERE p.tenant = $1 AND p.project = $2 AND p.id = $2
"""
_SKILLS = """
SELECT id, concat_ws(E'\\x1e', capabilities, tracks, type, models, region) FROM {s}agent
WHERE tenant || '' = $1 AND project || '' = $2 AND id = ANY($3)
"""


def look(
    store: Postgres, tenant: str, project: str, agents: Collection[str], run: Callable[[list[Statement]], list[Answer]]
) -> Look | None:
    """`run`: what sends the statements."""
    schema = store.queries.dialect.schema
    table = table_of(Project, store.queries.dialect)
    columns = ", ".join(f'p."{column.name}"' for column in table.codec.columns)
    statements: list[Statement] = [(_LOOK.replace("{s}", schema).replace("{columns}", columns), [tenant, project])]
    if agents:
        statements.append((_SKILLS.replace("{s}", schema), [tenant, project, list(agents)]))
    answers = run(statements)
    rows = answers[0].rows()
    if not rows:
        return None
    seen, lanes, *row = rows[0]
    return Look(reader(Project)(row), seen, lanes, dict(answers[1].rows()) if agents else {})


def call(store: Postgres, tenant: str, calls: Sequence[Call]) -> list[Rows]:
    given = None if store.clock is None else store.clock()
    statements = [statement(store, tenant, one, given, calls if n == 0 else ()) for n, one in enumerate(calls)]
    connection = store.connections.take()
    try:
        connection = _quiet(store, connection)
        answers = _run(store, connection, statements)
        last = None
        for one, answer in zip(calls, answers, strict=True):
            if event := last_event(answer):
                last, store.last_events[tenant, one.project] = event, event[0]
        if last is not None:
            store.notify(connection, tenant, *last)
    finally:
        store.connections.give(connection)
    if last is not None:
        store.announce(tenant, *last)
    return [answer.rows_apart for answer in answers]


_LAST = 2  # the column of the last event's sequence; the transaction follows


def last_event(answer: Answer) -> tuple[int, int] | None:
    """The sequence of the last event that a call has appended, and its transaction."""
    *_, sequence, own = answer.first()[: _LAST + 2]
    return None if sequence is None or own is None else (int(sequence), int(own))


def statement(store: Postgres, tenant: str, one: Call, given: int | None, locked: Sequence[Call] = ()) -> Statement:
    """`given`: the time, unless it is the server's. `locked`: all calls, for the first, which takes their locks."""
    keys, shared = _locks(store, tenant, locked) if locked else ([], [])
    known = store.last_events.get((tenant, one.project))
    common = [
        tenant, one.project, given, store.schema, one.seen, store.timeouts[1], keys, shared, store.floor_lock, known,
    ]  # fmt: skip
    own: tuple[Any, ...] = one[2:]
    if isinstance(one, Claims):
        own = (team.SESSION_IDLE, *own)
    elif isinstance(one, Renewals):
        own = (own[0], limits.MAIL_COUNTED, *own[1:])
    values = [*common, team.PRESENCE, *own]
    marks = ", ".join(f"${n}" for n in range(1, len(values) + 1))
    return f"SELECT * FROM {store.queries.dialect.schema}{_FUNCTIONS[type(one)]}({marks})", values  # noqa: S608 - our own names


def unusual(error: Failed, before: int = 0) -> Unusual | None:
    """What the server's error means for the calls; `before`: the number of statements in front of them."""
    if error.state == UNUSUAL:
        why, _, which = error.message.partition(": ")
        return Unusual(max(0, error.place - before), why, [int(n) - 1 for n in which.split(",") if n])
    return Unusual(0, error.message) if error.state in _LEFT_TO_OTHERS else None


def _locks(store: Postgres, tenant: str, calls: Sequence[Call]) -> tuple[list[int], list[bool]]:
    """The locks of all calls, in the order of every transaction: projects by their number, the epoch's last."""
    claims = {one.project for one in calls if isinstance(one, Claims)}
    keys: list[int] = []
    shared: list[bool] = []
    for key, project in sorted((store.lock_key("project", tenant, one), one) for one in {c.project for c in calls}):
        if project in claims:
            keys.append(store.lock_key("claim", tenant, project))
            shared.append(False)
        keys.append(key)
        shared.append(True)
    return [*keys, store.epoch_lock], [*shared, True]


def _quiet(store: Postgres, connection: Connection) -> Connection:
    """One that the server has not closed meanwhile: once the call is sent, nobody knows whether it was done."""
    try:
        connection.settle()
    except Lost:
        return store.connections.replaced(connection)
    return connection


def _run(store: Postgres, connection: Connection, statements: list[Statement]) -> list[Answer]:
    connection.notices.clear()
    several = len(statements) > 1
    begin: list[Statement] = [(statement_texts.BEGIN_WRITE, ())] if several else []
    end: list[Statement] = [("COMMIT", ())] if several else []
    try:
        answers = connection.run([*begin, *statements, *end])
    except Failed as error:
        connection.roll_back()
        raise unusual(error, len(begin)) or translated(error, store.url) from error
    except Lost as error:
        raise unknown(f"the connection was lost at the commit ({error})", store.url) from error
    except BAD_VALUES as error:
        raise bad_value(error) from error
    warnings = [notice.message for notice in connection.notices if notice.severity == "WARNING"]
    if warnings:
        raise unknown(f"committed on this server alone: {warnings[0]}", store.url)
    return answers[len(begin) : len(answers) - len(end)]
