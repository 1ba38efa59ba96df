"""Hot queries keep their plans, whether or not the server has looked at the tables: nothing is walked or sorted."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.filters import Contains, Prefix, Present, Range
from tenure.core.records import Claim, Edge, Landing, Message, Reservation, Result, Row, Session, Task, Usage
from tenure.engine import Engine
from tenure.engine.runtime.rows import row_pages
from tenure.stores.postgres import Postgres, event_blocks, log_statements, row_security, statement_texts
from tenure.stores.postgres import tables as postgres_tables
from tenure.stores.postgres.address import parse
from tenure.stores.postgres.connection import Connection, Statement, connect, numbered
from tenure.stores.postgres.planner_statistics import PLACES, made_up, made_up_places
from tenure.stores.postgres.statement_texts import queries_of
from tenure.stores.postgres.tables import parts_of
from tenure.stores.sql.codec import tables
from tenure.stores.sql.statements import table_of
from tests.servers.postgres import PostgresServer, url_of
from tests.servers.restricted import ROLE, url_as

P = {"project": "1"}
SCHEMA = "plans"
TEXTS = queries_of(SCHEMA)
DIALECT = TEXTS.dialect


def found(
    kind: type[Row], where: dict[str, Any], order: str = "id", after: Any = None, limit: int | None = None
) -> Any:
    return table_of(kind, DIALECT).finding("local", {**P, **where}, order, after, limit)


def logged(where: dict[str, Any], *, last: bool = False) -> Any:
    return log_statements.finding("local", where, 0, 10, last, DIALECT)


def packed(where: dict[str, Any], *, last: bool = False) -> Any:
    return event_blocks.finding("local", where, 0, 10, last, DIALECT)


TASK = table_of(Task, DIALECT)
HOT: dict[str, tuple[Any, str]] = {
    "lanes": ((TEXTS.lanes, ["local", "1", 4]), "queue_pkey"),
    "ready": ((TEXTS.ready, ["local", "1", "3", 1]), "queue_pkey"),
    "ready after": ((TEXTS.ready_after, ["local", "1", "3", 1, 1, 1, "t", 1]), "queue_pkey"),
    "due projects": ((TEXTS.due_projects, ["local"]), "due_block_at"),
    "is due": ((TEXTS.is_due, ["local", "1", 1]), "due_block_at"),
    "load one": (next(TASK.loading("local", [("1", "a")])), "task_hot_pkey"),
    "load a claim": (next(table_of(Claim, DIALECT).loading("local", [("1", "a@1")])), "claim_pkey"),
    "load a narrow claim": (next(table_of(Claim, DIALECT).loading("local", [("1", "a@1")])), "done_pkey"),
    "load a narrow result": (next(table_of(Result, DIALECT).loading("local", [("1", "a")])), "done_result"),
    "ref": (found(Task, {"ref": "A-001"}, limit=1), "task_ref"),
    "beginning of a key": (found(Task, {"key": Prefix("A-0")}, "key", limit=4), "task_key"),
    "idempotency key": (found(Task, {"idempotency_key": "x"}, limit=1), "task_idempotency"),
    "set aside": (found(Task, {"set_aside_for": "t"}), "task_set_aside"),
    "set aside for a budget": (
        found(Task, {"set_aside_for": "$p", "price": Range(0, 5), "band": 1, "boost": 10}, "rank", limit=64),
        "task_unaffordable",
    ),
    "a page of a state": (found(Task, {"state": "1"}, "id", ("t", "t"), 50), "standing_pkey"),
    "a page of the completed": (
        found(Task, {"state": "completed", "id": Range(high="x")}, "id", ("t", "t"), 9),
        "standing_pkey",
    ),
    "a page of ready ones": (found(Task, {"state": "ready"}, "id", ("t", "t"), 50), "queue_id"),
    "a page of the newest": (found(Task, {}, "-created_at", (5, "t"), 50), "task_created"),
    "events of a project": (logged(P), "event_project"),
    "latest events of a project": (logged(P, last=True), "event_project"),
    "latest events": (logged({}, last=True), "event_pkey"),
    "mark": ((TEXTS.mark, ["local"]), "event_pkey"),
    "events after a cursor": (logged({}), "event_pkey"),
    "blocks after a cursor": (packed({}), "event_block_pkey"),
    "events of some projects after a cursor": (logged({"project": ("1", "2")}), "event_pkey"),
}
# A few rows of one thing: sorting them is cheaper than an index more.
SORTED: dict[str, tuple[Any, str]] = {
    "held by an agent": (found(Task, {"agent": "bo"}), "held_agent"),
    "held by a session": (found(Task, {"session": "s", "state": ("claimed", "running")}), "held_pkey"),
    "held by a session, the first": (found(Task, {"session": "s"}, limit=3), "held_pkey"),
    "load some": (next(TASK.loading("local", [("1", "a"), ("1", "b")])), "task_hot_pkey"),
    "load some claims": (next(table_of(Claim, DIALECT).loading("local", [("1", "a"), ("1", "b")])), "claim_pkey"),
    "dependents": (found(Edge, {"needs": "t"}), "edge_needs"),
    "results": (found(Result, {"task": "t", "generation": 1, "digest": "d"}, limit=1), "result_task"),
    "dependencies": (found(Edge, {"task": "t"}), "edge_task"),
    "children": (found(Task, {"parent": "t", "parent_run": 1}), "task_parent"),
    "narrow claims of a session": (found(Claim, {"session": "s"}), "granted_pkey"),
    "narrow claims of a request": (found(Claim, {"request_id": "r"}), "granted_request"),
    "a page of claims": (found(Claim, {}, "id", ("t@1", "t@1"), 50), "done_pkey"),
    "a page of results": (found(Result, {}, "id", ("r", "r"), 50), "done_result"),
    "claims of a session": (found(Claim, {"session": "s"}), "claim_session"),
    "offers": (found(Task, {"offer_to": "bo", "state": "ready"}), "task_offer"),
    "tasks of a dag in a state": (found(Task, {"dag": "d", "state": "created"}), "task_dag"),
    "lineage": (found(Claim, {"task": "t"}, "generation"), "claim_generation"),
    "accepted result": (found(Result, {"task": "t", "run": 1, "accepted": True}, limit=1), "result_"),
    "claims of a request": (found(Claim, {"request_id": "r"}, "acquired_at"), "claim_request"),
    "claims of a process": (found(Claim, {"process": "h|b|1|1"}), "claim_process"),
    "claims of processes": (found(Claim, {"process": ("h|b|1|1", "x")}), "claim_process"),
    "unread mail": (found(Message, {"recipient": "bo", "read_at": Present(False)}), "message_recipient"),
    "open sessions": (found(Session, {"agent": "bo", "ended_at": Present(False)}), "session_open"),
    "events of a task": (logged({**P, "task": "t"}), "event_version"),
    "events of a session": (logged({**P, "session": "s"}), "event_session"),
    "events of a session's claims": (logged({**P, "session": "s"}, last=True), "event_version"),
    "claims of a session, for its events": (logged({**P, "session": "s"}), "claim_session"),
    "events of a command": (logged({**P, "causation_id": "cmd_01M7GGRQT0KGG3000000003499"}), "event_time"),
    "blocks of a project": (packed(P), "event_block_project"),
    "latest blocks of a project": (packed(P, last=True), "event_block_project"),
    "latest blocks": (packed({}, last=True), "event_block_pkey"),
    "a task's events in blocks": (packed({**P, "task": "t"}), "event_block_pkey"),
    "claims of a task, for its events": (packed({**P, "task": "t"}), "claim_generation"),
    "claims of a session, for its events in blocks": (packed({**P, "session": "s"}), "claim_session"),
    "reservations of a claim": (found(Reservation, {"task": "t"}), "reservation_task"),
    "usage of a claim": (found(Usage, {"task": "t", "generation": 1}), "usage_task"),
    "landings of a task": (found(Landing, {"task": "t"}, "-generation", limit=20), "landing_task"),
    "late usage": (
        table_of(Usage, DIALECT).summing("local", {**P, "late": True}, "project", ("cost",)),
        "usage_late",
    ),
    "a page by tag": (found(Task, {"tags": Contains("x")}, limit=50), "task_"),
    "a page of states, the oldest first": (
        found(Task, {"state": ("1", "ready")}, "created_at", limit=50),
        "task_created",
    ),
    "a page of a state, by key": (found(Task, {"state": "1"}, "-key", limit=50), "task_key"),
}


WRITES: list[Statement] = [
    (statement_texts.BEGIN_WRITE, ()),
    (statement_texts.SETTINGS, ["local", "0", "0", "0", [], 0]),
]
READS: list[Statement] = [(statement_texts.BEGIN_READ, ()), (statement_texts.READ_SETTINGS, ["local"])]


@pytest.fixture(params=[WRITES, READS], ids=["writes", "reads"])
def settings(request: pytest.FixtureRequest) -> Any:
    """How a transaction begins."""
    return request.param


@pytest.fixture(scope="module", params=["grown", "analysed", "grown, under a policy", "analysed, under a policy"])
def link(restricted: PostgresServer, request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A session, on tables with the rows of one busy tenant: of the owner, or of a role that policies restrict."""
    url = f"{restricted.url}?schema={SCHEMA}"
    store = Postgres(url)
    link = store.connections.take()
    link.run([("BEGIN", ()), (f"SELECT set_config('search_path', '{SCHEMA}', true)", ())])
    link.run([(text, ()) for table, struct in tables() for text in made_up(table, struct, 3000, 3)])
    link.run([(text, ()) for text in made_up_places(3000, 3)])
    if "analysed" in request.param:
        link.run([(f"ANALYZE {part}", ()) for table, struct in tables() for part in parts_of(table, struct)])
        link.run([(f"ANALYZE {part}", ()) for part in PLACES])
    link.run([("COMMIT", ())])
    if "policy" in request.param:
        row_security.run(url, "on", ROLE)
        own = connect(parse(url_as(ROLE, SCHEMA)).conninfo, 30)
        yield own
        own.close()
    else:
        yield link
    link.script(f"DROP SCHEMA {SCHEMA} CASCADE")
    store.connections.give(link)
    store.close()


def plan(link: Connection, statement: tuple[str, Sequence[Any]], settings: Any = WRITES) -> list[dict[str, Any]]:
    """The nodes of the plan that every later run of the prepared statement gets; a free one is for these texts."""
    text, values = statement
    link.run(settings)
    try:
        link.script("PREPARE hot AS " + numbered(text).decode())
        is_free = settings not in (WRITES, READS)
        given = ", ".join(f"'{value}'" if is_free else "NULL" for value in values)
        given = f"({given})" if values else ""
        try:
            ((told,),) = link.all(f"EXPLAIN (FORMAT JSON) EXECUTE hot{given}")
        finally:
            link.script("ROLLBACK; DEALLOCATE hot")  # a rollback alone keeps what was prepared
    finally:
        link.run([("ROLLBACK", ())])
    return list(nodes((json.loads(told) if isinstance(told, str) else told)[0]["Plan"]))


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for inner in node.get("Plans", ()):
        yield from nodes(inner)


@pytest.mark.parametrize("what", [*HOT, *SORTED])
def test_a_hot_query_goes_by_its_index(link: Connection, settings: Any, what: str) -> None:
    statement, index = {**HOT, **SORTED}[what]
    steps = plan(link, statement, settings)
    used = {step["Index Name"] for step in steps if "Index Name" in step}
    kinds = {step["Node Type"] for step in steps}
    assert any(name.startswith(index) for name in used), (used, kinds)
    assert "Seq Scan" not in kinds, steps
    if what.startswith("a page of") and index in ("standing_pkey", "queue_id"):
        assert any("(id >" in step.get("Index Cond", "") for step in steps), steps  # not from the beginning
    if what in HOT:
        assert not kinds & {"Sort", "Incremental Sort", "Bitmap Heap Scan"}, steps


@pytest.mark.parametrize("order", ["created_at", "-created_at", "key"])
def test_a_page_of_a_common_state_walks_its_order_and_one_of_a_rare_state_is_sorted(
    link: Connection, settings: Any, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever it is, the other is not begun; planned once, for every state."""
    walks = "task_key" if order == "key" else "task_created"
    for common in (100, 200):  # of 1,000 tasks in the project 125 have this state
        monkeypatch.setattr(postgres_tables, "_COMMON", common)
        text, values = found(Task, {"state": "1"}, order, limit=5)
        link.run(settings)
        try:
            link.script("PREPARE page AS " + numbered(text).decode())
            given = ", ".join(f"'{value}'" for value in values)
            ((told,),) = link.all(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE page({given})")
            link.script("ROLLBACK; DEALLOCATE page")
        finally:
            link.run([("ROLLBACK", ())])
        steps = list(nodes((json.loads(told) if isinstance(told, str) else told)[0]["Plan"]))
        (walk,) = [step for step in steps if step.get("Index Name") == walks]
        assert walk["Actual Loops"] == (1 if common == 100 else 0), steps
        assert walk["Actual Rows"] <= 200, walk


@pytest.mark.parametrize("order", ["created_at", "-created_at", "key", "-key"])
def test_a_page_has_the_same_tasks_walked_and_sorted(
    postgres: PostgresServer, tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Postgres(url_of(tmp_path))
    engine = Engine(store, SystemRandom())
    engine.do(c.DefineProject(project="p"))
    engine.run([c.Add(project="p", task=c.NewTask(title=f"Task {n}", track="AB"[n % 2])) for n in range(12)])
    engine.run([c.ClaimNext(project="p", agent="ann", session="s", n=5)])
    pages = []
    for common in (1, 5000):
        monkeypatch.setattr(postgres_tables, "_COMMON", common)
        with store.begin("local", write=False) as tx:
            for states in ("ready", ("ready", "claimed"), "claimed", "completed"):
                first = tx.find(Task, {"project": "p", "state": states}, order=order, limit=3)
                field = order.removeprefix("-")
                after = (getattr(first[-1], field), first[-1].id) if first else None
                then = tx.find(Task, {"project": "p", "state": states}, order=order, after=after, limit=3)
                pages.append([task.key for task in (*first, *then)])
    store.close()
    assert pages[:4] == pages[4:]
    assert [len(page) for page in pages[:4]] == [6, 6, 5, 0]


def test_a_page_of_a_rare_state_reads_only_its_tasks_beside_many_of_another(
    postgres: PostgresServer, tmp_path: Path, settings: Any
) -> None:
    """What the planner knows are the common states of a table: it would sort all tasks to find fifty of any."""
    store = Postgres(url_of(tmp_path))
    engine = Engine(store, SystemRandom())
    engine.do(c.DefineProject(project="p"))
    engine.run([c.Add(project="p", task=c.NewTask(title="first")) for _ in range(8)])
    behind = c.NewTask(title="waits", depends_on=("A-001",))
    engine.run([c.AddMany(project="p", tasks=(behind,) * 900)] * 3)
    engine.run([c.ClaimNext(project="p", agent="ann", session="s", n=5)])
    schema = store.queries.dialect.schema
    link = store.connections.take()
    try:
        link.script("; ".join(f"ANALYZE {schema}{table}" for table in ("task_base", "task_hot", *PLACES)))
        # As with a hundred times the tasks: the planner may divide a scan among processes.
        link.script("SET max_parallel_workers_per_gather = 2")
        for name in ("min_parallel_table_scan_size", "min_parallel_index_scan_size", "parallel_setup_cost"):
            link.script(f"SET {name} = 0")
        for state in ("claimed", "ready", "running"):
            listed = table_of(Task, store.queries.dialect).finding(
                "local", {"project": "p", "state": state}, "created_at", None, 5
            )
            read = most_read(link, listed, settings)
            assert read < 100, (state, read)
    finally:
        link.close()
        store.close()


@pytest.mark.parametrize("kind", [Claim, Result])
def test_a_page_by_id_reads_no_more_claims_and_results_than_it_has(
    postgres: PostgresServer, tmp_path: Path, settings: Any, kind: Any
) -> None:
    """Verify, copies and the past read all of them in such pages: a sort of all for each would grow with the square."""
    store = Postgres(url_of(tmp_path))
    engine = Engine(store, SystemRandom())
    engine.do(c.DefineProject(project="p"))
    engine.run([c.AddMany(project="p", tasks=(c.NewTask(title="one"),) * 1000)])
    many = c.ClaimNext(project="p", agent="ann", session="s", n=100)
    for claims in ((grant for grant in engine.do(many).claims or ()) for _ in range(6)):
        engine.run([c.Submit(project="p", receipt=str(grant.receipt)) for grant in claims])
    held = engine.do(c.ClaimNext(project="p", agent="ann", session="s", n=10)).claims or ()
    engine.run([c.Fail(project="p", receipt=str(grant.receipt), message="no") for grant in held[::3]])  # separate rows
    where = {"project": "p"}
    with store.begin("local", write=False) as tx:
        everything: list[Row] = sorted(tx.find(kind, where), key=lambda row: row.id)
        pages = [row for page in row_pages(tx, kind, where, 7) for row in page]
    assert pages == everything
    assert len(everything) == (610 if kind is Claim else 600)
    schema = store.queries.dialect.schema
    link = store.connections.take()
    try:
        link.script("; ".join(f"ANALYZE {schema}{table}" for table in ("task_base", "task_hot", "claim_row", *PLACES)))
        for place in (None, everything[300].id):
            page = table_of(kind, store.queries.dialect).finding("local", where, "id", place and (place, place), 50)
            assert most_read(link, page, settings) <= 110, place
    finally:
        link.close()
        store.close()


def most_read(link: Connection, statement: tuple[str, Sequence[Any]], settings: Any) -> int:
    """The most rows that a node of the plan read, in all of its loops."""
    text, values = statement
    link.run(settings)
    try:
        link.script("PREPARE page AS " + numbered(text).decode())
        given = ", ".join(f"'{value}'" for value in values)
        ((told,),) = link.all(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE page({given})")
        link.script("ROLLBACK; DEALLOCATE page")
    finally:
        link.run([("ROLLBACK", ())])
    steps = nodes((json.loads(told) if isinstance(told, str) else told)[0]["Plan"])
    return max(
        int((step["Actual Rows"] + step.get("Rows Removed by Filter", 0)) * step["Actual Loops"]) for step in steps
    )


LOG = {
    **{what: statement for what, (statement, _) in {**HOT, **SORTED}.items() if "event" in what or "block" in what},
    "mark": HOT["mark"][0],
    "beginning": (TEXTS.head, ["local"]),
    "beginning of a read": (TEXTS.head_for_reading, ["local"]),
    "beginning in projects": (TEXTS.head_of_projects, [["1"], "local"]),
}
BY_TIME = "events of a command"  # those of one millisecond, filtered by their tenant


@pytest.mark.parametrize("what", sorted(LOG.keys() - {BY_TIME}))
def test_no_statement_reads_the_log_without_its_tenant(link: Connection, what: str) -> None:
    steps = [step for step in plan(link, LOG[what]) if step.get("Relation Name") in ("event", "event_block")]
    assert steps
    for step in steps:
        assert "tenant" in step.get("Index Cond", step.get("Recheck Cond", "")), step


OWNERS = {  # functions of the owner over several tenants: their arguments, and the indexes that they need
    "log_ends": ({"p_tenants": ("text[]", ["local"])}, {"event_pkey", "event_block_pkey"}),
    "tenants_changed": (
        {"p_tenants": ("text[]", ["local"]), "p_marks": ("bigint[]", [7]), "p_snapshots": ("text[]", [None]),
         "p_back": ("bigint", 10_000)},
        {"event_pkey", "event_block_pkey"},
    ),
    "tenants_due": (
        {"p_tenants": ("text[]", ["local"]), "p_until": ("bigint", 1), "p_since": ("bigint", 0)},
        {"event_pkey", "event_block_pkey", "due_block_at", "task_hot_pkey", "schedule_next"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OWNERS)
def test_the_owners_functions_go_by_keys(link: Connection, name: str) -> None:
    ((body,),) = link.all(
        "SELECT prosrc FROM pg_proc WHERE proname = ? AND pronamespace = to_regnamespace(?)", [name, SCHEMA]
    )
    for table in ("event", "event_block", "space", "due_block", "task_hot", "schedule", "sink", "log_cursor"):
        body = body.replace(f"FROM {table} AS", f"FROM {SCHEMA}.{table} AS")
    given, indexes = OWNERS[name]
    for number, (argument, (kind, _)) in enumerate(given.items(), 1):
        body = body.replace(argument, f"${number}::{kind}")
    used = {step.get("Index Name") for step in plan(link, (body, [value for _, value in given.values()]))}
    assert indexes <= used


MOST_READ = 4  # rows of a table, for a tenant that has none


@pytest.mark.parametrize("what", sorted({*HOT, *SORTED, *LOG} - {BY_TIME}))
def test_an_idle_tenant_reads_nothing_of_a_busy_one(link: Connection, settings: Any, what: str) -> None:
    """Not a row that a filter throws away: one tenant's log does not make another's statements slow."""
    text, values = {**{name: statement for name, (statement, _) in {**HOT, **SORTED}.items()}, **LOG}[what]
    idle = [[("idle" if item == "local" else item) for item in v] if isinstance(v, list) else v for v in values]
    idle = ["idle" if value == "local" else value for value in idle]
    begin, (setting, (_, *others)) = settings
    link.run([begin, (setting, ["idle", *others])])
    try:
        ((told,),) = link.all(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {text}", idle)
    finally:
        link.run([("ROLLBACK", ())])
    for step in nodes((json.loads(told) if isinstance(told, str) else told)[0]["Plan"]):
        if step.get("Relation Name", "meta") != "meta":
            read = step["Actual Loops"] * (step["Actual Rows"] + step.get("Rows Removed by Filter", 0))
            assert read <= MOST_READ, step


def test_every_order_of_the_log_is_one_of_a_tenant(link: Connection) -> None:
    indexes = link.all(
        "SELECT indexdef FROM pg_indexes WHERE tablename IN ('event', 'event_block') AND schemaname = ?", [SCHEMA]
    )
    ordered = [text for (text,) in indexes if "sequence" in text or "last" in text]
    assert len(ordered) == 5
    assert all("tenant, " in text for text in ordered), ordered
    assert sum("(tenant, sequence)" in text or "(tenant, last)" in text for text in ordered) == 2


def test_the_last_event_of_a_project_is_found_by_its_index(link: Connection) -> None:
    """What a beginning asks is answered by indexes too, however long the log is."""
    steps = plan(link, (TEXTS.head_of_projects, [["1"], "local"]))
    assert {"event_project", "event_block_project"} <= {step.get("Index Name") for step in steps}


# What each session holds, what was asked before, and what a claim counts: by keys, also in a transaction that writes.
COUNTS: dict[str, tuple[Any, str]] = {
    "held by sessions": (TASK.counting("local", {**P, "session": ("s", "t")}, "session"), "held_pkey"),
    "held by agents": (TASK.counting("local", {**P, "agent": ("a", "b")}, "agent"), "held_agent"),
    "held by an agent, at most": (TASK.tallying("local", {**P, "agent": "a", "state": "claimed"}, 5), "held_agent"),
    "offers to agents": (TASK.counting("local", {**P, "offer_to": ("a", "b")}, "offer_to"), "task_offer"),
    "requests": (
        table_of(Claim, DIALECT).counting("local", {**P, "request_id": ("r", "s")}, "request_id"),
        "granted_request",
    ),
    "states": (TASK.counting("local", P, "state"), "standing_pkey"),
}


@pytest.mark.parametrize("what", COUNTS)
def test_a_count_begins_with_its_project(link: Connection, what: str) -> None:
    statement, index = COUNTS[what]
    steps = [step for step in plan(link, statement) if "Relation Name" in step]
    assert index in {step.get("Index Name") for step in steps}
    for step in steps:
        bounds = step.get("Index Cond", "")
        assert any(name in bounds for name in ("space", "tenant", "number")), step


def test_a_count_of_everything_is_planned_freely(link: Connection, tmp_path: Path) -> None:
    statement = TASK.counting("local", {**P, "state": "1"}, "type")
    joins = {"Hash Join", "Merge Join"}
    assert not joins & {step["Node Type"] for step in plan(link, statement, READS)}
    free = [*READS, (statement_texts.FREELY, ())]
    assert joins & {step["Node Type"] for step in plan(link, statement, free)}
    store = Postgres(url_of(tmp_path))
    with store.begin("local", write=False) as tx:
        tx.count(Task, P, "type")
        assert tx._read("SELECT current_setting('enable_hashjoin')", ()) == [("off",)]  # as pages of lists need it
    store.close()
