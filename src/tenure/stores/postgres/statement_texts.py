"""The statement texts that are not made from a struct. `{s}` stands for the schema, quoted and with its dot.

No text reads or leaves session state: settings and locks end with their transaction, so that a pooler may give each
transaction another session.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tenure.core.records import Agent, Claim, Session
from tenure.stores.postgres.narrow_rows import space_of
from tenure.stores.postgres.tables import table_for
from tenure.stores.sql.statements import Dialect, table_of

# The text search excludes nearly all rows before any JSON is parsed; the items are compared as JSON, since decoding
# them to text would fail on an escaped NUL.
CONTAINS = (
    "({} <> '[]' AND strpos({}, ?) > 0 AND EXISTS"
    " (SELECT 1 FROM json_array_elements({}::json) AS item (value) WHERE item.value::text = ?))"
)

# READ COMMITTED, whatever the database's default: each statement sees everything that was committed before it, and with
# the project's lock held no more can follow.
BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

# Generic plans, from key to key: the statistics of a table that was empty an hour ago must not decide, nor may a page
# of a list read all of it. Nothing but rows counts as cost, since few pages of a small table cost less than a lookup. A
# statement is planned once. JIT would be triggered by the cost that disabled scans are given.
_PLANS = """set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true), set_config('enable_memoize', 'off', true),
    set_config('jit', 'off', true), set_config('random_page_cost', '0', true), set_config('seq_page_cost', '0', true),
    set_config('cpu_tuple_cost', '1', true), set_config('cpu_index_tuple_cost', '1', true)"""
BY_KEYS = f"SELECT {_PLANS}"
# For one that reads most rows, as a count of everything does: planned each time, by what the server knows of them.
FREELY = "SELECT " + ", ".join(
    f"set_config('{name}', '{value}', true)"
    for name, value in (
        ("plan_cache_mode", "force_custom_plan"),
        *((f"enable_{how}", "on") for how in ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "memoize")),
        *(
            ("random_page_cost", "4"),
            ("seq_page_cost", "1"),
            ("cpu_tuple_cost", "0.01"),
            ("cpu_index_tuple_cost", "0.005"),
        ),
    )
)

# What policies compare with: see row_security.py. In a separate statement, before the first that reads a table.
_TENANT = "set_config('tenure.tenant', ?, true)"
SCOPE = f"SELECT {_TENANT}"
READ_SETTINGS = f"SELECT {_TENANT}, {_PLANS}"

# An answer promises durability. A database or role that is configured to lose commits, to answer before a synchronous
# standby has them, or to suppress warnings (see `_commit`) must not break that. The locks come last, when the settings
# apply: those of the projects; then, shared, that of the epoch, since a transaction that begins a new epoch holds
# projects and waits for it.
SETTINGS = f"""
SELECT {_TENANT}, set_config('statement_timeout', ?, true), set_config('lock_timeout', ?, true),
    set_config('idle_in_transaction_session_timeout', ?, true), {_PLANS},
    set_config('client_min_messages', 'warning', true),
    set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply'
               ELSE 'on' END, true),
    (SELECT count(pg_advisory_xact_lock(key)) FROM unnest(?::bigint[]) AS given (key)),
    pg_advisory_xact_lock_shared(?)
"""  # noqa: S608 - constants alone

# In the given order, which must be the same for every transaction.
LOCK = "SELECT count(pg_advisory_xact_lock(key)) FROM unnest(?::bigint[]) AS given (key)"
NOTIFY = "SELECT pg_notify(?, ?)"

_MICROSECONDS = "(extract(epoch FROM {}) * 1000000)::bigint"
# After the locks: nothing that it reads can change before the commit. The clock is read last.
_HEAD = """
SELECT m.breaking, coalesce(e.epoch, m.epoch), t.last, t.now, {due}
FROM {{s}}meta AS m LEFT JOIN {{s}}epoch AS e ON e.tenant = {tenant}, LATERAL (SELECT {last} AS last, {now} AS now) AS t
"""
# The projects with due tasks. A writer also drops blocks that are not due any more: see `narrow_rows.py`.
_DUE_IN = """
ARRAY(SELECT p.name FROM unnest($1::text[]) AS p (name) WHERE {s}has_due($2, p.name, greatest(t.last, t.now)))
"""
# The number of the project that a statement is about.
_HERE = space_of("{s}", "$1", "$2")
# A due time counts while the row has it too.
_LIVE = """{s}due_block AS d, unnest(d.numbers) AS n (number), LATERAL (
        SELECT h.number, h.due_at FROM {s}task_hot AS h WHERE h.space = d.space AND h.number = n.number LIMIT 1) AS t"""
_IS_DUE = f"SELECT EXISTS (SELECT FROM {_LIVE} WHERE d.space = {{here}} AND d.at <= $3 AND t.due_at <= $3)"  # noqa: S608 - constants alone
_HAS_DUE = "SELECT {s}has_due($1, $2, $3)"
# As in log_statements.py: only event_project and event_block_project have these bounds and this order.
_LAST_IN = """
    SELECT e.tenant, e.project, e.time FROM {{s}}{table} AS e
    WHERE (e.project, e.tenant, e.{sequence}) > (p.name, $2, 0)
        AND (e.project, e.tenant, e.{sequence}) <= (p.name, $2, 9223372036854775807)
    ORDER BY e.project DESC, e.tenant DESC, e.{sequence} DESC LIMIT 1"""
_LAST_OF_PROJECTS = f"""
(SELECT max(l.time) FROM unnest($1::text[]) AS p (name), LATERAL (
    ({_LAST_IN.format(table="event", sequence="sequence")})
    UNION ALL ({_LAST_IN.format(table="event_block", sequence="last")})) AS l
 WHERE l.tenant = $2 AND l.project = p.name)
"""  # noqa: S608 - constants alone
# The last event of a tenant: bounds and order are those of the primary keys of both tables.
_LAST_OF = """(SELECT {{what}} FROM {{{{s}}}}{table}
    WHERE (tenant, {sequence}) > ({{tenant}}, 0) AND (tenant, {sequence}) <= ({{tenant}}, 9223372036854775807)
    ORDER BY tenant DESC, {sequence} DESC LIMIT 1)"""
_LAST_SINGLE = _LAST_OF.format(table="event", sequence="sequence")
_LAST_BLOCK = _LAST_OF.format(table="event_block", sequence="last")


def _last_of(tenant: str, *, of_time: bool = False) -> str:
    """The sequence, or the time, of a tenant's last event."""
    single, block = ("time", "time") if of_time else ("sequence", "last")
    return (
        f"greatest({_LAST_SINGLE.format(what=single, tenant=tenant)}, {_LAST_BLOCK.format(what=block, tenant=tenant)})"
    )


# A loose index scan: one step in the queue from lane to lane, however long a lane is, from the end, where the tasks are
# that nobody has claimed; then the first of each. With a depth of 32 or more the caller wants four times as many from
# all lanes together: with few lanes, more of each.
_LANES = """
WITH RECURSIVE found AS (
    (SELECT lane FROM {s}queue WHERE space = {here}
     ORDER BY lane DESC, band DESC, rank DESC, sequence DESC, id DESC LIMIT 1)
    UNION ALL
    SELECT following.lane FROM found, LATERAL (
        SELECT lane FROM {s}queue
        WHERE space = {here} AND lane < found.lane
        ORDER BY lane DESC, band DESC, rank DESC, sequence DESC, id DESC LIMIT 1) AS following
)
SELECT first.lane, following.* FROM found AS first, LATERAL (
    SELECT band, rank, sequence, id, plain FROM {s}queue
    WHERE space = {here} AND lane = first.lane ORDER BY band, rank, sequence, id
    LIMIT CASE WHEN $3 < 32 THEN $3 ELSE greatest($3, $3 * 4 / (SELECT count(*) FROM found)) END) AS following
"""
# Both walk the key of the queue.
_READY = """
SELECT band, rank, sequence, id, plain FROM {s}queue
WHERE space = {here} AND lane = $3 ORDER BY band, rank, sequence, id LIMIT $4
"""
_READY_AFTER = """
SELECT band, rank, sequence, id, plain FROM {s}queue
WHERE space = {here} AND lane = $3 AND (band, rank, sequence, id) > ($4, $5, $6, $7)
ORDER BY band, rank, sequence, id LIMIT $8
"""
# Whole moments, as many as have so many tasks: a number may be twice in one.
_DUE = f"""
WHERE space = {{here}} AND number = ANY(ARRAY(
    SELECT t.number FROM {_LIVE} WHERE d.space = {{here}} AND d.at <= least($3, (
        SELECT d.at FROM {_LIVE} WHERE d.space = {{here}} AND d.at <= $3 AND t.due_at = d.at
        ORDER BY d.at OFFSET 2 * $4 + 15 LIMIT 1)) AND t.due_at = d.at))
ORDER BY due_at, id LIMIT $4
"""  # noqa: S608 - constants alone
_DUE_PROJECTS = """
SELECT p.project FROM {s}space AS p
WHERE p.tenant = $1 AND (SELECT true FROM {s}due_block AS d WHERE d.space = p.number LIMIT 1) ORDER BY p.project
"""
_NEXT_DUE = "SELECT {s}first_due($1, $2, $3)"
_GIVE_ROWS = "SELECT {s}give_rows($1, $2, $3)"
_SET_EPOCH = """
INSERT INTO {s}epoch (tenant, epoch, place) VALUES (?, ?, ?)
ON CONFLICT (tenant) DO UPDATE SET epoch = excluded.epoch, place = excluded.place
"""
_BREAKING = "SELECT breaking FROM {s}meta"
_SETTLE_EPOCHS = "SELECT {s}settle_epochs(?, ?)"
_BEGIN_EPOCHS = "SELECT {s}begin_epochs(?, ?, ?)"
_TENANTS = "SELECT {s}tenants_here()"
_DROP_EVENTS = "SELECT {s}drop_events($1, $2, $3, $4)"
_CLEAR_LOG = "SELECT {s}clear_log($1)"
_MAY_CLEAR_LOG = "SELECT has_function_privilege('{s}clear_log(text)', 'EXECUTE')"
# The last commit, and the transactions that have ended: see log_cursor.py.
_MARK = f"SELECT coalesce({_last_of('$1')}, 0), pg_current_snapshot()::text"
# The last commits of several tenants.
_MARKS = "SELECT tenant, last, pg_current_snapshot()::text FROM {s}log_ends($1)"
_CHANGED = "SELECT {s}tenants_changed($1, $2, $3, $4)"
_TENANTS_DUE = "SELECT tenant, at, is_changed FROM {s}tenants_due($1, $2, $3)"
# How far below its mark a transaction may commit that had not ended then.
FAR_BACK = 10_000

# --- the end of the log ---
# The last sequence that any transaction has drawn: no snapshot hides it.
_DRAWN = "(SELECT last_value - (NOT is_called)::integer FROM {s}event_sequence_seq)"
# A writer takes it before it draws: see log_cursor.py. The second number of the lock is the floor.
_FLOOR = f"SELECT pg_advisory_xact_lock_shared(?, ({_DRAWN} & 2147483647)::integer)"
# `objid` is the second number of a lock with two numbers.
FLOORS = """
SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND classid::bigint = ?
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


# From receipts to their holders, each the key of the next: as one array each, so that every step is a lookup by key.
_REFS = """ARRAY(SELECT b.id{more} FROM unnest($3::text[], $4::bigint[]) AS g (ref, generation)
    JOIN {s}task_base AS b ON b.ref = g.ref AND b.project = $2 AND b.tenant = $1)"""
_TASKS, _CLAIMS = (_REFS.replace("{more}", more) for more in ("", " || '@' || g.generation"))
_CLAIMS_OF = f"""
SELECT {{what}} FROM {{s}}claim_row WHERE tenant || '' = $1 AND project || '' = $2 AND id = ANY({_CLAIMS})
UNION ALL SELECT {{what}} FROM {{s}}claim_narrow WHERE space = {{here}} AND task = ANY({_TASKS}) AND id = ANY({_CLAIMS})
"""  # noqa: S608 - constants alone
_HOLDERS_OF = "{select} WHERE tenant || '' = $1 AND project || '' = $2 AND id = ANY(ARRAY({claims}))"


def _of_receipts(dialect: Dialect) -> tuple[str, str, str]:
    """The claims that receipts name, and their agents and sessions."""
    claims = table_of(Claim, dialect)
    names = claims.select.partition("SELECT ")[2].partition(" FROM ")[0]
    return (
        _CLAIMS_OF.replace("{what}", names),
        *(
            _HOLDERS_OF.format(select=table_of(kind, dialect).select, claims=_CLAIMS_OF.replace("{what}", what))
            for kind, what in ((Agent, "agent"), (Session, "session"))
        ),
    )  # type: ignore[return-value]  # three


class Queries(NamedTuple):
    """The texts of one schema."""

    dialect: Dialect
    breaking: str
    drawn: str
    floor: str
    head: str
    head_of_projects: str
    head_for_reading: str
    lanes: str
    ready: str
    ready_after: str
    due: str
    due_projects: str
    next_due: str
    is_due: str
    has_due: str
    give_rows: str
    set_epoch: str
    settle_epochs: str
    begin_epochs: str
    tenants: str
    drop_events: str
    clear_log: str
    may_clear_log: str
    mark: str
    marks: str
    changed: str
    tenants_due: str
    claims_of: str
    agents_of: str
    sessions_of: str


@cache
def queries_of(schema: str) -> Queries:
    """The caller has checked `schema`: it becomes part of every text."""
    here = f'"{schema}".'
    written, read = (_MICROSECONDS.replace("{}", clock) for clock in ("clock_timestamp()", "now()"))
    last = _last_of("$1", of_time=True).replace("{{s}}", "{s}")
    head = _HEAD.format(last=last, now=written, tenant="$1", due="NULL")
    of_projects = _HEAD.format(last=_LAST_OF_PROJECTS, now=written, tenant="$2", due=_DUE_IN)
    # The start of the transaction, before its snapshot: no lease that was renewed looks expired.
    reading = _HEAD.format(last=last, now=read, tenant="$1", due="NULL")
    texts = (
        _BREAKING, f"SELECT {_DRAWN}", _FLOOR, head, of_projects, reading, _LANES, _READY, _READY_AFTER, _DUE,
        _DUE_PROJECTS, _NEXT_DUE, _IS_DUE, _HAS_DUE, _GIVE_ROWS, _SET_EPOCH, _SETTLE_EPOCHS,
        _BEGIN_EPOCHS, _TENANTS,
        _DROP_EVENTS, _CLEAR_LOG, _MAY_CLEAR_LOG, _MARK, _MARKS, _CHANGED, _TENANTS_DUE,
    )  # fmt: skip
    dialect = Dialect(
        contains=CONTAINS, contains_values=("json", "json"), truths=("false", "true"), arrays=True, nulls_last=True,
        schema=here, tables=table_for,
    )  # fmt: skip
    all_texts = (*texts, *_of_receipts(dialect))
    return Queries(dialect, *(text.replace("{here}", _HERE).replace("{s}", here) for text in all_texts))
